# SPDX-License-Identifier: Apache-2.0
"""torch_step.py mlp|lenet|resnet20|gpt: a training step on one thread."""
import sys

import torch_models
import window

name = sys.argv[1]
model, batch = (getattr(torch_models, of)() for of in (name, f"{name}_batch"))
window.answer_windows(torch_models.VERSION, torch_models.training_step(model, batch))
