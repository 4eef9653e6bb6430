"""The ways in: `backend` for torch.compile, and `optimize`, which plans before the first step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._dynamo.exc import BackendCompilerFailed

from .errors import BudgetError, CaptureError
from .region import compile_region
from .settings import Settings


def backend(gm: fx.GraphModule, example_inputs: list[Any], *, options: dict[str, Any] | None = None,
            **_: Any) -> Callable[..., Any]:
    """torch.compile(model, backend="lowtide", options={"budget": "8GiB"}); options: settings.Settings.

    Raises ValueError for options that are wrong; while the region is compiled, BudgetError if no plan keeps
    the budget (torch.compile wraps it in its own BackendCompilerFailed).
    """
    return compile_region(gm, example_inputs, Settings.of(options))


class _Planned(Exception):
    """Raised in the place of the first run: all is compiled, and nothing shall run."""


def optimize(module: torch.nn.Module, example_inputs: Any = None, *, budget: int | str,
             **options: Any) -> torch.nn.Module:
    """`module`, compiled so that its training step stays within `budget`.

    example_inputs: a tuple of arguments, or one tensor.  With it the first region is captured, measured and
        planned before this returns, and nothing of it runs: no buffer moves, no random number is drawn.
        Without it that happens at the first call.
    budget, options: settings.Settings.

    Parameters and buffers are shared with `module`.  Raises ValueError for wrong options, BudgetError if no
    plan keeps the budget, CaptureError (with fallback="error") for a step that cannot be planned.
    """
    settings = Settings.of({"budget": budget, **options})
    dry = [False]

    def lowtide(gm: fx.GraphModule, inputs: list[Any]) -> Callable[..., Any]:
        run = compile_region(gm, inputs, settings)

        def call(*args: Any) -> Any:
            if dry[0]:
                raise _Planned
            return run(*args)

        return call

    compiled = torch.compile(module, backend=lowtide)
    if example_inputs is not None:
        arguments = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
        dry[0] = True
        try:
            compiled(*arguments)
        except _Planned:
            pass
        except BackendCompilerFailed as error:
            inner = error.inner_exception
            raise inner from (error if not isinstance(inner, (BudgetError, CaptureError, ValueError)) else None)
        finally:
            dry[0] = False
    return compiled
