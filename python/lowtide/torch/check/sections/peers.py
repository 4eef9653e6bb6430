"""PyTorch's own ways to save memory, and Lowtide at the same peaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.autograd.graph import save_on_cpu

from ...compat.aot import with_memory_budget
from ...compat.dynamo import lookup_backend
from ..bits import compare, step_from
from ..language import gpt
from ..measure import Inputs, clean, memory, mib, times
from ..plans import Eager, beside_eager, check_plan, eager
from ..section import Context

_LIVE: dict[str, Any] = {"footprint": "live"}  # as the peaks of others are, beside which plans stand


def peers(context: Context) -> None:
    """Checkpoints of blocks, activation_memory_budget with eager kernels, what is saved on the host."""
    module, inputs = gpt(context, torch.bfloat16)
    beside = eager(context, "peers", module, inputs)

    def checkpointed(*args: torch.Tensor) -> torch.Tensor:
        module.checkpointed = True
        try:
            return module(*args)
        finally:
            module.checkpointed = False

    def saved_on_host(*args: torch.Tensor) -> torch.Tensor:
        with save_on_cpu(pin_memory=context.on_gpu):
            return module(*args)

    ways: dict[str, Callable[..., torch.Tensor]] = {"torch.utils.checkpoint": checkpointed}
    found = {}
    for name, run in ways.items():
        with context.guarded(name):
            found[name] = _peer(context, name, run, module, inputs, beside)
    if context.has_time(14, "activation_memory_budget 0.5"):
        with context.guarded("activation_memory_budget 0.5"), with_memory_budget(0.5):
            clean()
            backend = lookup_backend("aot_eager_decomp_partition")
            run = torch.compile(module, backend=lambda graph, args: backend(graph, args))
            found["activation_memory_budget 0.5"] = _peer(context, "activation_memory_budget 0.5", run, module, inputs, beside)
    if context.has_time(14, "save_on_cpu"):
        with context.guarded("save_on_cpu"):
            found["save_on_cpu"] = _peer(context, "save_on_cpu", saved_on_host, module, inputs, beside)
    for name, peak in found.items():
        if context.has_time(8, f"at the peak of {name}"):
            check_plan(context, f"at the peak of {name}", module, inputs, peak, beside, **_LIVE)
    if "torch.utils.checkpoint" in found and context.has_time(8, "at the peak of checkpoints, no copies"):
        check_plan(context, "at the peak of checkpoints, no copies", module, inputs, found["torch.utils.checkpoint"], beside,
                   techniques="recompute,in_place", **_LIVE)


def inductor(context: Context) -> None:
    """activation_memory_budget as Inductor runs it; Lowtide's plans by Inductor's kernels, and by eager ones."""
    module, inputs = gpt(context, torch.bfloat16, layers=6)
    beside = eager(context, "Inductor", module, inputs)
    found = {}
    for ratio in (1.0, 0.5, 0.2):
        name = f"Inductor, activation_memory_budget {ratio}"
        if not context.has_time(25, name):
            break
        with context.guarded(name), with_memory_budget(ratio):
            clean()
            run = torch.compile(module, backend="inductor")
            found[ratio] = _peer(context, name, run, module, inputs, beside)
    for ratio, peak in found.items():
        for inner, options in (("fused kernels", {"inner": "fused"}), ("eager kernels", {"inner": "eager"})):
            what = f"{inner} at the peak of Inductor {ratio}"
            if ratio < 1 and context.has_time(25, what):
                check_plan(context, what, module, inputs, peak, beside, **_LIVE, **options)


def _peer(context: Context, name: str, run: Callable[..., Any], module: Any, inputs: Inputs, beside: Eager) -> int:
    """Say what it takes; returns its peak in bytes."""
    bits = compare(step_from(run, module, inputs, beside.buffers), beside.left)
    used = memory(run, inputs, module)
    context.say(name, **bits, peak_mib=mib(used["peak"]), requested_mib=mib(used["requested"]),
                reserved_mib=mib(used["reserved"]), **beside_eager(times(run, inputs, module), beside))
    return used["peak"]
