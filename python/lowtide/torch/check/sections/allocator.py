"""Plans with expandable segments of the allocator: the first steps of a process, and the reserved memory."""

from __future__ import annotations

import torch

from ..language import gpt
from ..measure import mib, one_step, wait
from ..plans import check_plan, eager, planned
from ..section import Context

ENVIRONMENT = {"PYTORCH_ALLOC_CONF": "expandable_segments:True", "PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


def expandable(context: Context) -> None:
    module, inputs = gpt(context, torch.bfloat16)
    with context.guarded("first steps of a process"):
        # libraries take workspaces when a backward first runs in a thread; a plan has to know of them
        run, report, facts = planned(module, inputs, "60%")
        peaks = []
        for _ in range(3 if context.on_gpu else 0):
            module.zero_grad(set_to_none=True)
            wait()
            torch.cuda.reset_peak_memory_stats()
            one_step(run, inputs)
            wait()
            peaks.append(torch.cuda.max_memory_allocated())
        module.zero_grad(set_to_none=True)
        context.say("first steps of a process", ["budget"] if max(peaks, default=0) > report.budget else [],
                    peaks_mib=[mib(peak) for peak in peaks], plan_mib=mib(report.peak), budget_mib=mib(report.budget), **facts)
        del run
    beside = eager(context, "expandable segments", module, inputs)
    for what, options in (("", {}), (", no copies", {"techniques": "recompute,in_place"})):
        if context.has_time(8, f"expandable segments 60%{what}"):
            check_plan(context, f"expandable segments 60%{what}", module, inputs, "60%", beside, **options)
