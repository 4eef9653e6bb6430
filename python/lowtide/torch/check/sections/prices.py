"""The measured time of a step against its predictions, by measured prices and by estimates."""

from __future__ import annotations

import functools

import torch

from ...device.rates import ns_of
from ...pricing.costs import known_as
from ..language import gpt
from ..measure import percent, queued_us
from ..plans import eager, planned
from ..section import Context
from ..timeline import timeline

_OFF = 10.0  # per cent that the measured prices may be off the step


def prices(context: Context) -> None:
    module, inputs = gpt(context, torch.bfloat16, layers=4)
    beside = eager(context, "prices", module, inputs)
    step = beside.times["least_ms"]
    for costs in ("auto", "measured", *_estimates(context)):
        what = f"prices {costs}"
        if not context.has_time(6, what):
            return
        with context.guarded(what):
            _, report, facts = planned(module, inputs, "100%", costs=costs, techniques="recompute,in_place")
            predicted = report.own_duration / 1e6
            off = percent(predicted / step - 1)
            busy = beside.times["host_ms"] < 0.9 * beside.times["ms"]
            faults = ["prices"] if costs == "measured" and context.on_gpu and busy and abs(off) > _OFF else []
            context.say(what, faults, step_ms=step, predicted_ms=round(predicted, 3), off=off, ops=report.ops, **facts)
    if context.on_gpu and context.has_time(5, "kernels of the step"):
        with context.guarded("kernels of the step"):
            lanes = timeline(module, inputs, module)
            context.say("kernels of the step", kernels_ms=lanes["kernels_ms"], step_ms=step,
                        idle=percent(1 - lanes["kernels_ms"] / step), host_ms=beside.times["host_ms"])
    with context.guarded("one kernel"):
        device = torch.device(context.device)
        for n in (1 << 12, 1 << 18, *((1 << 22, 1 << 26) if context.on_gpu else ())):
            x = torch.randn(n, device=device)
            context.say(f"tanh of {n} numbers", alone_us=round(ns_of(functools.partial(torch.tanh, x), device) / 1e3, 2),
                        queued_us=round(queued_us(functools.partial(torch.tanh, x)), 2))


def _estimates(context: Context) -> list[str]:
    """This device in the table of estimates, by its name; another one if it is not there."""
    if not context.on_gpu:
        return []
    return [known_as(torch.device(context.device))]
