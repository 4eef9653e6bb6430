"""A model and its loss as one module."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..tracing.fake_step import LossFunction, loss_and_others


class WithLoss(nn.Module):
    """inputs -> the loss and what else there is, detached.  loss: called as loss(model, *inputs); None: the model's result is the loss."""

    def __init__(self, model: nn.Module, loss: LossFunction | None) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs: Any, **named: Any) -> tuple[Any, ...]:
        result = self.loss(self.model, *inputs, **named) if self.loss is not None else self.model(*inputs, **named)
        loss, *others = loss_and_others(result)
        return (loss, *map(detached, others))


def detached(value: Any) -> Any:
    """A tensor without its graph; anything else as it is."""
    return value.detach() if isinstance(value, torch.Tensor) else value
