#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""sequences.py [NAME ...]: as layers.py, of layers of sequences: recurrent ones and attention.

Of recurrent layers, further inputs are the states to begin with; those they end in are joined to the
output on its last axis. Neither Keras nor PyTorch has rotary embeddings or a key-value cache: these come
from NumPy, by the formulas of arXiv:2104.09864 and arXiv:1706.03762, position by position.
"""
import sys

import keras
import numpy as np
import tensorflow as tf

import layers
from layers import case

STATES = {"LSTM": 2, "GRU": 1}
LAYERS = {
    "LSTM": [
        case((2, 4, 3), units=2),
        case((2, 4, 3), units=2, return_sequences=True, unit_forget_bias=False),
        case((2, 3, 3), units=4, use_bias=False, go_backwards=True, return_sequences=True),
        case((2, 3, 2), units=3, activation="silu", recurrent_activation="tanh"),
        case([(2, 4, 3), (2, 2), (2, 2)], units=2, return_state=True),
        case((2, 4, 3), units=2, return_sequences=True,
             call={"mask": [[True, True, False, True], [False, True, True, False]]}),
    ],
    "GRU": [
        case((2, 4, 3), units=2),
        case((2, 4, 3), units=2, return_sequences=True, reset_after=False),
        case((2, 3, 3), units=4, use_bias=False, go_backwards=True, return_sequences=True),
        case((2, 3, 2), units=3, use_bias=False, reset_after=False),
        case((2, 3, 2), units=3, activation="silu", recurrent_activation="tanh"),
        case([(2, 4, 3), (2, 2)], units=2, return_state=True),
        case((2, 4, 3), units=2, return_sequences=True,
             call={"mask": [[True, True, False, True], [False, True, True, False]]}),
    ],
    # Keras rounds 1 / sqrt(key_dim) to f32: of 4 it is exact.
    "MultiHeadAttention": [
        case([(2, 3, 4), (2, 3, 4)], num_heads=2, key_dim=4),
        case([(2, 3, 4), (2, 5, 6)], num_heads=3, key_dim=4, value_dim=3, output_shape=5),
        case([(2, 3, 4), (2, 5, 4), (2, 5, 4)], num_heads=2, key_dim=4, use_bias=False),
        case([(2, 4, 4), (2, 4, 4)], num_heads=2, key_dim=4, call={"use_causal_mask": True}),
        case([(2, 2, 4), (2, 3, 4)], num_heads=2, key_dim=4,
             call={"attention_mask": [[[True, False, True], [True, True, True]],
                                      [[False, True, False], [True, True, False]]]}),
    ],
}


def arrays(arguments):
    return {k: np.array(v) if isinstance(v, list) else v for k, v in arguments.items()}


def recurrent(name):
    """A class that takes states as inputs and gives one tensor."""
    base = getattr(keras.layers, name)

    class Joined(base):
        def build(self, sequence, *states):
            super().build(sequence)

        def __call__(self, sequence, *states, **arguments):
            out = super().__call__(sequence, initial_state=list(states) or None, **arrays(arguments))
            return tf.concat(out, -1) if isinstance(out, (list, tuple)) else out

    return Joined


class Attention(keras.layers.MultiHeadAttention):
    def __call__(self, *inputs, **arguments):
        return super().__call__(*inputs, **arrays(arguments))


def softmax(x):
    e = np.exp(x - x.max())
    return e / e.sum()


def turned(x, position, base):
    """x of one position as complex numbers, each turned by its angle."""
    z = x[0::2] + 1j * x[1::2]
    z = z * np.exp(1j * position * base ** (-2.0 * np.arange(len(z)) / len(x)))
    return np.stack([z.real, z.imag], -1).ravel()


def generation(heads, dim, base):
    """Causal attention of one sequence, from lists of the keys and values so far."""
    size, length = 4, 5
    shapes = [(size, heads * dim), (heads * dim,)] * 3 + [(heads * dim, size), (size,)]
    names = [f"{part}/{kind}" for part in ("query", "key", "value", "attention_output")
             for kind in ("kernel", "bias")]
    weights = [layers.scattered(s, 2.3 + 1.9 * k, "float64") for k, s in enumerate(shapes)]
    x = layers.scattered((1, length, size), 0.7, "float64")
    keys, values, output = [], [], []
    for position in range(length):
        q, k, v = ((x[0, position] @ weights[2 * i] + weights[2 * i + 1]).reshape(heads, dim)
                   for i in range(3))
        if base:
            q, k = (np.array([turned(h, position, base) for h in y]) for y in (q, k))
        keys.append(k)
        values.append(v)
        mixed = []
        for h in range(heads):
            p = softmax(np.array([q[h] @ key[h] for key in keys]) / np.sqrt(dim))
            mixed.append(sum(pj * value[h] for pj, value in zip(p, values)))
        output.append(np.concatenate(mixed) @ weights[6] + weights[7])
    return {"options": {"num_heads": heads, "base": base}, "input": layers.tensor(x),
            "weights": [{"name": n, **layers.tensor(w)} for n, w in zip(names, weights)],
            "output": layers.numbers(np.array(output))}


def main():
    for name in STATES:
        setattr(keras.layers, name, recurrent(name))
    keras.layers.MultiHeadAttention = Attention
    for name in sys.argv[1:] or [*LAYERS, "generation"]:
        if name == "generation":
            cases = [generation(2, 2, None), generation(2, 4, 10000.0), generation(1, 2, 100.0)]
            layers.write(name, {"layer": name}, cases)
        else:
            layers.write(name, {"layer": name}, [layers.result_of(name, c) for c in LAYERS[name]])


if __name__ == "__main__":
    main()
