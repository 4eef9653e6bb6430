"""lowtide.torch.step with AdamW against an ordinary loop: losses, parameters, bytes, times; states on device and host."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ....frontend.errors import BudgetError
from ...api.whole_step import Step, step
from ..bits import alike, on_host
from ..language import gpt
from ..measure import Inputs, clean, cuda_peaks, least_seconds, one_step, percent
from ..plans import of_allocator, of_peak, of_report, of_reserved, peaks
from ..section import Context

_STEPS = 3  # whose losses are compared


@dataclass(frozen=True)
class _Loop:
    """The results of the loop: losses, final parameters, ms of a step."""

    losses: list[torch.Tensor]
    parameters: list[torch.Tensor]
    ms: float


def steps(context: Context) -> None:
    kinds: dict[str, dict[str, Any]] = {"foreach": {"foreach": True}, "fused": {"fused": True}}
    for kind, options in kinds.items() if context.on_gpu else [("one by one", {"foreach": False})]:
        for state_home in ("device", "host"):
            what = f"step, AdamW {kind}, states on the {state_home}"
            if not context.has_time(12, what):
                return
            with context.guarded(what):
                _step_beside_loop(context, what, options, state_home)
            clean()


def _step_beside_loop(context: Context, what: str, options: dict[str, Any], state_home: str) -> None:
    module, inputs = gpt(context, layers=6, batch=8)
    start = copy.deepcopy(module.state_dict())
    loop = _loop(module, inputs, options)
    module.load_state_dict(start)
    module.zero_grad(set_to_none=True)
    del start
    clean()
    began = time.perf_counter()
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3, **options)
    extra: dict[str, Any] = {}
    if state_home == "host" and not context.on_gpu:
        extra = {"link": "2GB/s,10us", "techniques": "default,offload"}
    run = _planned(module, optimizer, inputs, state_home=state_home, **extra)
    optimize_s = time.perf_counter() - began
    torch.manual_seed(2)
    losses = [run(*inputs).cpu() for _ in range(_STEPS)]
    parameters = on_host(module.parameters())
    facts = of_report(run.report)
    if context.on_gpu:
        facts |= peaks(cuda_peaks(lambda: run(*inputs)), run.report)
    ms = 1e3 * least_seconds(lambda: run(*inputs), 4)
    facts |= of_allocator(run.report, torch.cuda.max_memory_reserved() if context.on_gpu else 0)
    faults = of_peak(facts) + of_reserved(facts) if context.on_gpu else []
    equal = [sum(map(alike, *pair)) for pair in ((losses, loop.losses), (parameters, loop.parameters))]
    if equal != [_STEPS, len(parameters)]:
        faults.append("bits")
    context.say(what, faults, equal=equal == [_STEPS, len(parameters)], losses_equal=f"{equal[0]} of {_STEPS}",
                parameters_equal=f"{equal[1]} of {len(parameters)}", loop_ms=round(loop.ms, 2), ms=round(ms, 2),
                measured_least=percent(ms / loop.ms - 1), optimize_s=round(optimize_s, 1), **facts)


def _loop(module: nn.Module, inputs: Inputs, options: dict[str, Any]) -> _Loop:
    optimizer = torch.optim.AdamW(module.parameters(), 1e-3, **options)

    def once() -> torch.Tensor:
        optimizer.zero_grad()
        loss = one_step(module, inputs)
        optimizer.step()
        return loss

    torch.manual_seed(2)
    losses = [once().cpu() for _ in range(_STEPS)]
    parameters = on_host(module.parameters())
    return _Loop(losses, parameters, 1e3 * least_seconds(once, 4))


def _planned(module: nn.Module, optimizer: torch.optim.Optimizer, inputs: Inputs, **options: Any) -> Step:
    """A step within 60 %, or within the least that is found."""
    try:
        return step(module, optimizer, inputs, budget="60%", **options)
    except BudgetError as error:
        if not error.smallest:
            raise
        budget = int(error.smallest * 1.01)
    clean()  # and no traceback holds what the first attempt had made
    return step(module, optimizer, inputs, budget=budget, **options)
