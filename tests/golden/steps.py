#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""steps.py: writes the fixtures <optimizer>_f32.json of tests/golden/optim/, single steps in f32.

Each is what Keras 3 (PyPI's tensorflow-cpu) has before a step, weights and slots, and what it makes
of it. For LARS, which it does not have, it is the paper's formula in f64, from and to f32.
tests/optim/golden_step_test.cc starts each step where Keras did, so that nothing adds up from one
to the next and the bound can be narrow.
"""
import json
import math
import os

import generate

STEPS = 20
KEPT = [1, 2, 10, 20]
# More elements than the widest vector of a CPU has lanes, and a rest; fewer; a scalar.
SHAPES = {"kernel": (3, 6), "bias": (3,), "gain": ()}
# Our slots, and where Keras has them.
SLOTS = {
    "SGD": {"velocity": "momentums"},
    "Adam": {"m": "_momentums", "v": "_velocities", "v_hat": "_velocity_hats"},
    "AdamW": {"m": "_momentums", "v": "_velocities", "v_hat": "_velocity_hats"},
    "Adamax": {"m": "_m", "u": "_u"},
    "Nadam": {"m": "_momentums", "v": "_velocities"},
    "RMSprop": {"velocity": "_velocities", "momentum": "_momentums",
                "average_gradient": "_average_gradients"},
    "Adagrad": {"accumulator": "_accumulators"},
    "Adadelta": {"accumulated_grad": "_accumulated_grads",
                 "accumulated_delta_var": "_accumulated_delta_vars"},
    "Ftrl": {"accumulator": "_accumulators", "linear": "_linears"},
    "Lion": {"m": "_momentums"},
    "Lamb": {"m": "_momentums", "v": "_velocities"},
    "Adafactor": {"r": "_r", "c": "_c", "v": "_v"},
}
SMALL = {"learning_rate": 0.001}
BETAS = {"learning_rate": 0.05, "beta_1": 0.85, "beta_2": 0.98, "epsilon": 1e-4}
EMA = {"use_ema": True, "ema_momentum": 0.9, "ema_overwrite_frequency": 10}
# How large weights are at the start and gradients always, and the options. Weights are small enough
# that their rounding stays below 1e-5 of an update, gradients that epsilon counts.
OPTIMIZERS = {
    "SGD": [
        (0.1, 1, {"learning_rate": 0.01}),
        (0.1, 1, {"learning_rate": 0.05, "momentum": 0.9}),
        (0.1, 1, {"learning_rate": 0.05, "momentum": 0.8, "nesterov": True}),
        (0.5, 1, {"learning_rate": 0.05, "weight_decay": 0.2, "exclude": ["bias"]}),
        (0.1, 1, {"learning_rate": 0.05, "momentum": 0.5, **EMA}),
        (0.1, 1, {"learning_rate": 0.1, "clipvalue": 0.5}),
        (0.1, 1, {"learning_rate": 0.1, "clipnorm": 0.4}),
        (0.1, 1, {"learning_rate": 0.1, "global_clipnorm": 0.4}),
    ],
    "Adam": [
        (0.005, 1e-3, {**SMALL, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}),
        (0.1, 1e-2, BETAS),
        (0.1, 1e-2, {**BETAS, "amsgrad": True}),
        (0.5, 1e-2, {**BETAS, "weight_decay": 0.1, **EMA}),
    ],
    "AdamW": [
        (0.005, 1e-3, SMALL),
        (0.5, 1e-2, {**BETAS, "weight_decay": 0.1, "exclude": ["ker.*l"]}),
    ],
    "Adamax": [
        (0.005, 1e-3, {**SMALL, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}),
        (0.1, 1e-2, {**BETAS, "clipvalue": 5e-3}),
    ],
    "Nadam": [
        (0.005, 1e-3, {**SMALL, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}),
        (0.1, 1e-2, {**BETAS, "clipnorm": 1e-2}),
    ],
    "RMSprop": [
        (0.005, 1e-3, {**SMALL, "rho": 0.9, "epsilon": 1e-7}),
        (0.1, 0.1, {"learning_rate": 0.02, "rho": 0.8, "momentum": 0.7, "epsilon": 1e-3}),
        (0.1, 0.1, {"learning_rate": 0.02, "rho": 0.8, "centered": True, "epsilon": 1e-3}),
        (0.1, 0.1, {"learning_rate": 0.02, "rho": 0.8, "momentum": 0.7, "centered": True,
                    "epsilon": 1e-3}),
    ],
    "Adagrad": [
        (0.005, 1, SMALL),
        (0.1, 1, {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": 1e-3,
                  "weight_decay": 0.1}),
    ],
    "Adadelta": [
        (1e-6, 1e-3, {**SMALL, "rho": 0.95, "epsilon": 1e-7}),
        (0.1, 0.1, {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-3}),
    ],
    "Ftrl": [
        (0.005, 1, SMALL),
        (0.1, 1, {"learning_rate": 0.1, "l1_regularization_strength": 0.05,
                  "l2_regularization_strength": 0.1, "l2_shrinkage_regularization_strength": 0.02,
                  "beta": 0.3}),
        (0.1, 1, {"learning_rate": 0.1, "learning_rate_power": -0.3,
                  "initial_accumulator_value": 0.4}),
    ],
    "Lion": [
        (0.005, 1e-3, SMALL),
        (0.1, 1, {"learning_rate": 0.01, "beta_1": 0.9, "beta_2": 0.95, "weight_decay": 0.1}),
    ],
    "Lamb": [
        (1, 1e-3, {"learning_rate": 0.05, "beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-7}),
        (1, 1e-2, {**BETAS, "weight_decay": 0.1, "global_clipnorm": 3e-2}),
    ],
    "Adafactor": [
        (0.5, 1e-3, {"learning_rate": 0.1}),
        (1e-3, 1e-3, {"learning_rate": 0.5, "beta_2_decay": -0.7, "clip_threshold": 0.8,
                      "epsilon_2": 0.01}),
        (0.5, 1, {"learning_rate": 0.3, "weight_decay": 0.1}),
    ],
}
LARS = [
    (1, 1, {"learning_rate": 1.0, "momentum": 0.8, "trust_coefficient": 0.2}),
    (1, 1, {"learning_rate": 1.0, "momentum": 0.8, "trust_coefficient": 0.2, "weight_decay": 0.5}),
]


def start(scale):
    """Each variable's weights."""
    return filled(lambda i: scale * generate.start(i))


def gradients(scale, t):
    """Each variable's gradients of step t."""
    return filled(lambda i: scale * math.sin(1.7 * t + 0.9 * i))


def filled(number):
    import numpy as np

    arrays, first = {}, 0
    for name, shape in SHAPES.items():
        size = math.prod(shape)
        flat = [number(first + k) for k in range(size)]
        arrays[name] = np.array(flat, np.float32).reshape(shape)
        first += size
    return arrays


def walk(options, scale, apply, read):
    """The kept steps of `apply(gradients)`; `read()` is each variable's weights and slots."""
    steps = []
    for t in range(1, STEPS + 1):
        before, given = read(), gradients(scale, t)
        apply(given)
        if t in KEPT:
            steps.append({"iterations": t - 1, "variables": {
                name: {"gradient": given[name], "before": before[name], "after": after}
                for name, after in read().items()}})
    return {"options": options, "steps": steps}


def keras_case(keras, name, weights, scale, options):
    variables = {
        n: keras.Variable(value, dtype="float32", name=n) for n, value in start(weights).items()
    }
    optimizer = getattr(keras.optimizers, name)(
        **{k: v for k, v in options.items() if k != "exclude"})
    if "exclude" in options:
        optimizer.exclude_from_weight_decay(var_names=options["exclude"])
    optimizer.build(list(variables.values()))
    slots = {ours: getattr(optimizer, theirs) for ours, theirs in SLOTS[name].items()
             if ours != "v_hat" or options.get("amsgrad")}
    if options.get("use_ema"):
        slots["average"] = optimizer._model_variables_moving_average
    factored = {"kernel": ["r", "c"], "bias": ["v"], "gain": ["v"]}  # the rest Keras does not read

    def apply(given):
        optimizer.apply([given[n] for n in variables], list(variables.values()))

    def read():
        return {
            n: {"weights": variable.numpy(),
                **{slot: of[i].numpy() for slot, of in slots.items()
                   if of and (name != "Adafactor" or slot in factored[n])}}
            for i, (n, variable) in enumerate(variables.items())
        }

    return walk(options, scale, apply, read)


def lars_case(weights, scale, options):
    """Algorithm 1 of arXiv:1708.03888."""
    import numpy as np

    rate, momentum = options["learning_rate"], options["momentum"]
    trust, decay = options["trust_coefficient"], options.get("weight_decay", 0.0)
    state = {n: {"weights": w, "velocity": np.zeros_like(w)} for n, w in start(weights).items()}

    def apply(given):
        for n, before in state.items():
            w, v, g = (np.float64(x) for x in (before["weights"], before["velocity"], given[n]))
            w_norm, g_norm = np.linalg.norm(w), np.linalg.norm(g)
            local = trust * w_norm / (g_norm + decay * w_norm)
            v = momentum * v + rate * local * (g + decay * w)
            state[n] = {"weights": np.float32(w - v), "velocity": np.float32(v)}

    return walk(options, scale, apply, lambda: dict(state))


def text(value, depth=0):
    """JSON with a line for each list of numbers, by the shortest decimals that mean them."""
    import numpy as np

    if isinstance(value, (np.ndarray, np.float32)):
        return "[" + ", ".join(str(x) for x in np.ravel(value)) + "]"
    inner, line = "\n" + " " * (depth + 1), "\n" + " " * depth
    if isinstance(value, dict) and any(isinstance(v, (dict, list)) or hasattr(v, "dtype")
                                       for v in value.values()):
        members = (f"{json.dumps(k)}: {text(v, depth + 1)}" for k, v in value.items())
        return "{" + inner + ("," + inner).join(members) + line + "}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + inner + ("," + inner).join(text(v, depth + 1) for v in value) + line + "]"
    return json.dumps(value)


def write(source, name, cases):
    fixture = {"source": source, "optimizer": name, "cases": cases}
    path = generate.FOLDER / f"{name.lower()}_f32.json"
    path.write_text(text(fixture) + "\n", encoding="utf-8")


def main():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras

    for name, cases in OPTIMIZERS.items():
        write(f"Keras {keras.__version__}", name,
              [keras_case(keras, name, *case) for case in cases])
    write("the paper's formula", "Lars", [lars_case(*case) for case in LARS])


if __name__ == "__main__":
    main()
