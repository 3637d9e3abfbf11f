#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""generate.py keras|torch|formula: writes the fixtures of tests/golden/optim/.

What Keras 3 (keras: PyPI's tensorflow-cpu) and PyTorch (torch: its one-cycle schedule) compute in f64
for optimizers and schedules, and for LARS, which neither has, its paper's formula (formula: NumPy).
tests/optim/golden_test.cc walks the same steps. steps.py writes those of single steps in f32.
"""
import json
import math
import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent / "optim"
STEPS = 50
KEPT = [1, 2, 3, 5, 10, 25, 50]  # steps whose weights a fixture holds
SHAPES = {"kernel": (2, 3), "bias": (3,)}
SIZES = {"kernel": 6, "bias": 3}
FIRST = {"kernel": 0, "bias": 6}  # each variable's first number among all


def start(i):
    return math.sin(1 + i)


def gradient(i, weight, t):
    """Of number i in step t, counted from 1."""
    return 0.05 * (i + 1) * weight + math.sin(1.7 * t + 0.9 * i)


def write(name, fixture):
    FOLDER.mkdir(exist_ok=True)
    text = json.dumps(fixture, indent=1)
    (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


EMA = {"use_ema": True, "ema_momentum": 0.9}
BETAS = {"beta_1": 0.85, "beta_2": 0.98, "epsilon": 1e-4}
# The options of each case, by the names that Keras gives them; `exclude` is what
# exclude_from_weight_decay is given.
OPTIMIZERS = {
    "SGD": [
        {},
        {"momentum": 0.9},
        {"momentum": 0.8, "nesterov": True, "learning_rate": 0.05},
        {"learning_rate": 0.05, "weight_decay": 0.2},
        {"learning_rate": 0.05, "weight_decay": 0.2, "exclude": ["bias"]},
        {"learning_rate": 0.05, "momentum": 0.5, **EMA},
        {"learning_rate": 0.05, **EMA, "ema_overwrite_frequency": 7},
        {"learning_rate": 0.1, "clipvalue": 0.5},
        {"learning_rate": 0.1, "clipnorm": 0.7},
        {"learning_rate": 0.1, "global_clipnorm": 0.9},
    ],
    "Adam": [
        {},
        {"learning_rate": 0.05, **BETAS},
        {"learning_rate": 0.05, **BETAS, "amsgrad": True},
        {"learning_rate": 0.05, "weight_decay": 0.1, **EMA, "ema_overwrite_frequency": 10},
    ],
    "AdamW": [{}, {"learning_rate": 0.05, "weight_decay": 0.1, "exclude": ["ker.*l"]}],
    "Adamax": [{}, {"learning_rate": 0.05, **BETAS}],
    "Nadam": [{}, {"learning_rate": 0.05, **BETAS}],
    "RMSprop": [
        {},
        {"learning_rate": 0.02, "rho": 0.8, "momentum": 0.7, "epsilon": 1e-3},
        {"learning_rate": 0.02, "rho": 0.8, "centered": True, "epsilon": 1e-2},
        {"learning_rate": 0.02, "momentum": 0.7, "centered": True, "epsilon": 1e-2},
    ],
    "Adagrad": [{}, {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": 1e-3}],
    "Adadelta": [{}, {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-3}],
    "Ftrl": [
        {},
        {
            "learning_rate": 0.1,
            "l1_regularization_strength": 0.05,
            "l2_regularization_strength": 0.1,
            "l2_shrinkage_regularization_strength": 0.02,
            "beta": 0.3,
        },
        {"learning_rate": 0.1, "learning_rate_power": -0.3, "initial_accumulator_value": 0.4},
    ],
    "Lion": [{}, {"learning_rate": 0.01, "beta_1": 0.8, "beta_2": 0.95, "weight_decay": 0.1}],
    "Lamb": [{}, {"learning_rate": 0.05, **BETAS, "weight_decay": 0.1}],
    "Adafactor": [
        {},
        {"learning_rate": 0.1, "beta_2_decay": -0.7, "clip_threshold": 0.8, "epsilon_2": 0.01},
        {"learning_rate": 0.05, "weight_decay": 0.1},
    ],
}
SCHEDULES = [
    ("ExponentialDecay", {"decay_steps": 10, "decay_rate": 0.7}),
    ("ExponentialDecay", {"decay_steps": 10, "decay_rate": 0.7, "staircase": True}),
    ("CosineDecay", {"decay_steps": 30, "alpha": 0.1}),
    ("CosineDecay", {"decay_steps": 30, "warmup_target": 0.3, "warmup_steps": 8}),
    ("PiecewiseConstantDecay", {"boundaries": [5, 20], "values": [0.5, 0.2, 0.1]}),
    ("PolynomialDecay", {"decay_steps": 20}),
    ("PolynomialDecay", {"decay_steps": 20, "end_learning_rate": 0.05, "power": 1.7}),
    ("PolynomialDecay", {"decay_steps": 12, "end_learning_rate": 0.05, "cycle": True}),
    ("InverseTimeDecay", {"decay_steps": 10, "decay_rate": 0.5}),
    ("InverseTimeDecay", {"decay_steps": 10, "decay_rate": 0.5, "staircase": True}),
    ("CosineDecayRestarts", {"first_decay_steps": 6}),
    ("CosineDecayRestarts", {"first_decay_steps": 7, "t_mul": 1.0, "m_mul": 0.8, "alpha": 0.1}),
    ("CosineDecayRestarts", {"first_decay_steps": 5, "t_mul": 1.5, "m_mul": 0.9, "alpha": 0.05}),
]
INITIAL = 0.5


def walk(apply, weights, read):
    """The weights after each of the kept steps of `apply(gradients)`."""
    kept = []
    for t in range(1, STEPS + 1):
        values = read(weights)
        gradients = [gradient(i, w, t) for i, w in enumerate(values)]
        apply(gradients)
        if t in KEPT:
            kept.append(read(weights))
    return kept


def in_double(function, options):
    """All numbers of a call, defaults too, as f64 scalars: Keras takes Python's floats for f32."""
    import inspect
    import numpy as np

    numbers = {k: p.default for k, p in inspect.signature(function).parameters.items()
               if p.default is not inspect.Parameter.empty}
    numbers.update(options)
    return {k: np.float64(v) if isinstance(v, float) else v for k, v in numbers.items()}


def keras_case(keras, name, options):
    import numpy as np

    variables = [
        keras.Variable(
            np.array([start(FIRST[n] + k) for k in range(SIZES[n])]).reshape(shape),
            dtype="float64", name=n,
        )
        for n, shape in SHAPES.items()
    ]
    make = getattr(keras.optimizers, name)
    optimizer = make(**in_double(make, {k: v for k, v in options.items() if k != "exclude"}))
    if "exclude" in options:
        optimizer.exclude_from_weight_decay(var_names=options["exclude"])

    def apply(gradients):
        flat = np.array(gradients)
        optimizer.apply(
            [flat[FIRST[n]:FIRST[n] + SIZES[n]].reshape(shape) for n, shape in SHAPES.items()], variables
        )

    def read(_):
        return [float(x) for v in variables for x in v.numpy().ravel()]

    case = {"options": options, "weights": walk(apply, None, read)}
    if options.get("use_ema"):
        averages = optimizer._model_variables_moving_average
        case["average"] = [float(x) for v in averages for x in v.numpy().ravel()]
    return case


def from_keras():
    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    import keras
    import numpy as np

    keras.config.set_floatx("float64")
    for name, cases in OPTIMIZERS.items():
        write(name.lower(), {
            "source": f"Keras {keras.__version__}", "optimizer": name, "steps": KEPT,
            "cases": [keras_case(keras, name, options) for options in cases],
        })
    schedules = []
    for name, options in SCHEDULES:
        arguments = dict(options)
        if "values" in options:
            arguments["values"] = [np.float64(v) for v in options["values"]]
        else:
            arguments["initial_learning_rate"] = 0.0 if "warmup_target" in options else INITIAL
        make = getattr(keras.optimizers.schedules, name)
        schedule = make(**in_double(make, arguments))
        schedules.append({
            "schedule": name, "initial": INITIAL, "options": options,
            "rates": [float(schedule(step)) for step in range(40)],
        })
    write("schedules", {"source": f"Keras {keras.__version__}", "schedules": schedules})


def from_torch():
    import torch

    schedules = []
    for options in (
        {"total_steps": 40},
        {"total_steps": 40, "pct_start": 0.25, "anneal_strategy": "linear", "div_factor": 10.0,
         "final_div_factor": 100.0},
    ):
        optimizer = torch.optim.SGD([torch.zeros(1, dtype=torch.float64)], lr=INITIAL)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=INITIAL, cycle_momentum=False, **options
        )
        rates = []
        for _ in range(40):
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.step()
            if len(rates) < 40:
                schedule.step()
        schedules.append(
            {"schedule": "OneCycleLR", "initial": INITIAL, "options": options, "rates": rates}
        )
    write("one_cycle", {"source": f"PyTorch {torch.__version__}", "schedules": schedules})


def lars_case(options):
    """Algorithm 1 of arXiv:1708.03888."""
    rate = options.get("learning_rate", 0.1)
    momentum = options.get("momentum", 0.9)
    trust = options.get("trust_coefficient", 0.001)
    decay = options.get("weight_decay", 0.0)
    weights = [start(i) for i in range(9)]
    velocity = [0.0] * 9

    def apply(gradients):
        for name, size in SIZES.items():
            own = range(FIRST[name], FIRST[name] + size)
            w_norm = math.sqrt(sum(weights[i] ** 2 for i in own))
            g_norm = math.sqrt(sum(gradients[i] ** 2 for i in own))
            local = trust * w_norm / (g_norm + decay * w_norm)
            for i in own:
                velocity[i] = momentum * velocity[i] + rate * local * (
                    gradients[i] + decay * weights[i])
                weights[i] -= velocity[i]

    return {"options": options, "weights": walk(apply, weights, list)}


def from_formula():
    cases = [{}, {"learning_rate": 1.0, "momentum": 0.8, "trust_coefficient": 0.05,
                  "weight_decay": 0.1}]
    write("lars", {
        "source": "the paper's formula", "optimizer": "Lars", "steps": KEPT,
        "cases": [lars_case(options) for options in cases],
    })


if __name__ == "__main__":
    {"keras": from_keras, "torch": from_torch, "formula": from_formula}[sys.argv[1]]()
