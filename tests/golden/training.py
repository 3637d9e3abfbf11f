#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""training.py [NAME ...]: writes the fixtures of tests/golden/training/, all or those named.

How TensorFlow (PyPI's tensorflow-cpu and tf_keras) trains the programs of programs.py under
MirroredStrategy with 1, 2 and 3 logical CPUs, on batches that divide evenly and on others, where
the last one of an epoch is a single row and all replicas but the first get none.
tests/conformance/golden_training_test.cc trains the same programs.

First weights and data come from `Noise`, an integer generator that tests/support/values.h has, too,
so that fixtures hold results only: the loss of each step and, after some steps of the f64 cases,
each variable's norm, two of its elements and its projections on three vectors of noise in [-1, 1).
That is enough to find a difference: a projection adds up all elements, and of a difference d that
knows nothing of the noise it is |d| / sqrt(3) in the root mean square. For all three to be below
|d| / 10 is a chance of 1 in 400, at one step of one variable; norm and elements say what kind of
difference it is.

Moving averages are those of lockstep, which are equal on all replicas: TensorFlow's replicas follow
their own batches, and here the mean of these batches' statistics, weighted by their rows, is
followed. With as many rows on each replica that is what TensorFlow reads, which is checked.
"""
import json
import multiprocessing
import os
import pathlib
import re
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
# With oneDNN's kernels a convolution of no rows has the shape of its input, not of its output.
os.environ["TF_ENABLE_ONEDNN_OPTS"] = "0"
import keras
import numpy as np
import tensorflow as tf
import tf_keras

from generate import in_double
from programs import PROGRAMS, Noise

FOLDER = pathlib.Path(__file__).parent / "training"
REPLICAS = [1, 2, 3]
WEIGHTS, DATA, PROJECTIONS = 1, 2, 100  # seeds of noise


def checks(step, values):
    """What a fixture tells of the variables after a step."""
    kept = {"step": step, "norms": [], "elements": [], "projections": []}
    for i, value in enumerate(values):
        flat = value.ravel()
        kept["norms"].append(float(np.linalg.norm(flat)))
        kept["elements"].append([float(flat[0]), float(flat[flat.size // 2])])
        kept["projections"].append(
            [float(Noise(PROJECTIONS + 10 * i + j).tensor((flat.size,)) @ flat) for j in range(3)])
    return kept


def components(variable):
    """A variable's numbers on each replica."""
    variable = variable.value if isinstance(variable, keras.Variable) else variable
    return [component.numpy() for component in variable.values]


class MovingAverages:
    """Those of lockstep, out of what TensorFlow's replicas did to their own in each step."""

    def __init__(self, model):
        self.momentum = getattr(model, "momentum", None)
        self.variables = [v for v in model.variables() if not v.trainable]
        self.before = [components(v) for v in self.variables]
        self.averages = {id(v): before[0] for v, before in zip(self.variables, self.before)}

    def follow(self, rows, even):
        keep = self.momentum
        for i, variable in enumerate(self.variables):
            after = components(variable)
            batch = sum(n * (a - keep * b) / (1 - keep)
                        for n, a, b in zip(rows, after, self.before[i]) if n > 0) / sum(rows)
            average = keep * self.averages[id(variable)] + (1 - keep) * batch
            if even:
                np.testing.assert_allclose(average, variable.numpy(), rtol=1e-12)
            self.averages[id(variable)] = average
            self.before[i] = after

    def values(self, model):
        """Of all variables of the model."""
        values = []
        for variable in model.variables():
            own = components(variable)
            if variable.trainable:
                assert all(np.array_equal(own[0], other) for other in own)
            values.append(own[0] if variable.trainable else self.averages[id(variable)])
        return values


def make_step(strategy, model, optimizer):
    """One step of all replicas: the loss, and how many rows each has."""
    trainable = [v for v in model.variables() if v.trainable]

    def replica_step(x, y):
        context = tf.distribute.get_replica_context()
        rows = tf.shape(x, tf.int64)[0]
        with tf.GradientTape() as tape:
            losses = model.losses(y, model(x))
            loss = tf.nn.compute_average_loss(
                losses, global_batch_size=context.all_reduce(tf.distribute.ReduceOp.SUM, rows))
        sources = [v.value if isinstance(v, keras.Variable) else v for v in trainable]
        optimizer.apply_gradients(zip(tape.gradient(loss, sources), trainable))
        return loss, rows

    @tf.function(reduce_retracing=True)
    def step(x, y):
        loss, rows = strategy.run(replica_step, args=(x, y))
        return (strategy.reduce(tf.distribute.ReduceOp.SUM, loss, axis=None),
                strategy.experimental_local_results(rows))

    return step


def start(program, optimizer, options, model_options, example, dtype):
    """Model and optimizer, in the strategy's scope."""
    model = program(**model_options)
    model(example)  # makes the variables
    noise = Noise(WEIGHTS)
    for spec, variable in zip(model.weights, model.variables(), strict=True):
        value = spec["offset"] + noise.tensor(spec["shape"], spec["scale"])
        variable.assign(value.reshape(variable.shape).astype(dtype))
    make = getattr(program.library.optimizers, optimizer)
    optimizer = make(**in_double(make, options))
    optimizer.build([v for v in model.variables() if v.trainable])
    return model, optimizer


def train(program, fixture, replicas, split, dtype):
    keras.config.set_floatx(dtype)
    tf_keras.backend.set_floatx(dtype)
    optimizer_name, options, model_options = program.fixtures[fixture]
    batch_size, rows = program.batches[split]
    x, y = program.data(Noise(DATA), rows)
    if x.dtype == np.float64:
        x = x.astype(dtype)

    strategy = tf.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(batch_size)
    if split == "cyclic":
        options_of_data = tf.data.Options()
        options_of_data.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.OFF)
        dataset = dataset.with_options(options_of_data)
    dealt = strategy.experimental_distribute_dataset(dataset)
    with strategy.scope():
        model, optimizer = start(program, optimizer_name, options, model_options, x[:1], dtype)
    averages = MovingAverages(model)
    step = make_step(strategy, model, optimizer)

    case = {"optimizer": optimizer_name, "options": options, "replicas": replicas, "split": split,
            "dtype": dtype, "batch": batch_size, "rows": rows, "dealt": [], "loss": [], "kept": []}
    losses = case["loss"]
    while len(losses) < model.steps:
        case["dealt"].clear()
        for batch in dealt:
            loss, local = step(*batch)
            case["dealt"].append([int(n) for n in local])
            losses.append(float(loss) if dtype == "float64" else float(f"{float(loss):.9g}"))
            if dtype == "float64":
                averages.follow(case["dealt"][-1], split == "even")
                if len(losses) in model.kept:
                    case["kept"].append(checks(len(losses), averages.values(model)))
    del losses[model.steps:]
    return case


def use_logical_cpus():
    cpu = tf.config.list_physical_devices("CPU")[0]
    tf.config.set_logical_device_configuration(
        cpu, [tf.config.LogicalDeviceConfiguration()] * max(REPLICAS))


def case_of(arguments):
    """In a process of its own: strategies of one process mix up their collectives."""
    use_logical_cpus()
    number, *others = arguments
    return train(PROGRAMS[number], *others)


def write(name, fixture):
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(fixture, indent=1)
    text = re.sub(r"\[[-+.\de,\s]+\]", lambda m: re.sub(r"\s+", " ", m[0])
                  .replace("[ ", "[").replace(" ]", "]"), text)  # numbers of a list in one line
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def main(names):
    with multiprocessing.get_context("fork").Pool(2, maxtasksperchild=1) as processes:
        for number, program in enumerate(PROGRAMS):
            for fixture in program.fixtures:
                if names and fixture not in names:
                    continue
                cases = processes.map(case_of, [
                    (number, fixture, replicas, split, dtype)
                    for replicas in REPLICAS for split in program.batches
                    for dtype in ("float64", "float32")], chunksize=1)
                write(fixture, {
                    "source": f"TensorFlow {tf.__version__}, {program.library.__name__} "
                              f"{program.library.__version__}",
                    "weights": program.weights, "cases": cases,
                })


if __name__ == "__main__":
    main(sys.argv[1:])
