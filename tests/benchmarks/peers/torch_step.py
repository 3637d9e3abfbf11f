# SPDX-License-Identifier: Apache-2.0
"""torch_step.py mlp|lenet: a training step on one thread."""
import sys

import torch_models
import window

model, batch = {
    "mlp": (torch_models.mlp, torch_models.mlp_batch),
    "lenet": (torch_models.lenet, torch_models.lenet_batch),
}[sys.argv[1]]
window.answer_windows(torch_models.VERSION, torch_models.training_step(model(), batch()))
