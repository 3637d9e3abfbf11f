# SPDX-License-Identifier: Apache-2.0
"""torch_ops.py conv|adam|cross_entropy|layer_norm: single operations on one thread."""
import sys

import torch
from torch.nn import functional as F

import torch_models
import window


def conv():
    def channels_last(*shape):
        return torch.rand(*shape).sub(0.5).to(memory_format=torch.channels_last)

    images = channels_last(32, 64, 28, 28).requires_grad_()
    filters = channels_last(64, 64, 3, 3).requires_grad_()
    gradient = channels_last(32, 64, 28, 28)

    def step():
        images.grad = filters.grad = None
        F.conv2d(images, filters, padding=1).backward(gradient)

    return step


def adam():
    weights = torch.rand(10_000_000).requires_grad_()
    weights.grad = torch.rand(10_000_000).sub(0.5)
    return torch.optim.Adam([weights], lr=1e-3, fused=True).step


def cross_entropy():
    logits = torch.randn(128, 1000).requires_grad_()
    labels = torch.randint(0, 1000, (128,))

    def step():
        logits.grad = None
        F.cross_entropy(logits, labels).backward()

    return step


def layer_norm():
    x = torch.rand(2048, 512).sub(0.5).requires_grad_()
    scale = torch.rand(512).requires_grad_()
    offset = torch.rand(512).requires_grad_()
    gradient = torch.rand(2048, 512).sub(0.5)

    def step():
        x.grad = scale.grad = offset.grad = None
        F.layer_norm(x, (512,), scale, offset, 1e-3).backward(gradient)

    return step


name = sys.argv[1]
make_step, inner = {
    "conv": (conv, 1),
    "adam": (adam, 1),
    "cross_entropy": (cross_entropy, 20),
    "layer_norm": (layer_norm, 5),
}[name]
window.answer_windows(torch_models.VERSION, make_step(), inner)
