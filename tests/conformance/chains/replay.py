#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""replay.py COUNT < CHAINS: replays the chains that op_chains writes with PyTorch in f64.

Compares the last value, and the gradients of its weighted sum for all inputs. Fails for a
difference, for another number of chains than COUNT, and for an op below that occurs in none.
"""
import collections
import json
import math
import sys

import numpy as np
import torch
import torch.nn.functional as F

TOLERANCE = 1e-9
VALID, SAME = 0, 1  # kinds of padding; the third are given numbers
ABSENT = 99  # the end of a range that is not given


# ---- helpers of the ops below


def one(a, name):
    return a[name][0]


def flag(a, name):
    return a[name][0] != 0


def optional(x, i):
    return x[i] if i < len(x) else None


def axes_of(x, a):
    axes = [axis % x.dim() for axis in a["axes"]] if x.dim() else []
    return axes or list(range(x.dim()))


def reduce_axes(f, x, a):
    """f(x, axis, keep) of one axis after the other."""
    for axis in sorted(axes_of(x, a), reverse=True):
        x = f(x, axis, flag(a, "keep_dims"))
    return x


def moments(x, axes, keep):
    mean = x.mean(axes, keepdim=True)
    variance = ((x - mean) ** 2).mean(axes, keepdim=True)
    if not keep:
        variance = variance.squeeze(axes)
    return mean, variance


def variance(x, a):
    axes = axes_of(x, a)
    return moments(x, axes, flag(a, "keep_dims"))[1] if axes else torch.zeros_like(x) * x


def logsumexp(x, a):
    axes = axes_of(x, a)
    return torch.logsumexp(x, axes, flag(a, "keep_dims")) if axes else x


def cumsum(x, a):
    axis = one(a, "axis")
    if flag(a, "reverse"):
        x = x.flip(axis)
    y = x.cumsum(axis)
    if flag(a, "exclusive"):
        y = y - x
    return y.flip(axis) if flag(a, "reverse") else y


def sum_to_shape(x, shape):
    x = x.sum(list(range(x.dim() - len(shape)))) if x.dim() > len(shape) else x
    axes = [i for i, extent in enumerate(shape) if extent == 1 and x.shape[i] != 1]
    return x.sum(axes, keepdim=True) if axes else x


def activate(x, kind):
    return [lambda t: t, torch.relu, torch.tanh, torch.sigmoid, F.gelu][kind](x)


def matmul(x, a):
    left = x[0].mT if flag(a, "transpose_a") else x[0]
    right = x[1].mT if flag(a, "transpose_b") else x[1]
    return left @ right


def dense(x, a):
    y = x[0] @ x[1]
    return activate(y if len(x) < 3 else y + x[2], one(a, "activation"))


def attention(x, a):
    q, k, v = x[:3]
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    mask = optional(x, 3)
    seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
    if mask is not None and mask.dtype == torch.bool:
        seen = seen & mask
    elif mask is not None:
        scores = scores + mask
    if flag(a, "causal"):
        seen = seen.tril()
    exponents = torch.where(seen, scores, -math.inf)
    top = exponents.amax(-1, keepdim=True).nan_to_num(neginf=0).detach()
    weights = torch.where(seen, torch.exp(torch.where(seen, scores, top) - top), 0)
    total = weights.sum(-1, keepdim=True)
    return (weights / torch.where(total == 0, 1, total)) @ v


def at_places(x, axis, places):
    return x.index_select(axis, torch.as_tensor(np.asarray(places, dtype=np.int64)))


def ranges(shape, a):
    absent = lambda place: None if place == ABSENT else place
    return [list(range(*slice(absent(begin), absent(end), stride).indices(extent)))
            for extent, begin, end, stride in zip(shape, a["begin"], a["end"], a["stride"])]


def strided_slice(x, a):
    for axis, places in enumerate(ranges(x.shape, a)):
        x = at_places(x, axis, places)
    return x


def strided_slice_gradient(dy, a):
    shape = list(a["shape"])
    for axis, places in enumerate(ranges(shape, a)):
        extents = list(dy.shape)
        extents[axis] = shape[axis]
        index = torch.as_tensor(np.asarray(places, dtype=np.int64))
        dy = torch.zeros(extents, dtype=dy.dtype).index_add(axis, index, dy)
    return dy


def box(x, a):
    for axis, (begin, extent) in enumerate(zip(a["begin"], a["extents"])):
        x = x.narrow(axis, begin, x.shape[axis] - begin if extent < 0 else extent)
    return x


def pad(x, a):
    pads = list(zip(a["before"], a["after"]))
    if one(a, "mode") == 0:
        flat = [n for pair in reversed(pads) for n in pair]
        return F.pad(x, flat, value=one(a, "value")) if flat else x
    mode = ["", "reflect", "symmetric"][one(a, "mode")]
    for axis, pair in enumerate(pads):
        if sum(pair):
            x = at_places(x, axis, np.pad(np.arange(x.shape[axis]), pair, mode=mode))
    return x


def gather(x, indices, axis):
    axis %= x.dim()
    picked = x.index_select(axis, indices.flatten())
    return picked.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1:])


def scatter_add(indices, updates, axis, rows):
    shape = list(updates.shape)
    shape[axis] = rows
    return torch.zeros(shape, dtype=updates.dtype).index_add(axis, indices, updates)


def scatter_nd(indices, updates, shape):
    return torch.zeros(shape, dtype=updates.dtype).index_put(
        tuple(indices.unbind(-1)), updates, accumulate=True)


def segment_sum(x, ids, count):
    return torch.zeros([count, *x.shape[1:]], dtype=x.dtype).index_add(0, ids, x)


def integers(a):
    dtype = torch.int32 if one(a, "bits") == 32 else torch.int64
    return torch.tensor(a["values"], dtype=dtype).reshape(a["shape"]).long()


def affine(x, scale, offset):
    x = x if scale is None else x * scale
    return x if offset is None else x + offset


def group_norm(x, scale, offset, groups):
    parts = x.reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, var = moments(parts, [1, 3], True)
    return affine(((parts - mean) / torch.sqrt(var + 1e-3)).reshape(x.shape), scale, offset)


def rms_norm(x, scale, axis):
    axes = list(range(axis % x.dim(), x.dim()))
    y = x * torch.rsqrt((x * x).mean(axes, keepdim=True) + 1e-6)
    return affine(y, scale, None)


def batch_norm(x, scale, offset, part):
    mean, var = moments(x, list(range(x.dim() - 1)), True)
    y = affine((x - mean) / torch.sqrt(var + 1e-3), scale, offset)
    return [y, mean.flatten(), var.flatten()][part]


def softmax_cross_entropy(labels, logits):
    return -(labels * torch.log_softmax(logits, -1)).sum(-1)


# ---- windows: channels come last in lockstep, first in PyTorch


def channels_first(x):
    return x.movedim(-1, 1)


def channels_last(x):
    return x.movedim(1, -1)


def kernels_first(w):
    return w.movedim([-1, -2], [0, 1]).contiguous()


def pads_of(extents, spans, strides, a):
    """Elements before and after each axis: TensorFlow's rules."""
    kind = one(a, "padding")
    if kind == VALID:
        return [(0, 0)] * len(spans)
    if kind != SAME:
        return list(zip(a["pads"][::2], a["pads"][1::2]))
    pads = []
    for extent, span, stride in zip(extents, spans, strides):
        total = max(0, (-(-extent // stride) - 1) * stride + span - extent)
        pads.append((total // 2, total - total // 2))
    return pads


def padded(x, pads, value=0.0):
    return F.pad(x, [n for pair in reversed(pads) for n in pair], value=value)


def spans_of(taps, a):
    return [(tap - 1) * dilation + 1 for tap, dilation in zip(taps, a["dilations"])]


CONVOLUTIONS = {1: F.conv1d, 2: F.conv2d, 3: F.conv3d}
TRANSPOSED = {1: F.conv_transpose1d, 2: F.conv_transpose2d, 3: F.conv_transpose3d}
MAX_POOLS = {1: F.max_pool1d, 2: F.max_pool2d, 3: F.max_pool3d}


def conv(x, w, bias, a, groups=None):
    n = len(a["strides"])
    spans = spans_of(w.shape[:n], a)
    first = channels_first(x)
    pads = pads_of(first.shape[2:], spans, a["strides"], a)
    y = CONVOLUTIONS[n](padded(first, pads), kernels_first(w), bias, a["strides"], 0, a["dilations"],
                        groups or one(a, "groups"))
    return channels_last(y)


def depthwise(x, w, bias, a):
    channels, multiplier = w.shape[-2:]
    kernels = w.reshape(*w.shape[:-2], 1, channels * multiplier)
    return conv(x, kernels, bias, a, groups=channels)


def conv_transpose(x, w, bias, a):
    n = len(a["strides"])
    spans = spans_of(w.shape[:n], a)
    first = channels_first(x)
    y = TRANSPOSED[n](first, kernels_first(w), None, a["strides"], 0, 0,
                      one(a, "groups"), a["dilations"])
    for i, (extent, span, stride) in enumerate(zip(first.shape[2:], spans, a["strides"])):
        if one(a, "padding") == SAME:
            out = extent * stride
            before = max(0, (extent - 1) * stride + span - out) // 2
        elif one(a, "padding") == VALID:
            out, before = (extent - 1) * stride + max(span, stride), 0
        else:
            before, after = a["pads"][2 * i:2 * i + 2]
            out = (extent - 1) * stride + span - before - after
        axis = i + 2
        y = y.narrow(axis, before, min(out, y.shape[axis] - before))
        missing = list(y.shape)
        missing[axis] = out - y.shape[axis]
        y = torch.cat([y, torch.zeros(missing, dtype=y.dtype)], axis)
    y = channels_last(y)
    return y if bias is None else y + bias


def gradient_of(f, dy, at):
    """The gradient of a linear function f, as a function of dy and what f is made of."""
    at = at.detach().requires_grad_()
    return torch.autograd.grad(f(at), at, dy, create_graph=True)[0]


def conv_input_gradient(dy, w, a):
    x = torch.zeros(a["shape"], dtype=dy.dtype)
    return gradient_of(lambda t: conv(t, w, None, a), dy, x)


def conv_weight_gradient(dy, x, a):
    w = torch.zeros(a["shape"], dtype=dy.dtype)
    return gradient_of(lambda t: conv(x, t, None, a), dy, w)


def pool_windows(x, a, value):
    first = channels_first(x)
    pads = pads_of(first.shape[2:], a["window"], a["strides"], a)
    return padded(first, pads, value)


def max_pool(x, a):
    n = len(a["strides"])
    return channels_last(MAX_POOLS[n](pool_windows(x, a, -math.inf), a["window"], a["strides"]))


def avg_pool(x, a):
    def sums(t):
        for i, (window, stride) in enumerate(zip(a["window"], a["strides"])):
            t = t.unfold(2 + i, window, stride)
        return t.sum(list(range(t.dim() - len(a["window"]), t.dim())))

    counts = sums(pool_windows(torch.ones_like(x), a, 0.0))
    return channels_last(sums(pool_windows(x, a, 0.0)) / counts)


def global_pool(f, x, a):
    return f(x, list(range(1, x.dim() - 1)), keepdim=flag(a, "keep_dims"))


# ---- the ops, one per line, as in chain_ops.cc

OPS = {
    "neg": lambda x, a: -x[0],
    "abs": lambda x, a: torch.abs(x[0]),
    "sign": lambda x, a: torch.sign(x[0]),
    "relu": lambda x, a: torch.relu(x[0]),
    "square": lambda x, a: torch.square(x[0]),
    "sqrt": lambda x, a: torch.sqrt(x[0]),
    "rsqrt": lambda x, a: torch.rsqrt(x[0]),
    "reciprocal": lambda x, a: torch.reciprocal(x[0]),
    "exp": lambda x, a: torch.exp(x[0]),
    "expm1": lambda x, a: torch.expm1(x[0]),
    "log": lambda x, a: torch.log(x[0]),
    "log1p": lambda x, a: torch.log1p(x[0]),
    "sin": lambda x, a: torch.sin(x[0]),
    "cos": lambda x, a: torch.cos(x[0]),
    "tan": lambda x, a: torch.tan(x[0]),
    "atan": lambda x, a: torch.atan(x[0]),
    "tanh": lambda x, a: torch.tanh(x[0]),
    "erf": lambda x, a: torch.erf(x[0]),
    "sigmoid": lambda x, a: torch.sigmoid(x[0]),
    "gelu": lambda x, a: F.gelu(x[0]),
    "gelu_tanh": lambda x, a: F.gelu(x[0], approximate="tanh"),
    "silu": lambda x, a: F.silu(x[0]),
    "softplus": lambda x, a: torch.logaddexp(x[0], torch.zeros_like(x[0])),
    "elu": lambda x, a: F.elu(x[0]),
    "floor": lambda x, a: torch.floor(x[0]),
    "ceil": lambda x, a: torch.ceil(x[0]),
    "round": lambda x, a: torch.round(x[0]),
    "cast": lambda x, a: x[0].long().double(),
    "stop_gradient": lambda x, a: x[0].detach(),
    "activate": lambda x, a: activate(x[0], one(a, "activation")),
    "add": lambda x, a: x[0] + x[1],
    "sub": lambda x, a: x[0] - x[1],
    "mul": lambda x, a: x[0] * x[1],
    "div": lambda x, a: x[0] / x[1],
    "pow": lambda x, a: torch.pow(x[0], x[1]),
    "maximum": lambda x, a: torch.maximum(x[0], x[1]),
    "minimum": lambda x, a: torch.minimum(x[0], x[1]),
    "mod": lambda x, a: torch.remainder(x[0], x[1]),
    "squared_difference": lambda x, a: (x[0] - x[1]) ** 2,
    "leaky_relu": lambda x, a: torch.where(x[0] > 0, x[0], x[0] * x[1]),
    "atan2": lambda x, a: torch.atan2(x[0], x[1]),
    "shifted": lambda x, a: x[0] + one(a, "halves") / 2,
    "scaled": lambda x, a: x[0] * 2.0 ** one(a, "exponent"),
    "clamp": lambda x, a: torch.clamp(x[0], one(a, "low"), one(a, "high")),
    "equal": lambda x, a: x[0] == x[1],
    "not_equal": lambda x, a: x[0] != x[1],
    "less": lambda x, a: x[0] < x[1],
    "less_equal": lambda x, a: x[0] <= x[1],
    "greater": lambda x, a: x[0] > x[1],
    "greater_equal": lambda x, a: x[0] >= x[1],
    "logical_and": lambda x, a: x[0] & x[1],
    "logical_or": lambda x, a: x[0] | x[1],
    "logical_xor": lambda x, a: x[0] ^ x[1],
    "logical_not": lambda x, a: ~x[0],
    "is_finite": lambda x, a: torch.isfinite(x[0]),
    "is_nan": lambda x, a: torch.isnan(x[0]),
    "is_inf": lambda x, a: torch.isinf(x[0]),
    "is_finite_all": lambda x, a: torch.isfinite(x[0]).all(),
    "any": lambda x, a: reduce_axes(torch.any, x[0], a),
    "all": lambda x, a: reduce_axes(torch.all, x[0], a),
    "select": lambda x, a: torch.where(x[0], x[1], x[2]),
    "where": lambda x, a: torch.nonzero(x[0]),
    "sum": lambda x, a: x[0].sum(axes_of(x[0], a), keepdim=flag(a, "keep_dims")),
    "mean": lambda x, a: x[0].mean(axes_of(x[0], a), keepdim=flag(a, "keep_dims")),
    "prod": lambda x, a: reduce_axes(torch.prod, x[0], a),
    "variance": lambda x, a: variance(x[0], a),
    "stddev": lambda x, a: torch.sqrt(variance(x[0], a)),
    "logsumexp": lambda x, a: logsumexp(x[0], a),
    "max": lambda x, a: x[0].amax(axes_of(x[0], a), keepdim=flag(a, "keep_dims")),
    "min": lambda x, a: x[0].amin(axes_of(x[0], a), keepdim=flag(a, "keep_dims")),
    "argmax": lambda x, a: x[0].argmax(one(a, "axis")),
    "argmin": lambda x, a: x[0].argmin(one(a, "axis")),
    "cumsum": lambda x, a: cumsum(x[0], a),
    "sum_to_shape": lambda x, a: sum_to_shape(x[0], a["shape"]),
    "matmul": lambda x, a: matmul(x, a),
    "dense": lambda x, a: dense(x, a),
    "einsum": lambda x, a: torch.einsum(a["text"], *x),
    "scaled_dot_product_attention": lambda x, a: attention(x, a),
    "reshape": lambda x, a: x[0].reshape(a["shape"]),
    "expand_dims": lambda x, a: x[0].unsqueeze(one(a, "axis")),
    "squeeze": lambda x, a: x[0].squeeze(a["axes"]) if a["axes"] else x[0].squeeze(),
    "flatten_from": lambda x, a: x[0].flatten(one(a, "axis")),
    "transpose": lambda x, a: x[0].permute(a["axes"]),
    "broadcast_to": lambda x, a: x[0].expand(a["shape"]),
    "concat": lambda x, a: torch.cat(x, one(a, "axis")),
    "stack": lambda x, a: torch.stack(x, one(a, "axis")),
    "unstack": lambda x, a: x[0].unbind(one(a, "axis"))[one(a, "part")],
    "split": lambda x, a: x[0].split(a["extents"], one(a, "axis"))[one(a, "part")],
    "slice": lambda x, a: box(x[0], a),
    "strided_slice": lambda x, a: strided_slice(x[0], a),
    "strided_slice_gradient": lambda x, a: strided_slice_gradient(x[0], a),
    "reverse": lambda x, a: x[0].flip(a["axes"]),
    "roll": lambda x, a: x[0].roll(a["shifts"], a["axes"]) if a["axes"] else x[0],
    "tile": lambda x, a: x[0].tile(a["multiples"]),
    "pad": lambda x, a: pad(x[0], a),
    "gather": lambda x, a: gather(x[0], x[1], one(a, "axis")),
    "embedding_lookup": lambda x, a: gather(x[0], x[1], 0),
    "gather_nd": lambda x, a: x[0][tuple(x[1].unbind(-1))],
    "take_along_axis": lambda x, a: x[0].gather(one(a, "axis"), x[1]),
    "one_hot": lambda x, a: F.one_hot(x[0], one(a, "depth")).double(),
    "scatter_add": lambda x, a: scatter_add(x[0], x[1], one(a, "axis"), one(a, "rows")),
    "scatter_nd": lambda x, a: scatter_nd(x[0], x[1], a["shape"]),
    "tensor_scatter_add": lambda x, a: x[0] + scatter_nd(x[1], x[2], x[0].shape),
    "unsorted_segment_sum": lambda x, a: segment_sum(x[0], x[1], one(a, "segments")),
    "segment_sum": lambda x, a: segment_sum(x[0], x[1], int(x[1].max()) + 1 if len(x[1]) else 0),
    "sort": lambda x, a: x[0].sort(one(a, "axis"), flag(a, "descending")).values,
    "argsort": lambda x, a: x[0].argsort(one(a, "axis"), flag(a, "descending")),
    "top_k": lambda x, a: x[0].topk(one(a, "k")).values,
    "softmax": lambda x, a: torch.softmax(x[0], one(a, "axis")),
    "log_softmax": lambda x, a: torch.log_softmax(x[0], one(a, "axis")),
    "sparse_softmax_cross_entropy": lambda x, a: -torch.log_softmax(x[1], -1).gather(
        -1, x[0].unsqueeze(-1)).squeeze(-1),
    "softmax_cross_entropy": lambda x, a: softmax_cross_entropy(x[0], x[1]),
    "sigmoid_cross_entropy": lambda x, a: -x[0] * F.logsigmoid(x[1]) - (1 - x[0]) * F.logsigmoid(
        -x[1]),
    "layer_norm": lambda x, a: affine(
        F.layer_norm(x[0], x[0].shape[one(a, "axis") % x[0].dim():], eps=1e-3), optional(x, 1),
        optional(x, 2)),
    "rms_norm": lambda x, a: rms_norm(x[0], optional(x, 1), one(a, "axis")),
    "group_norm": lambda x, a: group_norm(x[0], optional(x, 1), optional(x, 2), one(a, "groups")),
    "batch_norm": lambda x, a: batch_norm(x[0], optional(x, 1), optional(x, 2), one(a, "part")),
    "batch_norm_inference": lambda x, a: affine(
        (x[0] - x[1]) / torch.sqrt(x[2] + 1e-3), optional(x, 3), optional(x, 4)),
    "conv1d": lambda x, a: conv(x[0], x[1], optional(x, 2), a),
    "conv2d": lambda x, a: conv(x[0], x[1], optional(x, 2), a),
    "conv3d": lambda x, a: conv(x[0], x[1], optional(x, 2), a),
    "depthwise_conv2d": lambda x, a: depthwise(x[0], x[1], optional(x, 2), a),
    "conv1d_transpose": lambda x, a: conv_transpose(x[0], x[1], optional(x, 2), a),
    "conv2d_transpose": lambda x, a: conv_transpose(x[0], x[1], optional(x, 2), a),
    "conv3d_transpose": lambda x, a: conv_transpose(x[0], x[1], optional(x, 2), a),
    "conv1d_input_gradient": lambda x, a: conv_input_gradient(x[0], x[1], a),
    "conv2d_input_gradient": lambda x, a: conv_input_gradient(x[0], x[1], a),
    "conv3d_input_gradient": lambda x, a: conv_input_gradient(x[0], x[1], a),
    "conv1d_weight_gradient": lambda x, a: conv_weight_gradient(x[0], x[1], a),
    "conv2d_weight_gradient": lambda x, a: conv_weight_gradient(x[0], x[1], a),
    "conv3d_weight_gradient": lambda x, a: conv_weight_gradient(x[0], x[1], a),
    "max_pool1d": lambda x, a: max_pool(x[0], a),
    "max_pool2d": lambda x, a: max_pool(x[0], a),
    "max_pool3d": lambda x, a: max_pool(x[0], a),
    "avg_pool1d": lambda x, a: avg_pool(x[0], a),
    "avg_pool2d": lambda x, a: avg_pool(x[0], a),
    "avg_pool3d": lambda x, a: avg_pool(x[0], a),
    "global_max_pool": lambda x, a: global_pool(torch.amax, x[0], a),
    "global_avg_pool": lambda x, a: global_pool(torch.mean, x[0], a),
    "integers": lambda x, a: integers(a),
}


# ---- replay


def tensor(described):
    shape, values = described
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


def replay(chain):
    inputs = [tensor(each).requires_grad_() for each in chain["inputs"]]
    values = []
    for op, arguments, attributes, text in chain["steps"]:
        x = [inputs[-1 - i] if i < 0 else values[i] for i in arguments]
        values.append(OPS[op](x, {**attributes, "text": text}))
    value = values[-1]
    weights = 0.25 + (torch.arange(value.numel()) * 7 % 11).double().reshape(value.shape) / 8
    gradients = torch.autograd.grad((value * weights).sum(), inputs, allow_unused=True) \
        if value.requires_grad else [None] * len(inputs)
    zeros = [torch.zeros_like(x) if g is None else g for g, x in zip(gradients, inputs)]
    return value.detach(), zeros


def difference(ours, theirs):
    """What is wrong with ours, "" if nothing."""
    if ours is None:
        ours = torch.zeros_like(theirs)
    if ours.shape != theirs.shape:
        return f"shape {list(ours.shape)}, PyTorch's {list(theirs.shape)}"
    finite = theirs[torch.isfinite(theirs)]
    scale = 1e-2 + (finite.abs().max().item() if finite.numel() else 0)
    same = (ours == theirs) | (ours.isnan() & theirs.isnan())
    same |= (ours - theirs).abs() <= TOLERANCE * scale
    if bool(same.all()):
        return ""
    place = int(torch.nonzero(~same.flatten())[0])
    return f"element {place} is {ours.flatten()[place]}, PyTorch's {theirs.flatten()[place]}"


def differences(chain):
    value, gradients = replay(chain)
    found = [("value", difference(tensor(chain["value"]), value))]
    for i, (ours, theirs) in enumerate(zip(chain["gradients"], gradients)):
        ours = None if ours is None else tensor(ours)
        found.append((f"gradient of input {i}", difference(ours, theirs)))
    return [f"{what}: {wrong}" for what, wrong in found if wrong]


def describe(chain):
    lines = [f"  input {-1 - i}: {shape}" for i, (shape, _) in enumerate(chain["inputs"])]
    for i, (op, arguments, attributes, text) in enumerate(chain["steps"]):
        lines.append(f"  {i}: {op}{arguments} {attributes or ''} {text}")
    return "\n".join(lines)


def main():
    expected = int(sys.argv[1])
    torch.set_num_threads(1)
    seen, wrong, steps, chains = collections.Counter(), 0, 0, 0
    for line in sys.stdin:
        chain = json.loads(line)
        chains += 1
        steps += len(chain["steps"])
        seen.update(step[0] for step in chain["steps"])
        try:
            found = differences(chain)
        except Exception as error:  # pylint: disable=broad-except
            found = [f"PyTorch refuses: {error}"]
        wrong += bool(found)
        if found and wrong <= 10:
            print(f"chain {chain['seed']}:", *found, describe(chain), sep="\n")
    missing = sorted(set(OPS) - set(seen))
    if missing:
        print("ops in no chain:", *missing)
    rarest = min(seen.items(), key=lambda each: each[1]) if seen else ("none", 0)
    print(f"{chains} chains of {steps} ops in all, {wrong} differ from PyTorch {torch.__version__}; "
          f"{len(seen)} ops, the rarest {rarest[0]}, {rarest[1]} times")
    return 1 if wrong or missing or chains != expected else 0


if __name__ == "__main__":
    sys.exit(main())
