# SPDX-License-Identifier: Apache-2.0
"""The cases of ops.cc in PyTorch, by the same names: the function or the shortest expression that
users would write. Where ours gives dense elements and PyTorch's a view, the view is made
contiguous. Images are channels_last."""
import sys
import types

import torch
from torch.nn import functional as F

import torch_models
import window

SIZES = [
    types.SimpleNamespace(matrix=(8, 128), square=(32, 32), squares=(1, 32, 32),
                          heads=(1, 1, 32, 32), line=(1, 16, 64), image=(1, 16, 8, 8),
                          volume=(1, 16, 4, 4, 4)),
    types.SimpleNamespace(matrix=(128, 512), square=(256, 256), squares=(4, 128, 128),
                          heads=(1, 4, 256, 64), line=(4, 64, 256), image=(4, 64, 16, 16),
                          volume=(2, 64, 8, 8, 8)),
    types.SimpleNamespace(matrix=(4096, 1024), square=(2048, 2048), squares=(64, 256, 256),
                          heads=(8, 8, 1024, 64), line=(64, 64, 1024), image=(64, 64, 32, 32),
                          volume=(16, 64, 16, 16, 16)),
]


def uniform(shape, low=-2, high=2):
    return torch.empty(shape).uniform_(low, high)


def floats(form, low=-2, high=2):
    return lambda size: uniform(getattr(size, form), low, high)


def channels_last(x):
    formats = {4: torch.channels_last, 5: torch.channels_last_3d}
    return x.to(memory_format=formats.get(x.dim(), torch.contiguous_format))


def rows_of(size):
    return size.matrix[0]


def cols_of(size):
    return size.matrix[1]


def filters(axes):
    return lambda size: channels_last(uniform((size.image[1], size.image[1]) + (3,) * axes))


m, positive, unit = floats("matrix"), floats("matrix", 0.1, 2), floats("matrix", -0.9, 0.9)
near_one = floats("matrix", 0.95, 1.05)
square, squares, heads = floats("square"), floats("squares"), floats("heads")
line = floats("line")
image = lambda size: channels_last(uniform(size.image))
volume = lambda size: channels_last(uniform(size.volume))
row = lambda size: uniform(cols_of(size), 0.5, 1.5)
column = lambda size: uniform((rows_of(size), 1), 0.5, 1.5)
weights = lambda size: uniform((cols_of(size), cols_of(size)))
flags = lambda size: torch.rand(size.matrix) < 0.5
ints = lambda size: torch.randint(-100, 100, size.matrix, dtype=torch.int32)
labels = lambda size: torch.randint(0, cols_of(size), (rows_of(size),))
picks = lambda size: torch.randint(0, rows_of(size), (rows_of(size),))
places = lambda size: torch.randint(0, cols_of(size), size.matrix)
segments = lambda size: picks(size).sort().values
channels = lambda size: uniform(size.image[1], 0.5, 1.5)
depthwise_filters = lambda size: channels_last(uniform((size.image[1], 1, 3, 3)))


def unary(op, form=m, sources=1):
    return (form,), op, sources


def binary(op, a=m, b=m, sources=2):
    return (a, b), op, sources


def view(op, form=m, sources=1):
    """A view, made contiguous."""
    return (form,), lambda x: op(x).contiguous(), sources


def last(op, form=m, sources=1):
    return (form,), lambda x: op(x, 1), sources


def first(op, form=m, sources=1):
    return (form,), lambda x: op(x, 0), sources


def convolution_gradient(form, axes, **which):
    """The gradient of a convolution that its backward kernel gives by itself."""
    ones = [1] * axes
    mask = ["x" in which, "w" in which, False]
    forms = (form, filters(axes)) if "x" in which else (form, form, filters(axes))

    def op(dy, *others):
        x, w = (dy, others[0]) if "x" in which else others
        gradients = torch.ops.aten.convolution_backward(
            dy, x, w, None, ones, ones, ones, False, [0] * axes, 1, mask)
        return gradients[0] if "x" in which else gradients[1]

    return forms, op, 0


def updates(optimizer):
    """One step of an optimizer that is made at the first call."""
    made = []

    def op(x, gradient):
        if not made or made[0] is not x:
            weights = x.clone().requires_grad_()
            weights.grad = gradient
            made[:] = x, optimizer(weights)
        made[1].step()
        return x

    return (m, m), op, 0


CASES = {
    # elementwise.h
    "neg": unary(torch.neg), "abs": unary(torch.abs), "sign": unary(torch.sign, m, 0),
    "relu": unary(torch.relu), "square": unary(torch.square),
    "sqrt": unary(torch.sqrt, positive), "rsqrt": unary(torch.rsqrt, positive),
    "reciprocal": unary(torch.reciprocal, positive), "exp": unary(torch.exp),
    "expm1": unary(torch.expm1), "log": unary(torch.log, positive),
    "log1p": unary(torch.log1p, positive), "sin": unary(torch.sin), "cos": unary(torch.cos),
    "tan": unary(torch.tan, unit), "atan": unary(torch.atan), "tanh": unary(torch.tanh),
    "erf": unary(torch.erf), "sigmoid": unary(torch.sigmoid), "gelu": unary(F.gelu),
    "gelu_tanh": unary(lambda x: F.gelu(x, approximate="tanh")), "silu": unary(F.silu),
    "softplus": unary(F.softplus), "elu": unary(F.elu), "floor": unary(torch.floor, m, 0),
    "ceil": unary(torch.ceil, m, 0), "round": unary(torch.round, m, 0),
    "add": binary(torch.add), "sub": binary(torch.sub), "mul": binary(torch.mul),
    "squared_difference": binary(lambda a, b: F.mse_loss(a, b, reduction="none")),
    "mod": binary(torch.remainder, m, positive), "maximum": binary(torch.maximum),
    "minimum": binary(torch.minimum), "div": binary(torch.div, m, positive),
    "atan2": binary(torch.atan2), "pow": binary(torch.pow, positive, m),
    "leaky_relu": unary(lambda x: F.leaky_relu(x, 0.2)),
    "add_row": binary(torch.add, m, row), "mul_row": binary(torch.mul, m, row),
    "mul_column": binary(torch.mul, m, column), "mul_number": unary(lambda x: x * 1.5),
    "add_int": binary(torch.add, ints, ints, 0), "mul_int": binary(torch.mul, ints, ints, 0),
    "abs_int": unary(torch.abs, ints, 0), "activate": unary(F.gelu),
    # compare.h
    "equal": binary(torch.eq, m, m, 0), "not_equal": binary(torch.ne, m, m, 0),
    "less": binary(torch.lt, m, m, 0), "less_equal": binary(torch.le, m, m, 0),
    "greater": binary(torch.gt, m, m, 0), "greater_equal": binary(torch.ge, m, m, 0),
    "equal_int": binary(torch.eq, ints, ints, 0),
    "logical_and": binary(torch.logical_and, flags, flags, 0),
    "logical_or": binary(torch.logical_or, flags, flags, 0),
    "logical_xor": binary(torch.logical_xor, flags, flags, 0),
    "logical_not": unary(torch.logical_not, flags, 0),
    "is_finite": unary(torch.isfinite, m, 0), "is_nan": unary(torch.isnan, m, 0),
    "is_inf": unary(torch.isinf, m, 0),
    "select": ((m, m, flags), lambda a, b, c: torch.where(c, a, b), 2),
    "clamp": unary(lambda x: torch.clamp(x, -1, 1)),
    # cast.h
    "cast_bf16": unary(torch.Tensor.bfloat16), "cast_f16": unary(torch.Tensor.half),
    "cast_f64": unary(torch.Tensor.double), "cast_i32": unary(torch.Tensor.int, m, 0),
    "cast_from_i32": unary(torch.Tensor.float, ints, 0),
    "cast_from_bool": unary(torch.Tensor.float, flags, 0),
    "stop_gradient": unary(torch.detach, m, 0),
    # reduce.h
    "sum": unary(torch.sum), "sum_first": first(torch.sum), "sum_last": last(torch.sum),
    "mean": unary(torch.mean), "mean_first": first(torch.mean), "mean_last": last(torch.mean),
    "prod_first": first(torch.prod, near_one), "prod_last": last(torch.prod, near_one),
    "variance": unary(lambda x: torch.var(x, 1, correction=0)),
    "variance_first": unary(lambda x: torch.var(x, 0, correction=0)),
    "stddev": unary(lambda x: torch.std(x, 1, correction=0)),
    "logsumexp": last(torch.logsumexp), "logsumexp_first": first(torch.logsumexp),
    "max": unary(torch.amax), "max_first": first(torch.amax), "max_last": last(torch.amax),
    "min": last(torch.amin), "sum_int": last(torch.sum, ints, 0),
    "max_int": last(torch.amax, ints, 0), "any": last(torch.any, flags, 0),
    "all": last(torch.all, flags, 0), "argmax": last(torch.argmax, m, 0),
    "argmin": last(torch.argmin, m, 0), "argmax_first": first(torch.argmax, m, 0),
    "sum_to_shape": unary(lambda x: x.sum_to_size(x.shape[1])),
    "cumsum_last": last(torch.cumsum), "cumsum_first": first(torch.cumsum),
    # matmul.h, einsum.h, attention.h
    "matmul": binary(torch.matmul, square, square),
    "matmul_transposed": binary(lambda a, b: a @ b.T, square, square),
    "matmul_batch": binary(torch.matmul, squares, squares),
    "dense": ((m, weights, row), F.linear, 3),
    "einsum": binary(lambda a, b: torch.einsum("bij,bkj->bik", a, b), squares, squares),
    "scaled_dot_product_attention": ((heads,) * 3, F.scaled_dot_product_attention, 3),
    "causal_attention": (
        (heads,) * 3,
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), 3),
    # conv.h
    "conv1d": ((line, filters(1), channels), lambda x, w, b: F.conv1d(x, w, b, padding=1), 3),
    "conv2d": ((image, filters(2), channels), lambda x, w, b: F.conv2d(x, w, b, padding=1), 3),
    "conv3d": ((volume, filters(3), channels), lambda x, w, b: F.conv3d(x, w, b, padding=1), 3),
    "conv2d_strided": ((image, filters(2), channels),
                       lambda x, w, b: F.conv2d(x, w, b, 2, padding=1), 3),
    "depthwise_conv2d": ((image, depthwise_filters, channels),
                         lambda x, w, b: F.conv2d(x, w, b, padding=1, groups=w.shape[0]), 3),
    "conv1d_input_gradient": convolution_gradient(line, 1, x=True),
    "conv2d_input_gradient": convolution_gradient(image, 2, x=True),
    "conv3d_input_gradient": convolution_gradient(volume, 3, x=True),
    "conv1d_weight_gradient": convolution_gradient(line, 1, w=True),
    "conv2d_weight_gradient": convolution_gradient(image, 2, w=True),
    "conv3d_weight_gradient": convolution_gradient(volume, 3, w=True),
    "conv1d_transpose": ((line, filters(1), channels),
                         lambda x, w, b: F.conv_transpose1d(x, w, b, padding=1), 3),
    "conv2d_transpose": ((image, filters(2), channels),
                         lambda x, w, b: F.conv_transpose2d(x, w, b, padding=1), 3),
    "conv3d_transpose": ((volume, filters(3), channels),
                         lambda x, w, b: F.conv_transpose3d(x, w, b, padding=1), 3),
    # pool.h
    "max_pool1d": unary(lambda x: F.max_pool1d(x, 2), line),
    "avg_pool1d": unary(lambda x: F.avg_pool1d(x, 2), line),
    "max_pool2d": unary(lambda x: F.max_pool2d(x, 2), image),
    "avg_pool2d": unary(lambda x: F.avg_pool2d(x, 2), image),
    "max_pool3d": unary(lambda x: F.max_pool3d(x, 2), volume),
    "avg_pool3d": unary(lambda x: F.avg_pool3d(x, 2), volume),
    "global_max_pool": unary(lambda x: torch.amax(x, (2, 3)), image),
    "global_avg_pool": unary(lambda x: torch.mean(x, (2, 3)), image),
    # norm.h
    "layer_norm": ((m, row, row), lambda x, s, o: F.layer_norm(x, s.shape, s, o), 3),
    "rms_norm": ((m, row), lambda x, s: F.rms_norm(x, s.shape, s), 2),
    "group_norm": ((image, channels, channels), lambda x, s, o: F.group_norm(x, 8, s, o), 3),
    "batch_norm": ((image, channels, channels),
                   lambda x, s, o: F.batch_norm(x, None, None, s, o, training=True), 3),
    "batch_norm_inference": ((image,) + (channels,) * 4,
                             lambda x, s, o, mean, variance: F.batch_norm(x, mean, variance, s, o),
                             3),
    # softmax.h
    "softmax": last(torch.softmax), "softmax_first": first(torch.softmax),
    "log_softmax": last(torch.log_softmax),
    "sparse_softmax_cross_entropy": (
        (m, labels), lambda x, y: F.cross_entropy(x, y, reduction="none"), 1),
    "softmax_cross_entropy": (
        (m, positive), lambda x, y: F.cross_entropy(x, y, reduction="none"), 1),
    "sigmoid_cross_entropy": (
        (m, positive),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), 1),
    # gather.h, scatter.h
    "gather": ((m, picks), lambda x, i: torch.index_select(x, 0, i), 1),
    "gather_last": ((m, labels), lambda x, i: torch.index_select(x, 1, i), 1),
    "gather_nd": ((m, picks), lambda x, i: x[i], 1),
    "take_along_axis": ((m, places), lambda x, i: torch.gather(x, 1, i), 1),
    "embedding_lookup": ((m, picks), lambda x, i: F.embedding(i, x), 1),
    "one_hot": ((labels, row),
                lambda i, r: torch.zeros(len(i), len(r)).scatter_(1, i[:, None], 1.0), 0),
    "where": unary(torch.nonzero, flags, 0),
    "scatter_add": ((m, picks), lambda x, i: torch.zeros_like(x).index_add(0, i, x), 1),
    "scatter_nd": ((m, picks), lambda x, i: torch.zeros_like(x).index_put((i,), x, accumulate=True), 1),
    "tensor_scatter_add": (
        (m, m, picks), lambda x, u, i: x.index_put((i,), u, accumulate=True), 2),
    "to_dense": ((m, picks), lambda x, i: torch.zeros_like(x).index_add_(0, i, x), 0),
    "coalesce": (
        (m, picks), lambda x, i: torch.sparse_coo_tensor(i[None], x, x.shape).coalesce().values(), 0),
    "unsorted_segment_sum": ((m, picks), lambda x, i: torch.zeros_like(x).index_add(0, i, x), 1),
    "segment_sum": ((m, segments), lambda x, i: torch.zeros_like(x).index_add(0, i, x), 1),
    # shape_ops.h
    "reshape": unary(lambda x: x.reshape(-1)), "expand_dims": unary(lambda x: x.unsqueeze(1)),
    "squeeze": unary(torch.squeeze, column),
    "flatten_from": unary(lambda x: x.permute(0, 2, 3, 1).flatten(1), image),
    "transpose": view(torch.t), "transpose_image": view(lambda x: x, image),
    "broadcast_to": ((row, m), lambda x, y: x.expand(y.shape).contiguous(), 1),
    "broadcast_column": ((column, m), lambda x, y: x.expand(y.shape).contiguous(), 1),
    "concat_first": binary(lambda a, b: torch.cat((a, b))),
    "concat_last": binary(lambda a, b: torch.cat((a, b), 1)),
    "stack_first": binary(lambda a, b: torch.stack((a, b))),
    "stack_last": binary(lambda a, b: torch.stack((a, b), -1)),
    "unstack": unary(lambda x: x.unbind()[0], squares),
    "split_first": unary(lambda x: x.split(x.shape[0] // 4)[1]),
    "split_last": unary(lambda x: [part.contiguous() for part in x.split(x.shape[1] // 4, 1)][1]),
    "slice": view(lambda x: x[1:-1, 3:-5]), "strided_slice": view(lambda x: x[::2, ::3]),
    "strided_slice_gradient": unary(
        lambda x: torch.slice_scatter(x.new_zeros(2 * x.shape[0], x.shape[1]), x, step=2)),
    "reverse_last": unary(lambda x: x.flip(1)), "reverse_first": unary(lambda x: x.flip(0)),
    "roll": unary(lambda x: x.roll((3, 5), (0, 1))), "tile": unary(lambda x: x.tile(2, 2)),
    "pad": unary(lambda x: F.pad(x, (3, 5, 1, 2))),
    "pad_reflect": unary(lambda x: F.pad(x[None], (3, 5), mode="reflect")[0]),
    "pad_symmetric": unary(lambda x: F.pad(x[None], (1, 1), mode="replicate")[0]),
    # sort.h
    "sort": unary(lambda x: x.sort(stable=True).values),
    "sort_descending": unary(lambda x: x.sort(descending=True, stable=True).values),
    "argsort": unary(lambda x: x.argsort(stable=True), m, 0),
    "top_k": unary(lambda x: x.topk(5).values),
    # random.h
    "uniform": unary(lambda x: torch.rand(x.shape), m, 0),
    "normal": unary(lambda x: torch.randn(x.shape), m, 0),
    "truncated_normal": unary(
        lambda x: torch.nn.init.trunc_normal_(torch.empty(x.shape)), m, 0),
    "bernoulli": unary(lambda x: torch.empty(x.shape, dtype=torch.bool).bernoulli_(0.1), m, 0),
    "uniform_int": unary(lambda x: torch.randint(0, 1000, x.shape), m, 0),
    "categorical": unary(
        lambda x: torch.multinomial(torch.softmax(x, 1), 4, replacement=True), m, 0),
    "permutation": unary(lambda x: torch.randperm(x.numel()), m, 0),
    "shuffle": unary(lambda x: x[torch.randperm(x.shape[0])], m, 0),
    # update.h
    "adam_update": updates(lambda w: torch.optim.Adam([w], lr=1e-3, fused=True)),
    "sgd_update": updates(lambda w: torch.optim.SGD([w], lr=1e-3, fused=True)),
    "momentum_update": updates(
        lambda w: torch.optim.SGD([w], lr=1e-3, momentum=0.9, fused=True)),
    "is_finite_all": unary(lambda x: x.isfinite().all(), m, 0),
    "global_norm": unary(torch.linalg.vector_norm, m, 0),
}


def forward(op, inputs, _sources):
    torch.set_grad_enabled(False)
    return lambda: op(*inputs)


def backward(op, inputs, sources):
    """The result and the gradients of the first inputs, each laid out in memory as its input."""
    torch.set_grad_enabled(True)
    sources = [x.requires_grad_() for x in inputs[:sources]]
    gradient = torch.randn_like(op(*inputs))

    def gradients():
        return torch.autograd.grad(op(*inputs), sources, gradient)

    views = [i for i, made in enumerate(gradients()) if made.stride() != sources[i].stride()]

    def step():
        made = gradients()
        for i in views:
            torch.empty_like(sources[i]).copy_(made[i])

    return step


def prepare(name, which, size):
    """A step and how many of them are timed together."""
    forms, op, sources = CASES[name]
    torch.set_grad_enabled(False)
    inputs = [form(SIZES[size]) for form in forms]
    step = (forward if which == "forward" else backward)(op, inputs, sources)
    milliseconds = window.milliseconds_of(step, 0.005)[-1]
    return step, int(min(max(1 / milliseconds, 1), 1e4))


def main():
    print("ready", torch_models.VERSION, flush=True)
    prepared = None
    for line in sys.stdin:
        *case, seconds = line.split()
        if seconds == "cases":
            print(*(f"{name}:{which}" for name, (_, _, sources) in CASES.items()
                    for which in ("forward", "backward")[:2 if sources else 1]), flush=True)
            continue
        if case != prepared:
            name, which, size = prepared = case
            step, inner = prepare(name, which, int(size))
        window.answer_one(step, float(seconds), inner, 1)


main()
