#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""layers.py [NAME ...]: writes the fixtures of tests/golden/nn/, all or those of the named layers.

What Keras 3 (PyPI's tensorflow-cpu) gives for layers and losses: results, gradients with respect to
inputs and weights, and the weights that a call in training changes. A fixture holds all the numbers, so
tests/nn/golden.h only compares. In f64; in f32 where TensorFlow has no f64 kernel.
"""
import json
import math
import os
import pathlib
import sys

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import numpy as np
import tensorflow as tf

FOLDER = pathlib.Path(__file__).parent / "nn"


def case(shape, *, dtype="float64", training=False, call=None, ids=None, **options):
    """A call of a layer made with `options`, with inputs of `shape` (or of each of a list of shapes);
    `ids`: integers below it instead of numbers. `call` holds further arguments of the call."""
    return {"shapes": shape if isinstance(shape, list) else [shape], "dtype": dtype, "ids": ids,
            "training": training, "call": call or {}, "options": options}


# By the names that Keras gives them.
LAYERS = {
    "Dense": [
        case((3, 5), units=4),
        case((2, 3, 4), units=3, activation="tanh"),
        case((3, 5), units=2, activation="silu", use_bias=False),
    ],
    "Conv2D": [
        case((2, 5, 6, 2), filters=3, kernel_size=[2, 3], padding="same", activation="tanh"),
        case((1, 7, 6, 2), filters=2, kernel_size=3, strides=2),
        case((1, 7, 6, 4), filters=4, kernel_size=3, strides=2, padding="same", groups=2),
        case((1, 7, 7, 1), filters=2, kernel_size=3, dilation_rate=2, use_bias=False),
    ],
    "Conv1D": [
        case((2, 6, 3), filters=2, kernel_size=3, activation="tanh"),
        case((1, 9, 2), filters=4, kernel_size=2, strides=2, padding="same", groups=2),
        case((1, 9, 2), filters=1, kernel_size=3, dilation_rate=2, use_bias=False),
    ],
    "Conv3D": [
        case((1, 3, 4, 3, 2), filters=2, kernel_size=[2, 3, 1], activation="tanh"),
        case((1, 4, 3, 4, 1), filters=2, kernel_size=2, strides=2, padding="same"),
    ],
    "Conv1DTranspose": [
        case((2, 3, 2), filters=3, kernel_size=3, strides=2, activation="tanh"),
        case((1, 4, 2), filters=2, kernel_size=3, strides=2, padding="same"),
        case((1, 4, 2), filters=2, kernel_size=4, strides=3, padding="same", output_padding=2),
    ],
    "Conv2DTranspose": [
        case((2, 2, 3, 2), filters=3, kernel_size=[2, 3], activation="tanh"),
        case((1, 3, 2, 3), filters=2, kernel_size=3, strides=2, padding="same"),
        case((1, 2, 3, 1), filters=2, kernel_size=3, strides=[2, 2], output_padding=1),
        case((1, 3, 3, 1), filters=1, kernel_size=1, strides=2, use_bias=False),
    ],
    "Conv3DTranspose": [
        case((1, 2, 2, 3, 2), filters=1, kernel_size=2, strides=2, padding="same"),
        case((1, 2, 1, 2, 1), filters=2, kernel_size=[1, 2, 2], activation="tanh"),
    ],
    "DepthwiseConv1D": [
        case((2, 6, 3), kernel_size=3, depth_multiplier=2, activation="tanh"),
        case((1, 7, 2), kernel_size=2, strides=2, padding="same", use_bias=False),
    ],
    "DepthwiseConv2D": [
        case((2, 4, 5, 2), kernel_size=[2, 3], depth_multiplier=2, activation="tanh"),
        case((1, 6, 7, 2), kernel_size=3, strides=2, padding="same", use_bias=False),
    ],
    "MaxPooling1D": [
        case((2, 7, 2), pool_size=2),
        case((1, 7, 2), pool_size=3, strides=2, padding="same"),
    ],
    "MaxPooling2D": [
        case((2, 5, 4, 2), pool_size=2),
        case((1, 5, 6, 2), pool_size=[3, 2], strides=2, padding="same"),
    ],
    "MaxPooling3D": [
        case((1, 4, 4, 3, 2), dtype="float32", pool_size=2),
        case((1, 5, 3, 4, 1), dtype="float32", pool_size=[3, 2, 2], strides=[2, 1, 2], padding="same"),
    ],
    "AveragePooling1D": [
        case((2, 7, 2), pool_size=2),
        case((1, 7, 2), pool_size=3, strides=2, padding="same"),
    ],
    "AveragePooling2D": [
        case((2, 5, 4, 2), pool_size=2),
        case((1, 5, 6, 2), pool_size=[3, 2], strides=2, padding="same"),
    ],
    "AveragePooling3D": [
        case((1, 4, 4, 3, 2), dtype="float32", pool_size=2),
        case((1, 5, 3, 4, 1), dtype="float32", pool_size=[3, 2, 2], strides=[2, 1, 2], padding="same"),
    ],
    "GlobalMaxPooling1D": [case((2, 5, 3))],
    "GlobalMaxPooling2D": [case((2, 3, 4, 3)), case((2, 3, 2, 2), keepdims=True)],
    "GlobalMaxPooling3D": [case((2, 2, 3, 2, 2))],
    "GlobalAveragePooling1D": [case((2, 5, 3))],
    "GlobalAveragePooling2D": [case((2, 3, 4, 3)), case((2, 3, 2, 2), keepdims=True)],
    "GlobalAveragePooling3D": [case((2, 2, 3, 2, 2))],
}


def number(x):
    return float(f"{x:.12g}")


def numbers(array):
    return [number(x) for x in np.asarray(array).ravel()]


def scattered(shape, phase, dtype):
    """Numbers with three decimals in (-1, 1) that look random."""
    count = math.prod(shape)
    values = [round(math.sin(12.9898 * (i + 1) + phase), 3) for i in range(count)]
    return np.array(values, dtype=dtype).reshape(shape)


def inputs_of(one):
    if one["ids"]:
        return [tf.constant((7 * np.arange(math.prod(s)) + 3 * k) % one["ids"], shape=s, dtype="int64")
                for k, s in enumerate(one["shapes"])]
    return [tf.constant(scattered(s, 0.7 + k, one["dtype"])) for k, s in enumerate(one["shapes"])]


def name_of(weight):
    """The path without the layer's own name and without the cell that Keras puts into recurrent ones."""
    return "/".join(p for p in weight.path.split("/")[1:] if not p.endswith("_cell"))


def tensor(array):
    return {"shape": list(array.shape), "values": numbers(array)}


def result_of(name, one):
    keras.config.set_floatx(one["dtype"])
    options = {k: tuple(v) if isinstance(v, list) else v for k, v in one["options"].items()}
    layer = getattr(keras.layers, name)(**options, dtype=one["dtype"])
    inputs = inputs_of(one)
    layer.build(*[x.shape for x in inputs])
    for k, weight in enumerate(layer.weights):
        value = scattered(weight.shape, 2.3 + 1.9 * k, one["dtype"])
        weight.assign(1.5 + value / 2 if name_of(weight) == "moving_variance" else value)
    before = [weight.numpy() for weight in layer.weights]
    trainable = [w.value for w in layer.trainable_weights]
    with tf.GradientTape() as tape:
        for x in inputs:
            tape.watch(x)
        call = dict(one["call"])
        if layer._call_has_training_arg:
            call["training"] = one["training"]
        output = layer(*inputs, **call)
        factor = scattered(output.shape, 5.1, one["dtype"])
        target = tf.reduce_sum(output * factor)
    gradients = tape.gradient(target, inputs + trainable)
    of_weights = dict(zip([w.path for w in layer.trainable_weights], gradients[len(inputs):]))
    weights = []
    for weight, value in zip(layer.weights, before):
        entry = {"name": name_of(weight), **tensor(value)}
        if weight.path in of_weights:
            entry["gradient"] = numbers(tf.convert_to_tensor(of_weights[weight.path]))
        elif "seed" in weight.path:
            continue
        else:
            entry["after"] = numbers(weight.numpy())
        weights.append(entry)
    return {
        "options": one["options"], "call": one["call"], "training": one["training"],
        "dtype": {"float64": "f64", "float32": "f32"}[one["dtype"]],
        "inputs": [{**tensor(x), **({} if one["ids"] else {"gradient": numbers(g)})}
                   for x, g in zip(inputs, gradients)],
        "weights": weights, "output": tensor(output), "output_gradient": numbers(factor),
    }


def write(name, kind, cases):
    FOLDER.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(c) for c in cases)
    head = json.dumps({"source": f"Keras {keras.__version__}", **kind})[:-1]
    (FOLDER / f"{name.lower()}.json").write_text(f'{head}, "cases": [\n{lines}\n]}}\n', encoding="utf-8")


def main():
    for name in sys.argv[1:] or LAYERS:
        write(name, {"layer": name}, [result_of(name, one) for one in LAYERS[name]])


if __name__ == "__main__":
    main()
