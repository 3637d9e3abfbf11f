#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""training_guide.py: writes tests/golden/training/guide.json.

The loop of TensorFlow's guide to custom training with tf.distribute: losses per example,
compute_average_loss, scale_regularization_loss, metrics that replicas update, strategy.run and
strategy.reduce, a test set after each epoch. Replicas, batches and noise are those of training.py;
tests/conformance/golden_guide_test.cc runs the same loop.
"""
import multiprocessing

import training  # first: it sets up the process
import keras
import tensorflow as tf

from programs import Noise, Program, classified, dense, kernel, weight

EPOCHS = 5
TEST_ROWS = 26
# What losses are divided by: a fixed size, or what TensorFlow takes where it is told none, the
# replica's rows times the replicas, which is right for rows that divide evenly.
SPLITS = {"even": (24, 72, None), "uneven": (25, 76, 25)}


def conv(name, channels, filters):
    return [kernel(name, (3, 3, channels, filters)), weight(f"{name}/bias", (filters,), 0.1)]


class Guide(Program):
    weights = (conv("conv2d", 1, 32) + conv("conv2d_1", 32, 64) + dense("dense", 64, 64)
               + dense("dense_1", 64, 10))

    def __init__(self):
        layers = keras.layers
        self.model = keras.Sequential([
            layers.Conv2D(32, 3, activation="relu"), layers.MaxPooling2D(),
            layers.Conv2D(64, 3, activation="relu"), layers.MaxPooling2D(), layers.Flatten(),
            layers.Dense(64, activation="relu", kernel_regularizer=keras.regularizers.L2(2.0**-7)),
            layers.Dense(10)])

    def __call__(self, x):
        return self.model(x, training=True)

    def variables(self):
        return self.model.weights


class Loop:
    def __init__(self, strategy, global_batch_size, dtype):
        self.strategy, self.global_batch_size = strategy, global_batch_size
        with strategy.scope():
            example = Noise(0).tensor((1, 12, 12, 1)).astype(dtype)
            self.model, self.optimizer = training.start(
                Guide, "Adam", {"learning_rate": 0.003}, {}, example, dtype)
            self.per_example = keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=None)
            self.train_accuracy = keras.metrics.SparseCategoricalAccuracy()
            self.test_accuracy = keras.metrics.SparseCategoricalAccuracy()
            self.test_loss = keras.metrics.Mean()

    def train_on_replica(self, images, labels):
        with tf.GradientTape() as tape:
            logits = self.model(images)
            loss = tf.nn.compute_average_loss(
                self.per_example(labels, logits), global_batch_size=self.global_batch_size)
            loss += tf.nn.scale_regularization_loss(tf.add_n(self.model.model.losses))
        variables = self.model.model.trainable_variables
        gradients = tape.gradient(loss, [v.value for v in variables])
        self.optimizer.apply_gradients(zip(gradients, variables))
        self.train_accuracy.update_state(labels, logits)
        return loss

    def test_on_replica(self, images, labels):
        logits = self.model.model(images, training=False)
        self.test_loss.update_state(self.per_example(labels, logits))
        self.test_accuracy.update_state(labels, logits)

    @tf.function(reduce_retracing=True)
    def train(self, images, labels):
        losses = self.strategy.run(self.train_on_replica, args=(images, labels))
        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    @tf.function(reduce_retracing=True)
    def test(self, images, labels):
        self.strategy.run(self.test_on_replica, args=(images, labels))

    def epoch(self, train, test):
        metrics = {"train_accuracy": self.train_accuracy, "test_accuracy": self.test_accuracy,
                   "test_loss": self.test_loss}
        for metric in metrics.values():
            metric.reset_state()
        losses = [float(self.train(*batch)) for batch in train]
        for batch in test:
            self.test(*batch)
        return {"loss": losses} | {name: float(m.result()) for name, m in metrics.items()}


def case_of(arguments):
    training.use_logical_cpus()
    replicas, split, dtype = arguments
    keras.config.set_floatx(dtype)
    batch_size, rows, global_batch_size = SPLITS[split]
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    noise = Noise(training.DATA)

    def distributed(rows):
        images, labels = classified(noise, (rows, 12, 12, 1), 10)
        return strategy.experimental_distribute_dataset(
            tf.data.Dataset.from_tensor_slices((images.astype(dtype), labels)).batch(batch_size))

    train, test = distributed(rows), distributed(TEST_ROWS)
    loop = Loop(strategy, global_batch_size, dtype)
    epochs = [loop.epoch(train, test) for _ in range(EPOCHS)]
    case = {"optimizer": "Adam", "options": {"learning_rate": 0.003}, "replicas": replicas,
            "dtype": dtype, "batch": batch_size, "rows": rows, "test_rows": TEST_ROWS,
            "global_batch_size": global_batch_size, "epochs": epochs}
    if dtype == "float64":
        case["kept"] = training.checks(
            sum(len(epoch["loss"]) for epoch in epochs),
            [training.components(v)[0] for v in loop.model.variables()])
    return case


def main():
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as processes:
        cases = processes.map(case_of, [
            (replicas, split, dtype) for replicas in training.REPLICAS for split in SPLITS
            for dtype in ("float64", "float32")], chunksize=1)
    training.write("guide", {"source": f"TensorFlow {tf.__version__}, keras {keras.__version__}",
                             "weights": Guide.weights, "cases": cases})


if __name__ == "__main__":
    main()
