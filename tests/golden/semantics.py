#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""semantics.py [NAME ...]: writes the fixtures of tests/golden/semantics/, all or those named: what
TensorFlow (PyPI's tensorflow-cpu) gives for calls on distributed variables, values and losses under
MirroredStrategy with 1, 2 and 3 logical CPUs, a row each. Where it refuses, a row has the exception's
name, where it does not return, as from some collectives of shapes that differ, "Hangs".
tests/conformance/golden_semantics_test.cc makes the same calls.
"""
import contextlib
import itertools
import json
import multiprocessing
import os
import pathlib
import sys
import unittest.mock

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent / "semantics"
REPLICAS = (1, 2, 3)
START = [1.0, 2.0, 4.0]
SYNCHRONIZATIONS = {"automatic": tf.VariableSynchronization.AUTO,
                    "on_write": tf.VariableSynchronization.ON_WRITE,
                    "on_read": tf.VariableSynchronization.ON_READ}
AGGREGATIONS = {"none": tf.VariableAggregation.NONE, "sum": tf.VariableAggregation.SUM,
                "mean": tf.VariableAggregation.MEAN,
                "only_first_replica": tf.VariableAggregation.ONLY_FIRST_REPLICA}
ASSIGNMENTS = ("assign", "assign_add", "assign_sub")
SCATTERS = ("scatter_add", "scatter_sub", "scatter_mul", "scatter_div", "scatter_min", "scatter_max",
            "scatter_update")
OPS = {"sum": tf.distribute.ReduceOp.SUM, "mean": tf.distribute.ReduceOp.MEAN}


class Hangs(Exception):
    """TensorFlow does not return."""


def strategy_of(replicas):
    return tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])


def values_of(replica):
    """What a replica assigns."""
    return [1.5 * (replica + 1), -2.0 - replica, 0.25]


def slices_of(replica):
    """Rows that a replica changes, of which two replicas have one in common."""
    return [replica % 3, (replica + 1) % 3], [2.0 + replica, 0.5]


def numbers(x):
    return np.asarray(x).tolist()


def outcome(row, action):
    """The row with what `action` gives, or what it raises."""
    try:
        row.update(action())
    except Exception as error:  # whatever TensorFlow refuses with
        row["raises"] = type(error).__name__
    return row


def variable_row(replicas, synchronization, aggregation, operation, context):
    row = {"replicas": replicas, "synchronization": synchronization, "aggregation": aggregation,
           "operation": operation, "context": context}

    def change(variable, replica):
        if operation in ASSIGNMENTS:
            getattr(variable, operation)(tf.constant(values_of(replica)), read_value=False)
        else:
            indices, values = slices_of(replica)
            getattr(variable, operation)(
                tf.IndexedSlices(tf.constant(values), tf.constant(indices), tf.constant([3])))

    def action():
        strategy = strategy_of(replicas)
        with strategy.scope():
            variable = tf.Variable(START, synchronization=SYNCHRONIZATIONS[synchronization],
                                   aggregation=AGGREGATIONS[aggregation], trainable=False)
        if context == "replica":
            def step():
                replica = tf.distribute.get_replica_context().replica_id_in_sync_group
                change(variable, int(tf.get_static_value(replica)))
            strategy.run(step)
        else:
            with strategy.scope():
                change(variable, 0)
        result = {"components": [numbers(c) for c in strategy.experimental_local_results(variable)]}
        with strategy.scope():
            try:
                result["read"] = numbers(variable.read_value())
            except Exception as error:  # no aggregation to read by
                result["read_raises"] = type(error).__name__
        return result

    return outcome(row, action)


def variable_rows():
    for case in itertools.product(REPLICAS, SYNCHRONIZATIONS, AGGREGATIONS, ASSIGNMENTS + SCATTERS,
                                  ("replica", "cross_replica")):
        yield variable_row, case


def components_of(shape, dtype, replicas):
    """Each replica's value; `shape` may depend on the replica."""
    for r in range(replicas):
        own = shape(r)
        values = np.arange(1, 1 + np.prod(own, dtype=int)).reshape(own) * (r + 1) - 2
        yield values.astype(dtype)


SHAPES = {"scalar": lambda r: (), "vector": lambda r: (2,), "matrix": lambda r: (2, 2),
          "uneven": lambda r: (3 - r, 2), "one_empty": lambda r: (0 if r else 2, 2),
          "all_empty": lambda r: (0, 2), "wide": lambda r: (2, r + 1)}


def distributed(strategy, components):
    return strategy.experimental_distribute_values_from_function(
        lambda context: tf.constant(components[context.replica_id_in_sync_group]))


def outside(replicas, components, call, *arguments):
    strategy = strategy_of(replicas)
    values = distributed(strategy, components)
    if call == "reduce":
        return strategy.reduce(arguments[0], values, arguments[1])
    return strategy.gather(values, *arguments)


def result_of(tensor):
    array = np.asarray(tensor)
    return {"result_dtype": array.dtype.name, "result_shape": list(array.shape),
            "result": array.flatten().tolist()}


def in_replicas(replicas, components, function):
    """What `function` gives, and of each replica the gradient of its sum times 1 + replica."""
    strategy = strategy_of(replicas)

    def step(x):
        context = tf.distribute.get_replica_context()
        weight = 1.0 + tf.cast(context.replica_id_in_sync_group, tf.float32)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(context, x)
            loss = tf.reduce_sum(y) * weight
        return y, tape.gradient(loss, x)

    y, gradients = strategy.run(step, (distributed(strategy, components),))
    local = strategy.experimental_local_results
    return {**result_of(local(y)[0]),
            "gradients": [numbers(tf.reshape(g, [-1])) for g in local(gradients)]}


def collective_row(replicas, shape, dtype, call, argument, axis=None):
    components = list(components_of(SHAPES[shape], dtype, replicas))
    row = {"call": call, "replicas": replicas, "dtype": dtype,
           "shapes": [list(c.shape) for c in components],
           "values": [c.flatten().tolist() for c in components]}
    row.update({"op": argument, "axis": axis} if call in ("reduce", "all_reduce") else
               {"axis": argument})
    return outcome(row, {
        "reduce": lambda: result_of(outside(replicas, components, call, OPS[argument], axis)),
        "gather": lambda: result_of(outside(replicas, components, call, argument)),
        "all_reduce": lambda: in_replicas(
            replicas, components, lambda context, x: context.all_reduce(OPS[argument], x)),
        "all_gather": lambda: in_replicas(
            replicas, components, lambda context, x: context.all_gather(x, argument)),
    }[call])


def collective_rows():
    for replicas, shape, dtype in itertools.product(REPLICAS, SHAPES, ("float32", "int32")):
        own = replicas, shape, dtype
        for op, axis in itertools.product(OPS, (None, 0, 1)):
            yield collective_row, (*own, "reduce", op, axis)
        for axis in (0, 1):
            yield collective_row, (*own, "gather", axis)
        if dtype == "int32":
            continue
        for op in OPS if shape in ("scalar", "vector", "matrix", "all_empty") else ():
            yield collective_row, (*own, "all_reduce", op)  # of other shapes it is not defined
        for axis in (0, 1):
            yield collective_row, (*own, "all_gather", axis)


def loss_row(replicas, rows, weighted, size):
    losses = [np.arange(1, 1 + n, dtype=np.float32) * (r + 1) for r, n in enumerate(rows)]
    weights = [np.linspace(0.5, 2, n, dtype=np.float32) for n in rows]
    row = {"replicas": replicas, "losses": [numbers(x) for x in losses[:replicas]],
           "weights": [numbers(x) for x in weights[:replicas]] if weighted else None,
           "global_batch_size": size}

    def action():
        def step(own, own_weights):
            return (tf.nn.compute_average_loss(own, sample_weight=own_weights if weighted else None,
                                               global_batch_size=size),
                    tf.nn.scale_regularization_loss(own))
        strategy = strategy_of(replicas)
        average, regularization = strategy.run(
            step, (distributed(strategy, losses), distributed(strategy, weights)))
        local = strategy.experimental_local_results
        return {"average": [numbers(x) for x in local(average)],
                "regularization": [numbers(x) for x in local(regularization)]}

    return outcome(row, action)


def loss_rows():
    for case in itertools.product(REPLICAS, ((2, 2, 2), (3, 1, 0)), (False, True), (None, 12)):
        yield loss_row, case


def start():
    """TensorFlow with a CPU for each replica."""
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0],
        [tf.config.LogicalDeviceConfiguration()] * max(REPLICAS))


def row_of(case, hangs=False):
    function, arguments = case
    with unittest.mock.patch.object(tf.distribute, "MirroredStrategy", side_effect=Hangs) if hangs \
            else contextlib.nullcontext():
        return function(*arguments)


def failed_in_collective(row):
    """Not where TensorFlow refuses before, or adds on one device."""
    return row.get("raises", "ValueError") not in ("ValueError", "NotImplementedError") and (
        row["call"] != "reduce" and row["dtype"] == "float32")


def rows_of(cases):
    cases, rows = list(cases), []
    while len(rows) < len(cases):  # a collective that fails ends all later ones of its process
        with multiprocessing.get_context("spawn").Pool(1, start) as pool:
            results = pool.imap(row_of, cases[len(rows):])
            usable = True
            while usable and len(rows) < len(cases):
                try:
                    rows.append(results.next(timeout=30))
                    usable = not failed_in_collective(rows[-1])
                except multiprocessing.TimeoutError:
                    rows.append(row_of(cases[len(rows)], hangs=True))
                    usable = False
    return rows


def write(name, cases):
    lines = ",\n".join(json.dumps(row).replace("NaN", "null") for row in rows_of(cases))
    (FOLDER / f"{name}.json").write_text(
        f'{{"version": "TensorFlow {tf.__version__}", "rows": [\n{lines}\n]}}\n', encoding="utf-8")


def main():
    FOLDER.mkdir(exist_ok=True)
    fixtures = {"variables": variable_rows, "losses": loss_rows, "collectives": collective_rows}
    for name in sys.argv[1:] or fixtures:
        write(name, fixtures[name]())


if __name__ == "__main__":
    main()
