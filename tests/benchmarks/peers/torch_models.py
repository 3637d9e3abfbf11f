# SPDX-License-Identifier: Apache-2.0
"""The models of the benchmarks in PyTorch, on one thread, each as a training step."""
import torch
from torch import nn
from torch.nn import functional as F

VERSION = f"PyTorch {torch.__version__}"
torch.set_num_threads(1)
torch.manual_seed(1)


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


def training_step(model, batch):
    """A step of gradient descent: forward, backward, update, and the loss as a number."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    images, labels = batch

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(images), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step
