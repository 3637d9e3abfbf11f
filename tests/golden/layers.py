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
    "BatchNormalization": [
        case((4, 3), training=True),
        case((2, 2, 3, 2), training=True, momentum=0.8, epsilon=0.01),
        case((2, 2, 3, 2), momentum=0.8),
        case((3, 2, 2), training=True, center=False, scale=False),
    ],
    "LayerNormalization": [
        case((3, 4)),
        case((2, 3, 4), axis=[1, 2], epsilon=0.01),
        case((2, 3, 4), center=False, scale=False),
    ],
    "RMSNormalization": [case((3, 4)), case((2, 3, 4), epsilon=0.01)],
    "GroupNormalization": [
        case((2, 3, 4), groups=2),
        case((2, 2, 2, 6), groups=3, epsilon=0.01, center=False),
        case((2, 2, 2, 4), groups=4, scale=False),
    ],
    "Embedding": [case((2, 3), ids=5, input_dim=5, output_dim=3)],
    "Activation": [
        *(case((2, 3), activation=a)
          for a in ("relu", "sigmoid", "elu", "softplus", "silu", "linear", "tanh")),
        case((2, 3), dtype="float32", activation="gelu"),  # TensorFlow rounds sqrt(1/2) to f32
    ],
    "Flatten": [case((2, 3, 2))],
    "Reshape": [case((2, 3, 2), target_shape=[6]), case((2, 3, 4), target_shape=[2, -1])],
    "ZeroPadding1D": [case((2, 3, 2), padding=[1, 2])],
    "ZeroPadding2D": [case((2, 2, 3, 1), padding=[[1, 0], [2, 3]])],
    "ZeroPadding3D": [case((1, 2, 1, 2, 1), padding=[[1, 0], [0, 1], [2, 1]])],
    "UpSampling1D": [case((2, 3, 2), size=3)],
    "UpSampling2D": [case((2, 2, 3, 2), size=[2, 3])],
    "UpSampling3D": [case((1, 2, 1, 2, 2), size=[2, 3, 1])],
    "Dropout": [case((2, 3), rate=0.5)],
}

SHARES = "shares"  # rows of positive numbers that sum to 1
CLASSES = "classes"  # class numbers; also as 1 among 0
ONE_HOT = "one_hot"
BITS = "bits"  # 0 and 1
SIGNS = "signs"  # -1 and 1
POSITIVE = "positive"
ANY = "any"


# Kinds of targets and predictions [4, 3], and options, by the names that Keras gives them.
LOSSES = {
    "mean_squared_error": [(ANY, ANY, {})],
    "mean_absolute_error": [(ANY, ANY, {})],
    "mean_absolute_percentage_error": [(ANY, ANY, {})],
    "mean_squared_logarithmic_error": [(POSITIVE, POSITIVE, {}), (POSITIVE, ANY, {})],
    "huber": [(ANY, ANY, {}), (ANY, ANY, {"delta": 0.3})],
    "log_cosh": [(ANY, ANY, {})],
    "binary_crossentropy": [
        (BITS, SHARES, {}), (BITS, ANY, {"from_logits": True}),
        (BITS, SHARES, {"label_smoothing": 0.2}),
        (SHARES, ANY, {"from_logits": True, "label_smoothing": 0.1}),
    ],
    "categorical_crossentropy": [
        (ONE_HOT, SHARES, {}), (SHARES, POSITIVE, {}), (ONE_HOT, ANY, {"from_logits": True}),
        (ONE_HOT, ANY, {"from_logits": True, "label_smoothing": 0.1}),
        (ONE_HOT, SHARES, {"label_smoothing": 0.3}),
    ],
    "sparse_categorical_crossentropy": [
        (CLASSES, SHARES, {}), (CLASSES, ANY, {"from_logits": True}),
    ],
    "hinge": [(SIGNS, ANY, {}), (BITS, ANY, {})],
    "squared_hinge": [(SIGNS, ANY, {}), (BITS, ANY, {})],
    "categorical_hinge": [(ONE_HOT, ANY, {})],
    "kl_divergence": [(SHARES, SHARES, {})],
    "poisson": [(POSITIVE, POSITIVE, {})],
    "cosine_similarity": [(ANY, ANY, {})],
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


def of_kind(kind, phase):
    x = 2 * scattered((4, 3), phase, "float64")
    classes = (np.arange(4) * 2) % 3
    return {
        ANY: lambda: x, POSITIVE: lambda: np.abs(x) + 0.1, BITS: lambda: np.float64(x > 0),
        SIGNS: lambda: np.sign(x), CLASSES: lambda: classes, ONE_HOT: lambda: np.eye(3)[classes],
        SHARES: lambda: np.exp(x) / np.exp(x).sum(axis=1, keepdims=True),
    }[kind]()


def loss_of(name, targets, predictions, options):
    keras.config.set_floatx("float64")
    t = np.round(of_kind(targets, 0.4), 6)
    p = tf.constant(np.round(of_kind(predictions, 1.1), 6))
    with tf.GradientTape() as tape:
        tape.watch(p)
        loss = getattr(keras.losses, name)(t, p, **options)
        factor = scattered(loss.shape, 2.2, "float64")
        target = tf.reduce_sum(loss * factor)
    return {"loss": name, "options": options, "targets": tensor(t), "predictions": tensor(p),
            "losses": numbers(loss), "loss_gradient": numbers(factor),
            "gradient": numbers(tape.gradient(target, p))}


def main():
    for name in sys.argv[1:] or [*LAYERS, "losses"]:
        if name == "losses":
            write(name, {}, [loss_of(n, *one) for n, cases in LOSSES.items() for one in cases])
        else:
            write(name, {"layer": name}, [result_of(name, one) for one in LAYERS[name]])


if __name__ == "__main__":
    main()
