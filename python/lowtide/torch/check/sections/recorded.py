"""Steps as CUDA graphs against the same planned steps without: bits, bytes, times."""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from ...api.entry import optimize
from ...api.whole_step import step
from ..bits import alike, compare, on_host, step_from
from ..language import gpt
from ..measure import Inputs, clean, cuda_peaks, least_seconds, percent, times
from ..plans import of_peak, of_report, peaks
from ..section import Context

_STEPS = 6  # whose losses are compared; the first two are no replays


def cuda_graphs(context: Context) -> None:
    """Both sides of a small step, where launches bind, with eager and with fused kernels; and a whole step."""
    if not context.on_gpu:
        context.say("cuda graphs", skipped="they are for GPUs")
        return
    for inner in ("eager", "fused"):
        if context.has_time(15, f"cuda graph, {inner}"):
            with context.guarded(f"cuda graph, {inner}"):
                _both_sides(context, inner)
            clean()
    if context.has_time(15, "cuda graph, whole step"):
        with context.guarded("cuda graph, whole step"):
            _whole_step(context)
        clean()


def _both_sides(context: Context, inner: Any) -> None:
    module, inputs = gpt(context, torch.bfloat16, layers=3)
    found = {}
    for recorded in (False, True):
        clean()
        with _refusals() as refused:
            run = optimize(module, inputs, budget="100GiB", inner=inner, cuda_graph=recorded)
            for _ in range(3):
                step_from(run, module, inputs, [])
        found[recorded] = step_from(run, module, inputs, []), times(run, inputs, module)
    (plain, before), (left, after) = found[False], found[True]
    told = compare(left, plain)
    context.say(f"cuda graph, {inner}", _faults(told["equal"], refused), refused=refused, ms=after["ms"], host_ms=after["host_ms"],
                plain_ms=before["ms"], plain_host_ms=before["host_ms"], **told, measured=percent(after["ms"] / before["ms"] - 1))


def _whole_step(context: Context) -> None:
    module, inputs = gpt(context, layers=6, batch=8)
    start = copy.deepcopy(module.state_dict())
    losses, parameters, plain_ms, _ = _steps_from(start, module, inputs, recorded=False)
    with _refusals() as refused:
        mine, moved, ms, facts = _steps_from(start, module, inputs, recorded=True)
    equal = all(map(alike, [*losses, *parameters], [*mine, *moved]))
    context.say("cuda graph, whole step", [*_faults(equal, refused), *of_peak(facts)], refused=refused, equal=equal, ms=round(ms, 2),
                plain_ms=round(plain_ms, 2), measured_least=percent(ms / plain_ms - 1), **facts)


@contextlib.contextmanager
def _refusals() -> Iterator[list[str]]:
    """What is said of steps that cannot be recorded."""
    said: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield said
    said += [str(warning.message)[:300] for warning in caught if "is not recorded" in str(warning.message)]


def _faults(equal: bool, refused: list[str]) -> list[str]:
    return [*([] if equal else ["bits"]), *(["not recorded"] if refused else [])]


def _steps_from(start: dict[str, torch.Tensor], module: nn.Module, inputs: Inputs, recorded: bool) \
        -> tuple[list[torch.Tensor], list[torch.Tensor], float, dict[str, Any]]:
    """Losses of steps from these parameters, the last parameters, ms of a step, and the facts of its plan."""
    clean()
    module.load_state_dict(start)
    module.zero_grad(set_to_none=True)
    run = step(module, torch.optim.AdamW(module.parameters(), 1e-3, fused=True), inputs, budget="70%", cuda_graph=recorded)
    torch.manual_seed(2)
    losses: list[torch.Tensor] = []
    # the allocator counts what a graph takes while it is recorded, and nothing of a replay
    used = max((cuda_peaks(lambda: losses.append(run(*inputs).cpu())) for _ in range(_STEPS)), key=lambda one: one["peak"])
    parameters = on_host(module.parameters())
    ms = 1e3 * least_seconds(lambda: run(*inputs), 6)
    return losses, parameters, ms, of_report(run.report) | peaks(used, run.report)
