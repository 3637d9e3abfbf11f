#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""training.py [NAME ...]: writes the fixtures of tests/golden/training/, all or those of the programs.

How TensorFlow (PyPI's tensorflow-cpu and tf_keras) trains small programs under MirroredStrategy with
1, 2 and 3 logical CPUs, on batches that divide evenly and on others, where the last one of an epoch
is a single row and all replicas but the first get none. tests/conformance/golden_training_test.cc
trains the same programs.

First weights and data come from `Noise`, an integer generator that tests/support/values.h has, too,
so that fixtures hold results only: the loss of each step and, at some steps of the f64 cases, each
variable's norm, two of its elements and its projections on three vectors of noise in [-1, 1). That is
enough to find a difference: a projection adds up all elements, and of a difference d that knows
nothing of the noise it is |d| / sqrt(3) in the root mean square. For all three to be below |d| / 10 is
a chance of 1 in 400 at one step of one variable; norm and elements say what kind of difference it is.
"""
import json
import multiprocessing
import os
import pathlib
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

from generate import in_double

FOLDER = pathlib.Path(__file__).parent / "training"
REPLICAS = [1, 2, 3]


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


WEIGHTS, DATA, PROJECTIONS = 1, 2, 100  # seeds


def classified(noise, shape, classes):
    """Inputs and labels: which of a row's first numbers is the largest."""
    x = noise.tensor(shape)
    return x, x.reshape(shape[0], -1)[:, :classes].argmax(axis=1)


def weight(name, shape, scale, offset=0.0):
    """A variable of ours, which starts at offset + scale * noise, and how large it is."""
    return {"name": name, "shape": list(shape), "scale": scale, "offset": offset}


def dense(name, size, out):
    return [weight(f"{name}/kernel", (size, out), round((3 / size) ** 0.5, 3)),
            weight(f"{name}/bias", (out,), 0.1)]


class Program:
    """What is trained. `weights` are in the order of `variables()`."""

    optimizers = {"": ("SGD", {"learning_rate": 0.1})}  # by the fixture's suffix
    steps = 50
    kept = [1, 2, 10, 50]
    batches = {"even": (24, 72), "uneven": (25, 76)}  # rows of a global batch, of an epoch


class Mlp(Program):
    optimizers = {
        "sgd": ("SGD", {"learning_rate": 0.1}),
        "momentum": ("SGD", {"learning_rate": 0.05, "momentum": 0.9}),
        "adam": ("Adam", {"learning_rate": 0.002}),
    }
    weights = dense("dense", 64, 256) + dense("dense_1", 256, 144) + dense("dense_2", 144, 10)

    def __init__(self):
        self.layers = [keras.layers.Dense(256, activation="relu"),
                       keras.layers.Dense(144, activation="tanh"), keras.layers.Dense(10)]

    @staticmethod
    def data(noise, rows):
        return classified(noise, (rows, 64), 10)

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x, training=True) if isinstance(
                layer, keras.layers.BatchNormalization) else layer(x)
        return x

    def variables(self):
        return [v for layer in self.layers for v in layer.weights]

    @staticmethod
    def losses(y, logits):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(y, logits)


PROGRAMS = {"mlp": Mlp}


def checks(step, variables):
    """What a fixture tells of the variables after a step."""
    kept = {"step": step, "norms": [], "elements": [], "projections": []}
    for i, value in enumerate(variables):
        value = value.astype(np.float64)
        flat = value.ravel()
        kept["norms"].append(float(np.linalg.norm(flat)))
        kept["elements"].append([float(flat[0]), float(flat[flat.size // 2])])
        kept["projections"].append(
            [float(projection(i, j, flat.size) @ flat) for j in range(3)])
    return kept


_projections = {}


def projection(variable, number, size):
    key = (variable, number, size)
    if key not in _projections:
        _projections[key] = Noise(PROJECTIONS + 10 * variable + number).tensor((size,))
    return _projections[key]


def components(variable):
    """A variable's numbers on each replica."""
    value = getattr(variable, "value", variable)
    return [c.numpy() for c in getattr(value, "values", [value])]


def train(program_type, optimizer_name, options, replicas, split, dtype):
    keras.backend.clear_session()
    keras.config.set_floatx(dtype)
    batch_size, rows = program_type.batches[split]
    x, y = program_type.data(Noise(DATA), rows)
    if x.dtype == np.float64:
        x = x.astype(dtype)
    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size)
    dealt = strategy.experimental_distribute_dataset(dataset)
    with strategy.scope():
        model = program_type()
        model(x[:1])  # makes the variables
        noise = Noise(WEIGHTS)
        for spec, variable in zip(model.weights, model.variables(), strict=True):
            value = spec["offset"] + noise.tensor(spec["shape"], spec["scale"])
            variable.assign(value.reshape(variable.shape).astype(dtype))
        trainable = [v for v in model.variables() if v.trainable]
        make = getattr(keras.optimizers, optimizer_name)
        optimizer = make(**in_double(make, options))
        optimizer.build(trainable)

    def replica_step(x, y):
        context = tf.distribute.get_replica_context()
        local = tf.shape(x, tf.int64)[0]
        with tf.GradientTape() as tape:
            losses = model.losses(y, model(x))
            loss = tf.nn.compute_average_loss(
                losses, global_batch_size=context.all_reduce(tf.distribute.ReduceOp.SUM, local))
        gradients = tape.gradient(loss, [v.value for v in trainable])
        optimizer.apply_gradients(zip(gradients, trainable))
        return loss, local

    @tf.function(reduce_retracing=True)
    def step(x, y):
        loss, local = strategy.run(replica_step, args=(x, y))
        return (strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None),
                strategy.experimental_local_results(local))

    case = {"optimizer": optimizer_name, "options": options, "replicas": replicas, "dtype": dtype,
            "batch": batch_size, "rows": rows, "dealt": [], "loss": [], "kept": []}
    while len(case["loss"]) < model.steps:
        for batch in dealt:
            loss, local = step(*batch)
            case["loss"].append(float(loss) if dtype == "float64" else float(f"{float(loss):.9g}"))
            if len(case["dealt"]) < -(-rows // batch_size):
                case["dealt"].append([int(n) for n in local])
            number = len(case["loss"])
            if number in model.kept and dtype == "float64":
                all_values = [components(v) for v in model.variables()]
                for values in all_values:
                    assert all(np.array_equal(values[0], value) for value in values)
                case["kept"].append(checks(number, [values[0] for values in all_values]))
            if number == model.steps:
                break
    return case


def write(name, fixture):
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(fixture, indent=1)
    text = re.sub(r"\[[-+.\de,\s]+\]", lambda m: re.sub(r"\s+", " ", m[0])
                  .replace("[ ", "[").replace(" ]", "]"), text)  # numbers of a list in one line
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def case_of(arguments):
    """In a process of its own: strategies of one process mix up their collectives."""
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * max(REPLICAS))
    name, *others = arguments
    return train(PROGRAMS[name], *others)


def main(names):
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as processes:
        for name in names or PROGRAMS:
            program = PROGRAMS[name]
            for suffix, (optimizer, options) in program.optimizers.items():
                cases = processes.map(case_of, [
                    (name, optimizer, options, replicas, split, dtype)
                    for replicas in REPLICAS for split in program.batches
                    for dtype in ("float64", "float32")], chunksize=1)
                write("_".join(filter(None, [name, suffix])), {
                    "source": f"TensorFlow {tf.__version__}, Keras {keras.__version__}",
                    "weights": program.weights, "cases": cases,
                })


if __name__ == "__main__":
    main(sys.argv[1:])
