# SPDX-License-Identifier: Apache-2.0
"""tensorflow_step.py mlp|lenet|resnet20|gpt THREADS: a training step under MirroredStrategy, on two
logical CPUs with a batch each; so many threads share an op, 0 for as many as TensorFlow likes."""
import sys

import tensorflow as tf

import tensorflow_models
import window

REPLICAS = 2


def make_strategy():
    cpus = tf.config.list_physical_devices("CPU")
    logical = [tf.config.LogicalDeviceConfiguration()] * REPLICAS
    tf.config.set_logical_device_configuration(cpus[0], logical)
    return tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(REPLICAS)])


def training_step(strategy, model, optimizer, batch):
    """A step of gradient descent: forward, backward, update, and the loss as a number."""
    rows = REPLICAS * strategy.experimental_local_results(batch[0])[0].shape[0]

    def replica_step(inputs, labels):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(
                labels, model(inputs, training=True))
            losses = tf.reduce_mean(tf.reshape(losses, (inputs.shape[0], -1)), 1)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=rows)
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables),
                                      model.trainable_variables))
        return loss

    @tf.function
    def train_step(inputs, labels):
        losses = strategy.run(replica_step, (inputs, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    return lambda: train_step(*batch).numpy()


def main():
    name, threads = sys.argv[1:]
    tf.config.threading.set_intra_op_parallelism_threads(int(threads))
    strategy = make_strategy()
    tf.random.set_seed(1)
    with strategy.scope():
        model = getattr(tensorflow_models, name)()
        optimizer = tf.keras.optimizers.SGD(0.01)
    batch = [strategy.experimental_distribute_values_from_function(lambda _, make=make: make())
             for make in tensorflow_models.BATCHES[name]]
    window.answer_training(f"TensorFlow {tf.__version__}",
                           training_step(strategy, model, optimizer, batch),
                           sum(variable.shape.num_elements()
                               for variable in model.trainable_variables))


if __name__ == "__main__":
    main()
