# SPDX-License-Identifier: Apache-2.0
"""A training step of the MLP under MirroredStrategy: two logical CPUs, 128 rows each."""
import tensorflow as tf

import window

cpus = tf.config.list_physical_devices("CPU")
tf.config.set_logical_device_configuration(cpus[0], [tf.config.LogicalDeviceConfiguration()] * 2)
tf.random.set_seed(1)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

with strategy.scope():
    model = tf.keras.Sequential([
        tf.keras.Input((784,)), tf.keras.layers.Dense(512, "relu"),
        tf.keras.layers.Dense(512, "relu"), tf.keras.layers.Dense(10)])
    optimizer = tf.keras.optimizers.SGD(0.01)
    loss_of = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")


def replica_step(images, labels):
    with tf.GradientTape() as tape:
        loss = tf.nn.compute_average_loss(loss_of(labels, model(images)), global_batch_size=256)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                  model.trainable_variables))
    return loss


@tf.function
def train_step(images, labels):
    losses = strategy.run(replica_step, (images, labels))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


def per_replica(make):
    return strategy.experimental_distribute_values_from_function(lambda _: make())


images = per_replica(lambda: tf.random.uniform((128, 784)))
labels = per_replica(lambda: tf.random.uniform((128,), maxval=10, dtype=tf.int32))
window.answer_windows(f"TensorFlow {tf.__version__}", lambda: train_step(images, labels).numpy())
