# SPDX-License-Identifier: Apache-2.0
"""The programs that training.py trains, and the noise that they start from."""
import keras
import numpy as np
import tensorflow as tf
import tf_keras


class Noise:
    """Numbers that look random, uniform in [-1, 1): lockstep::testing::Noise."""

    MASK = (1 << 64) - 1

    def __init__(self, seed):
        self.state = (seed * 2862933555777941757 + 3037000493) & self.MASK

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) & self.MASK
        return (self.state >> 11) / 4503599627370496.0 - 1.0

    def tensor(self, shape, scale=1.0):
        return np.array([scale * self.next() for _ in range(int(np.prod(shape)))]).reshape(shape)

    def below(self, end, power=1):
        """An integer, the smaller the likelier for a power above 1."""
        part = (self.next() + 1) / 2
        return int((part if power == 1 else part * part) * end)


def classified(noise, shape, classes):
    """Inputs of noise, and labels: which of a row's first numbers is the largest."""
    x = noise.tensor(shape)
    return x, x.reshape(shape[0], -1)[:, :classes].argmax(axis=1)


def weight(name, shape, scale, offset=0.0):
    """A variable of ours, by its name, that starts at offset + scale * noise."""
    return {"name": name, "shape": list(shape), "scale": scale, "offset": offset}


def kernel(name, shape):
    return weight(f"{name}/kernel", shape, round((3 / np.prod(shape[:-1])) ** 0.5, 3))


def dense(name, size, out):
    return [kernel(name, (size, out)), weight(f"{name}/bias", (out,), 0.1)]


def scale_and_offset(name, size):
    return [weight(f"{name}/gamma", (size,), 0.2, 1.0), weight(f"{name}/beta", (size,), 0.1)]


def batch_norm(name, channels):
    return scale_and_offset(name, channels) + [
        weight(f"{name}/moving_mean", (channels,), 0.1),
        weight(f"{name}/moving_variance", (channels,), 0.2, 1.0)]


class Program:
    """A model whose variables, layer by layer, are those of `weights`.

    `library` is tf_keras where Keras 3 would not do: its local batch normalisation makes all
    gradients NaN when a replica has no rows, and its Adam adds up the squares of a table's
    gradients, not the gradients, where a row was read twice.
    """

    library = keras
    fixtures = {}  # what is written: optimizer, its options, options of the model
    steps = 50
    kept = [1, 2, 10, 50]  # the steps after which a fixture tells of the variables
    batches = {"even": (24, 72), "uneven": (25, 76)}  # rows of a global batch, and of an epoch

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x, training=True) if "normalization" in layer.name else layer(x)
        return x

    def variables(self):
        return [v for layer in self.layers for v in layer.weights]

    @staticmethod
    def losses(y, logits):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)


class Mlp(Program):
    fixtures = {
        "mlp_sgd": ("SGD", {"learning_rate": 0.1}, {}),
        "mlp_momentum": ("SGD", {"learning_rate": 0.05, "momentum": 0.9}, {}),
        "mlp_adam": ("Adam", {"learning_rate": 0.002}, {}),
    }
    # tf.data's other rule: parts of 9, 8 and 8 rows.
    batches = {**Program.batches, "cyclic": (25, 76)}
    weights = dense("dense", 64, 256) + dense("dense_1", 256, 144) + dense("dense_2", 144, 10)

    def __init__(self):
        self.layers = [keras.layers.Dense(256, activation="relu"),
                       keras.layers.Dense(144, activation="tanh"), keras.layers.Dense(10)]

    @staticmethod
    def data(noise, rows):
        return classified(noise, (rows, 64), 10)


class Cnn(Program):
    library = tf_keras
    fixtures = {
        "cnn_local": ("SGD", {"learning_rate": 0.004, "momentum": 0.9}, {"synchronized": False}),
        "cnn_synchronized": ("SGD", {"learning_rate": 0.004, "momentum": 0.9},
                             {"synchronized": True}),
    }
    batches = {"even": (6, 18), "uneven": (7, 22)}
    momentum = 0.75  # of moving averages; a number that f32, in which tf_keras takes it, has too
    weights = (
        [kernel("conv2d", (3, 3, 3, 32))] + batch_norm("batch_norm", 32)
        + [kernel("conv2d_1", (3, 3, 32, 64))] + batch_norm("batch_norm_1", 64)
        + dense("dense", 256, 320) + dense("dense_1", 320, 10))

    def __init__(self, synchronized):
        layers = tf_keras.layers
        self.layers = []
        for channels in (32, 64):
            self.layers += [
                layers.Conv2D(channels, 3, padding="same", use_bias=False),
                layers.BatchNormalization(momentum=self.momentum, synchronized=synchronized),
                layers.ReLU(), layers.MaxPooling2D()]
        self.layers += [layers.Flatten(), layers.Dense(320, activation="relu"), layers.Dense(10)]

    @staticmethod
    def data(noise, rows):
        return classified(noise, (rows, 8, 8, 3), 10)


class Embedding(Program):
    """Of six numbers, of which small ones repeat in a row, on a replica and over the replicas."""

    library = tf_keras
    fixtures = {
        "embedding_sgd": ("SGD", {"learning_rate": 0.5}, {}),
        "embedding_momentum": ("SGD", {"learning_rate": 0.1, "momentum": 0.9}, {}),
        "embedding_adam": ("Adam", {"learning_rate": 0.01}, {}),
    }
    weights = ([weight("embedding/embeddings", (2500, 24), 0.5)]
               + dense("dense", 24, 16) + dense("dense_1", 16, 5))

    def __init__(self):
        layers = tf_keras.layers
        self.layers = [layers.Embedding(2500, 24), layers.GlobalAveragePooling1D(),
                       layers.Dense(16, activation="tanh"), layers.Dense(5)]

    @staticmethod
    def data(noise, rows):
        ids = np.array([[noise.below(2500, power=2) for _ in range(6)] for _ in range(rows)])
        return ids, ids.sum(axis=1) % 5


def gelu(x):
    """In f64, too; TensorFlow's own takes the square root of 1/2 in f32."""
    return 0.5 * x * (1 + tf.math.erf(x / 2.0**0.5))


class Transformer(Program):
    """Predicts the next of a sequence's tokens."""

    library = tf_keras
    fixtures = {"transformer": ("Adam", {"learning_rate": 0.003}, {})}
    batches = {"even": (6, 18), "uneven": (7, 22)}
    weights = (
        [weight("embedding/embeddings", (50, 64), 0.5),
         weight("position_embedding/embeddings", (8, 64), 0.5)]
        + scale_and_offset("transformer_block/attention_norm", 64)
        + [w for part in ("query", "key", "value", "attention_output")
           for w in dense(f"transformer_block/attention/{part}", 64, 64)]
        + scale_and_offset("transformer_block/feed_forward_norm", 64)
        + dense("transformer_block/feed_forward/inner", 64, 256)
        + dense("transformer_block/feed_forward/outer", 256, 64)
        + dense("dense", 64, 50))

    def __init__(self):
        layers = tf_keras.layers
        self.layers = [
            layers.Embedding(50, 64), layers.Embedding(8, 64),
            layers.LayerNormalization(epsilon=1e-5), layers.MultiHeadAttention(4, 16),
            layers.LayerNormalization(epsilon=1e-5), layers.Dense(256, activation=gelu),
            layers.Dense(64), layers.Dense(50)]

    def __call__(self, x):
        tokens, positions, norm, attention, norm_1, inner, outer, head = self.layers
        x = tokens(x) + positions(tf.range(8))
        normal = norm(x)
        x += attention(normal, normal, use_causal_mask=True)
        return head(x + outer(inner(norm_1(x))))

    @staticmethod
    def data(noise, rows):
        sequences = []
        for _ in range(rows):
            sequence = [noise.below(50)]
            for _ in range(8):
                sequence.append((3 * sequence[-1] + noise.below(3)) % 50)
            sequences.append(sequence)
        sequences = np.array(sequences)
        return sequences[:, :-1], sequences[:, 1:]

    @staticmethod
    def losses(y, logits):
        return tf.reduce_mean(Program.losses(y, logits), axis=1)


PROGRAMS = [Mlp, Cnn, Embedding, Transformer]
