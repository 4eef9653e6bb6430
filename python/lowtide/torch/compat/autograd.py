"""The engine that runs backwards, its hooks, and the profiler that preceded `torch.profiler`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .versions import needed, optional

with needed("engine of autograd"):
    from torch.autograd import ProfilerConfig, ProfilerState
    from torch.autograd import _disable_profiler_legacy as end_profile
    from torch.autograd import _enable_profiler_legacy as _begin
    from torch.profiler import _ExperimentalConfig

    run_backward = torch.autograd._engine_run_backward
    is_graph_kept = torch._C._autograd._get_current_graph_task_keep_graph
    is_profiled = torch._C._autograd._profiler_enabled
    when_backward_ends = torch.autograd.Variable._execution_engine.queue_callback  # in the streams that were current when it began
    AccumulateGrad = torch._C._functions.AccumulateGrad  # type: ignore[attr-defined]  # the node at a leaf

saved_tensor_hooks: Callable[[bool], Any] = lambda _: None
with optional("a look at hooks on saved tensors"):
    saved_tensor_hooks = torch._C._autograd._top_saved_tensors_default_hooks

__all__ = ["AccumulateGrad", "begin_profile", "compiled_autograd_runs", "end_profile", "is_graph_kept", "is_profiled", "run_backward",
           "run_backwards_by", "saved_tensor_hooks", "when_backward_ends"]


def run_backwards_by(run: Callable[..., Any]) -> None:
    """From now on all backwards of the process are run by this, in the place of run_backward."""
    torch.autograd._engine_run_backward = run


def begin_profile() -> None:
    """Note each allocation of this thread, and of those that compute for it, until end_profile."""
    _begin(ProfilerConfig(ProfilerState.CPU, False, True, False, False, False, _ExperimentalConfig()))


def compiled_autograd_runs() -> bool:
    """Does compiled autograd trace the backwards that begin now?"""
    with needed("compiled autograd"):
        from torch._dynamo import compiled_autograd

        return bool(compiled_autograd.compiled_autograd_enabled)
