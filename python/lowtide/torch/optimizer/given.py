"""The types that a user may pass as an optimizer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Union

import torch

Optimizers = Union[torch.optim.Optimizer, Sequence[torch.optim.Optimizer]]
# those, or the class or the name of one, of which the size of the state is known
Optimizer = Union[Optimizers, type[torch.optim.Optimizer], str, None]

MakesOptimizer = Callable[[torch.nn.Module], torch.optim.Optimizer]  # of a module
Update = Union[Optimizer, MakesOptimizer, Sequence[Union[torch.optim.Optimizer, MakesOptimizer]]]

StateHome = Literal["device", "host"]
