# SPDX-License-Identifier: Apache-2.0
"""torch_step.py mlp|lenet|resnet20|gpt: a training step on one thread."""
import sys

import torch_models
import window

model, batch = torch_models.make(sys.argv[1])
window.answer_training(torch_models.VERSION, torch_models.training_step(model, batch),
                       torch_models.parameters_of(model))
