#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch_char_lm.py TEXT [--steps N] [--seed N] ...: examples/char_lm.cc in PyTorch, on one thread.

The same architecture, initial distributions, windows, optimizer and schedule; only the random numbers
differ. Prints the mean loss every --print_every steps and the validation loss in the end.
"""
import argparse
import math
import pathlib

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(size), nn.LayerNorm(size)
        self.query, self.key, self.value, self.output = (nn.Linear(size, size) for _ in range(4))
        self.inner, self.outer = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

    def forward(self, x):
        batch, length, size = x.shape
        normal = self.norm1(x)
        q, k, v = (f(normal).view(batch, length, self.heads, -1).transpose(1, 2)
                   for f in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.output(mixed.transpose(1, 2).reshape(batch, length, size))
        return x + self.outer(F.gelu(self.inner(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, layers, size, heads, length):
        super().__init__()
        self.bytes, self.positions = nn.Embedding(256, size), nn.Embedding(length, size)
        self.blocks = nn.Sequential(*(Block(size, heads) for _ in range(layers)))
        self.norm, self.logits = nn.LayerNorm(size), nn.Linear(size, 256)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)
        nn.init.uniform_(self.bytes.weight, -0.05, 0.05)
        nn.init.xavier_uniform_(self.positions.weight)

    def forward(self, text):
        x = self.bytes(text) + self.positions.weight[: text.shape[1]]
        return self.logits(self.norm(self.blocks(x)))


def windows(text, length):
    count = (len(text) - 1) // length
    return torch.stack([text[i * length:(i + 1) * length + 1] for i in range(count)])


def loss_of(model, batch):
    logits = model(batch[:, :-1])
    return F.cross_entropy(logits.reshape(-1, 256), batch[:, 1:].reshape(-1))


def rate_at(step, o):
    """The factor of the rate of Keras's CosineDecay with a warm-up."""
    warmup = o.steps // 10
    if step < warmup:
        return step / warmup
    done = min(1, (step - warmup) / (o.steps - warmup))
    return 0.1 + 0.9 * (1 + math.cos(math.pi * done)) / 2


def options():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    for name, value in (("layers", 4), ("size", 128), ("heads", 4), ("length", 64), ("batch", 32),
                        ("steps", 1000), ("rate", 0.001), ("print_every", 100), ("seed", 0)):
        parser.add_argument(f"--{name}", type=type(value), default=value)
    return parser.parse_args()


def main():
    o = options()
    torch.set_num_threads(1)
    torch.manual_seed(o.seed)
    text = torch.frombuffer(bytearray(pathlib.Path(o.text).read_bytes()), dtype=torch.uint8).long()
    held_out = len(text) // 20
    train = windows(text[:-held_out], o.length)
    validation = windows(text[-held_out:], o.length)[:1000]
    model = Gpt(o.layers, o.size, o.heads, o.length)
    decays = [p for name, p in model.named_parameters()
              if name.endswith("weight") and not any(w in name for w in ("norm", "bytes", "positions"))]
    others = [p for p in model.parameters() if not any(p is d for d in decays)]
    optimizer = torch.optim.AdamW([{"params": decays, "weight_decay": 0.01},
                                   {"params": others, "weight_decay": 0.0}], lr=o.rate, eps=1e-7)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate_at(step, o))
    order, total = torch.empty(0, dtype=torch.long), 0.0
    for step in range(1, o.steps + 1):
        if len(order) < o.batch:
            order = torch.cat([order, torch.randperm(len(train))])
        batch, order = train[order[:o.batch]], order[o.batch:]
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        total += loss.item()
        if step % o.print_every == 0:
            print(f"step {step}: loss {total / o.print_every:.6f}", flush=True)
            total = 0.0
    with torch.no_grad():
        losses = [(loss_of(model, b) * len(b)).item() for b in validation.split(o.batch)]
    print(f"validation loss {sum(losses) / len(validation):.6f}")


if __name__ == "__main__":
    main()
