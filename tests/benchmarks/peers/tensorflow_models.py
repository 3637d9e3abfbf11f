# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmarks in Keras, with what is faster than its own layers where it has such:
batch normalisation by TensorFlow's fused kernel, and an attention and normalisation of few ops."""
import math

import tensorflow as tf
from tensorflow.keras import layers

RELU = "relu"


class BatchNorm(layers.Layer):
    """As Keras's in training."""

    def build(self, shape):
        def add(name, first, **options):
            return self.add_weight(name=name, shape=shape[-1:], initializer=first, **options)

        self.gamma, self.beta = add("gamma", "ones"), add("beta", "zeros")
        self.moving = [add(name, first, trainable=False, aggregation="mean")
                       for name, first in (("mean", "zeros"), ("variance", "ones"))]

    def call(self, x):
        y, *of_batch = tf.compat.v1.nn.fused_batch_norm(x, self.gamma, self.beta, epsilon=1e-3)
        for average, value in zip(self.moving, of_batch):
            average.assign(0.99 * average + 0.01 * value)
        return y


class LayerNorm(layers.Layer):
    """As Keras's of the last axis."""

    def build(self, shape):
        self.gamma = self.add_weight(name="gamma", shape=shape[-1:], initializer="ones")
        self.beta = self.add_weight(name="beta", shape=shape[-1:], initializer="zeros")

    def call(self, x):
        mean, variance = tf.nn.moments(x, -1, keepdims=True)
        return tf.nn.batch_normalization(x, mean, variance, self.beta, self.gamma, 1e-5)


def mlp():
    return tf.keras.Sequential([
        tf.keras.Input((784,)), layers.Dense(512, RELU), layers.Dense(512, RELU),
        layers.Dense(10)])


def lenet():
    return tf.keras.Sequential([
        tf.keras.Input((28, 28, 1)), layers.Conv2D(32, 3, activation=RELU), layers.MaxPool2D(),
        layers.Conv2D(64, 3, activation=RELU), layers.MaxPool2D(), layers.Flatten(),
        layers.Dense(128, RELU), layers.Dense(10)])


def convolution(outputs, size, stride):
    """Where the stride is 2, Keras pads the far edges only; the others pad both, which computes as
    much."""
    return layers.Conv2D(outputs, size, stride, "same", use_bias=False,
                         kernel_initializer="he_normal")


def residual(x, outputs, stride):
    main = BatchNorm()(convolution(outputs, 3, stride)(x))
    main = BatchNorm()(convolution(outputs, 3, 1)(layers.ReLU()(main)))
    if x.shape[-1] != outputs:
        x = BatchNorm()(convolution(outputs, 1, stride)(x))
    return layers.ReLU()(main + x)


def resnet20():
    x = images = tf.keras.Input((32, 32, 3))
    x = layers.ReLU()(BatchNorm()(convolution(16, 3, 1)(x)))
    for outputs, first_stride in ((16, 1), (32, 2), (64, 2)):
        for stride in (first_stride, 1, 1):
            x = residual(x, outputs, stride)
    return tf.keras.Model(images, layers.Dense(10)(layers.GlobalAveragePooling2D()(x)))


class Positions(layers.Layer):
    def build(self, shape):
        self.embeddings = self.add_weight(name="embeddings", shape=shape[1:],
                                          initializer="glorot_uniform")

    def call(self, x):
        return x + self.embeddings


class Attention(layers.Layer):
    """Of several heads, each position to those before it."""

    def __init__(self, size, heads):
        super().__init__()
        self.heads, self.size = heads, size
        self.query, self.key, self.value, self.output_layer = (
            layers.Dense(size) for _ in range(4))

    def call(self, x):
        positions = x.shape[1]

        def split(x):
            parts = tf.reshape(x, (-1, positions, self.heads, self.size // self.heads))
            return tf.transpose(parts, (0, 2, 1, 3))

        q, k, v = (split(layer(x)) for layer in (self.query, self.key, self.value))
        scores = tf.matmul(q, k, transpose_b=True) / math.sqrt(self.size // self.heads)
        future = tf.linalg.band_part(tf.ones((positions, positions)), -1, 0) - 1  # 0, or -1
        mixed = tf.transpose(tf.matmul(tf.nn.softmax(scores + 1e9 * future), v), (0, 2, 1, 3))
        return self.output_layer(tf.reshape(mixed, (-1, positions, self.size)))


def transformer(x, size, heads):
    x = x + Attention(size, heads)(LayerNorm()(x))
    inner = layers.Dense(4 * size, "gelu")(LayerNorm()(x))
    return x + layers.Dense(size)(inner)


def gpt():
    size, heads, positions, tokens = 128, 4, 64, 256
    text = tf.keras.Input((positions,), dtype=tf.int32)
    x = Positions()(layers.Embedding(
        tokens, size, embeddings_initializer=tf.keras.initializers.RandomNormal(0, 0.02))(text))
    for _ in range(4):
        x = transformer(x, size, heads)
    return tf.keras.Model(text, layers.Dense(tokens)(LayerNorm()(x)))


def floats(*shape):
    return lambda: tf.random.uniform(shape)


def numbers(below, *shape):
    return lambda: tf.random.uniform(shape, maxval=below, dtype=tf.int32)


# What makes a replica's input and labels.
BATCHES = {
    "mlp": (floats(128, 784), numbers(10, 128)),
    "lenet": (floats(128, 28, 28, 1), numbers(10, 128)),
    "resnet20": (floats(64, 32, 32, 3), numbers(10, 64)),
    "gpt": (numbers(256, 32, 64), numbers(256, 32, 64)),
}
