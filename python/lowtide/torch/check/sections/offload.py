"""Plans that only offload: bits over many steps, and the share of the copying that computation hides."""

from __future__ import annotations

from typing import Any

import torch

from ...device.host import host_of
from ..bits import compare, step_from
from ..language import gpt
from ..measure import mib, percent
from ..plans import check_plan, eager
from ..section import Context
from ..timeline import timeline


def offload(context: Context) -> None:
    module, inputs = gpt(context, torch.bfloat16)
    beside = eager(context, "copies alone", module, inputs)
    options: dict[str, Any] = {"footprint": "live"}  # copies alone leave holes between blocks, which is not what is looked at here
    options |= {} if context.on_gpu else {"link": "2GB/s,10us"}
    for share in ("act:70%", "act:45%"):
        what = f"copies alone {share}"
        if not context.has_time(10, what):
            return
        found = check_plan(context, what, module, inputs, share, beside, techniques=["offload"], **options)
        if found is None or not found[0]["copied"]:
            continue
        facts, run, report = found
        with context.guarded(f"{what}, in many steps"):
            # a copy that is read too early shows by chance
            rounds = 12 if context.on_gpu else 2
            wrong = sum(not compare(step_from(run, module, inputs, beside.buffers), beside.left)["equal"] for _ in range(rounds))
            host = host_of(torch.device(context.device))
            context.say(f"{what}, in many steps", ["bits"] if wrong else [], rounds=rounds, wrong=wrong,
                        host_held_mib=mib(host.held), host_peak_mib=mib(host.peak))
        if context.on_gpu and context.has_time(6, f"{what}, hidden"):
            with context.guarded(f"{what}, hidden"):
                lanes = timeline(run, inputs, module)
                copies = lanes["out_ms"] + lanes["in_ms"]
                extra = facts["least_ms"] - beside.times["least_ms"]
                context.say(f"{what}, hidden", **lanes, extra_ms=round(extra, 2),
                            hidden=percent(1 - max(0.0, extra) / copies) if copies else None)
        del run, report, found
