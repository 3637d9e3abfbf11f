# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmarks in PyTorch, on one thread, each as a training step."""
import inspect

import torch
from torch import nn
from torch.nn import functional as F

VERSION = f"PyTorch {torch.__version__}"
torch.set_num_threads(1)
torch.manual_seed(1)


def make(name):
    """The model of this name, and a batch."""
    model = globals()[name]()
    set_first_values(model)
    return model, globals()[f"{name}_batch"]()


def parameters_of(model):
    return sum(parameter.numel() for parameter in model.parameters())


def set_first_values(model):
    """From the distributions of Keras's layers, as in models.h, but that an attention's three first
    projections are one here."""
    for module in model.modules():
        if isinstance(module, nn.Conv2d) and module.bias is None:  # before a normalisation
            nn.init.kaiming_normal_(module.weight)
        elif isinstance(module, (nn.Conv2d, nn.Linear)):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, std=0.02)
        elif isinstance(module, Positions):
            nn.init.xavier_uniform_(module.embeddings)


def mlp():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(),
                         nn.Linear(512, 10))


def mlp_batch():
    return torch.rand(128, 784), torch.randint(0, 10, (128,))


def lenet():
    model = nn.Sequential(
        nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10))
    return model.to(memory_format=torch.channels_last)


def lenet_batch():
    images = torch.rand(128, 1, 28, 28).to(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (128,))


class Block(nn.Module):
    """Of a residual net."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.main = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs),
            nn.ReLU(inplace=True), nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            nn.BatchNorm2d(outputs))
        self.shortcut = nn.Identity() if inputs == outputs else nn.Sequential(
            nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        return F.relu(self.main(x) + self.shortcut(x), inplace=True)


def resnet20():
    sizes = [(16, 16, 1)] * 3 + [(16, 32, 2)] + [(32, 32, 1)] * 2 + [(32, 64, 2)] + [(64, 64, 1)] * 2
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True),
        *(Block(*size) for size in sizes), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(64, 10))
    return model.to(memory_format=torch.channels_last)


def resnet20_batch():
    images = torch.rand(64, 3, 32, 32).to(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (64,))


class Attention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.inputs = nn.Linear(size, 3 * size)
        self.output = nn.Linear(size, size)

    def forward(self, x):
        batch, positions, size = x.shape
        q, k, v = self.inputs(x).view(batch, positions, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, positions, size))


class Transformer(nn.Module):
    """With normalisation before its parts."""

    def __init__(self, size, heads):
        super().__init__()
        self.attention = nn.Sequential(nn.LayerNorm(size), Attention(size, heads))
        self.feed_forward = nn.Sequential(nn.LayerNorm(size), nn.Linear(size, 4 * size), nn.GELU(),
                                          nn.Linear(4 * size, size))

    def forward(self, x):
        x = x + self.attention(x)
        return x + self.feed_forward(x)


class Positions(nn.Module):
    def __init__(self, positions, size):
        super().__init__()
        self.embeddings = nn.Parameter(torch.empty(positions, size))

    def forward(self, x):
        return x + self.embeddings


def gpt():
    size, heads, positions, tokens = 128, 4, 64, 256
    return nn.Sequential(nn.Embedding(tokens, size), Positions(positions, size),
                         *(Transformer(size, heads) for _ in range(4)), nn.LayerNorm(size),
                         nn.Linear(size, tokens))


def gpt_batch():
    return torch.randint(0, 256, (32, 64)), torch.randint(0, 256, (32, 64))


def training_step(model, batch):
    """A step of gradient descent: forward, backward, update, and the loss as a number."""
    # The fastest that this version has.
    kind = "fused" if "fused" in inspect.signature(torch.optim.SGD).parameters else "foreach"
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, **{kind: True})
    inputs, labels = batch

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(inputs).flatten(0, -2), labels.flatten())
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
