"""What differs between the versions of PyTorch that Lowtide runs with: 2.11 to 2.14."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from typing import Any

import torch

OLDEST, NEWEST = (2, 11), (2, 14)


def version_of(text: str) -> tuple[int, int]:
    """(2, 13) of "2.13.0+cu130", (2, 14) of "2.14.0a0+git1234"; (0, 0) of what begins with no two numbers."""
    found = re.match(r"(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


VERSION = version_of(torch.__version__)
_LIMIT_IN_COMPILE = "recompile_limit" in inspect.signature(torch.compile).parameters  # since 2.12


def warn_of_another_version(version: str = torch.__version__, stacklevel: int = 3) -> None:
    """A warning where this PyTorch is older or newer than those that the tests ran with."""
    if not OLDEST <= version_of(version) <= NEWEST:
        oldest, newest = (".".join(map(str, v)) for v in (OLDEST, NEWEST))
        warnings.warn(f"lowtide.torch is written for torch {oldest} to {newest}, and this is torch {version}",
                      stacklevel=stacklevel)


def compiled(module: torch.nn.Module, backend: Callable[..., Any], recompile_limit: int) -> torch.nn.Module:
    """torch.compile, with at most so many variants of one function; before 2.12 that limit is one of the process, which
    is raised and stays so."""
    if _LIMIT_IN_COMPILE:
        return torch.compile(module, backend=backend, recompile_limit=recompile_limit)
    config = torch._dynamo.config
    config.recompile_limit = max(config.recompile_limit, recompile_limit)
    return torch.compile(module, backend=backend)


def initial_state(optimizer: torch.optim.Optimizer, parameter: torch.Tensor, group: dict[str, Any]) -> dict[str, Any]:
    """The state that an optimizer's step expects for a parameter and does not make if it is missing: Adagrad's, before
    2.12, which its constructor alone makes.  All others, and Adagrad from 2.12 on, make theirs in a first step."""
    if VERSION >= (2, 12) or not isinstance(optimizer, torch.optim.Adagrad):
        return {}
    return {"step": torch.zeros(()), "sum": torch.full_like(parameter, group["initial_accumulator_value"])}
