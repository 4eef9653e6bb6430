"""The state that PyTorch's optimizers keep for a parameter, and what their steps ask."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from .versions import before


def initial_state(optimizer: torch.optim.Optimizer, parameter: torch.Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The state that an optimizer's step expects for a parameter and does not make if it is missing: Adagrad's, before
    2.12, which its constructor alone makes.  All others, and Adagrad from 2.12 on, make theirs in a first step."""
    if before(2, 12) and isinstance(optimizer, torch.optim.Adagrad):
        return {"step": torch.zeros(()), "sum": torch.full_like(parameter, group["initial_accumulator_value"])}
    return {}


def never_asks_for_capturable(optimizer: torch.optim.Optimizer) -> None:
    """Have an optimizer's step run while a CUDA graph is recorded, whatever its groups say.  PyTorch refuses a fused one without
    capturable=True, though its kernels read everything on the device; optimizer/rules.py refuses those that do not."""
    optimizer.__dict__["_accelerator_graph_capture_health_check"] = _nothing


def _nothing() -> None:
    pass


@contextlib.contextmanager
def not_compiling() -> Iterator[None]:
    """Optimizers ask whether a tracer is at work, and read no numbers then; what runs later is not traced."""
    kept = torch.compiler._is_compiling_flag
    torch.compiler._is_compiling_flag = False
    try:
        yield
    finally:
        torch.compiler._is_compiling_flag = kept
