#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate_metrics.py: writes the fixtures of tests/golden/metrics/ by Keras 3 (PyPI's tensorflow-cpu).

A case is a metric, its options by Keras's names, the batches it is updated with, and its result, in
f64 but for top k; perplexity is exp of Keras's mean cross entropy. tests/metrics/golden_test.cc does the same.
"""
import json
import math
import os
import pathlib
import random

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras  # noqa: E402
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

FOLDER = pathlib.Path(__file__).parent / "metrics"
ROWS = (7, 5, 1)  # of each batch
CLASSES = 4
DRAW = random.Random(5)


def numbers(shape, low=0.0, high=1.0):
    return np.array([round(DRAW.uniform(low, high), 4) for _ in range(math.prod(shape))]).reshape(shape)


def classes(shape):
    return np.array([DRAW.randrange(CLASSES) for _ in range(math.prod(shape))]).reshape(shape)


def bits(shape):
    return np.array([float(DRAW.random() < 0.4) for _ in range(math.prod(shape))]).reshape(shape)


def scores(rows):
    """Rows of probabilities that prefer, more or less, one class."""
    raw = numbers((rows, CLASSES), 0.05, 1.0)
    return np.round(raw / raw.sum(-1, keepdims=True), 4)


def dense(rows):
    return np.eye(CLASSES)[classes((rows,))]


KINDS = {  # labels and predictions of so many rows
    "sparse": lambda n: (classes((n,)), scores(n)),
    "dense": lambda n: (dense(n), scores(n)),
    "binary": lambda n: (bits((n,)), numbers((n,))),
    "column": lambda n: (bits((n, 1)), numbers((n, 1))),
    "labels": lambda n: (bits((n, 3)), numbers((n, 3))),
    "logits": lambda n: (bits((n,)), numbers((n,), -3.0, 3.0)),
    "values": lambda n: (numbers((n, 3), -2.0, 2.0), numbers((n, 3), -2.0, 2.0)),
    "pair": lambda n: (classes((n,)), classes((n,))),
}
CASES = {
    "accuracy": [
        ("SparseCategoricalAccuracy", {}, "sparse"),
        ("CategoricalAccuracy", {}, "dense"),
        ("BinaryAccuracy", {}, "column"),
        ("BinaryAccuracy", {"threshold": 0.3}, "labels"),
        ("SparseTopKCategoricalAccuracy", {"k": 2}, "sparse"),
        ("SparseTopKCategoricalAccuracy", {"k": 3}, "sparse"),
        ("TopKCategoricalAccuracy", {"k": 2}, "dense"),
    ],
    "regression": [
        ("MeanSquaredError", {}, "values"),
        ("RootMeanSquaredError", {}, "values"),
        ("MeanAbsoluteError", {}, "values"),
        ("Perplexity", {}, "sparse"),
    ],
    "confusion": [
        (name, options, kind)
        for name in ("Precision", "Recall")
        for options, kind in (
            ({}, "binary"),
            ({"thresholds": [0.2, 0.5, 0.8]}, "binary"),
            ({"thresholds": [0.4]}, "labels"),
            ({"top_k": 2}, "dense"),
            ({"class_id": 1, "thresholds": [0.25]}, "dense"),
            ({"top_k": 2, "class_id": 3}, "dense"),
            ({"top_k": 2, "thresholds": [0.3]}, "dense"),
        )
    ] + [("ConfusionMatrix", {}, "pair")],
    "auc": [
        ("AUC", {"curve": curve, "summation_method": rule, **options}, kind)
        for curve in ("ROC", "PR")
        for rule in ("interpolation", "minoring", "majoring")
        for options, kind in (({}, "binary"), ({"num_thresholds": 7}, "labels"))
    ] + [
        ("AUC", {"thresholds": [0.7, 0.1, 0.4]}, "binary"),
        ("AUC", {"from_logits": True}, "logits"),
        ("AUC", {"from_logits": True, "curve": "PR", "num_thresholds": 20}, "logits"),
    ],
    "f_score": [
        (name, {"average": average, **options}, "dense")
        for average in (None, "micro", "macro", "weighted")
        for name, options in (
            ("F1Score", {}), ("F1Score", {"threshold": 0.25}), ("FBetaScore", {"beta": 2.0}),
        )
    ],
}


def keras_result(name, options, batches):
    floats = "float32" if "TopK" in name else "float64"  # in_top_k has no f64
    keras.config.set_floatx(floats)
    if name == "ConfusionMatrix":
        total = np.zeros((CLASSES, CLASSES))
        for b in batches:
            total += tf.math.confusion_matrix(
                b["labels"], b["predictions"], CLASSES, weights=b.get("weight"), dtype=tf.float64)
        return total
    if name == "Perplexity":
        metric = keras.metrics.SparseCategoricalCrossentropy(from_logits=True)
    else:
        metric = getattr(keras.metrics, name)(**options)
    for b in batches:
        predictions = b["predictions"].astype(floats)
        metric.update_state(b["labels"], predictions, sample_weight=b.get("weight"))
    result = np.array(metric.result())
    return np.exp(result) if name == "Perplexity" else result


def listed(array):
    return {"shape": list(array.shape), "values": np.asarray(array, dtype="float64").ravel().tolist()}


def case(name, options, kind, weighted):
    batches = []
    for rows in ROWS:
        labels, predictions = KINDS[kind](rows)
        batch = {"labels": labels, "predictions": predictions}
        if weighted:
            batch["weight"] = numbers((rows,), 0.0, 2.0)
        batches.append(batch)
    result = keras_result(name, options, batches)
    return {
        "metric": name, "options": options, "integers": kind in ("sparse", "pair"),
        "batches": [{k: listed(v) for k, v in b.items()} for b in batches],
        "result": listed(np.asarray(result)),
    }


def text_of(fixture):
    """JSON, a batch to a line."""
    cases = []
    for one in fixture["cases"]:
        lines = ",\n   ".join(json.dumps(b) for b in one["batches"])
        head = {k: v for k, v in one.items() if k != "batches"}
        cases.append(f'  {json.dumps(head)[:-1]}, "batches": [\n   {lines}]}}')
    return f'{{"source": {json.dumps(fixture["source"])}, "cases": [\n' + ",\n".join(cases) + "\n]}\n"


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, cases in CASES.items():
        fixture = {
            "source": f"Keras {keras.__version__}",
            "cases": [case(*one, weighted) for one in cases for weighted in (False, True)],
        }
        (FOLDER / f"{name}.json").write_text(text_of(fixture), encoding="utf-8")


if __name__ == "__main__":
    main()
