"""Compares a step with and without a plan: bits, bytes and times."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ...frontend.errors import BudgetError
from ...frontend.planning.report import Report, reports
from ..api.entry import optimize
from .bits import Left, as_traced, compare, on_host, step_from
from .measure import Inputs, clean, memory, mib, percent, times, wait
from .section import Context

_PLAN = 0.02  # a peak may be so much off the plan's, and
_PLAN_MIB = 2.0  # at least by that
_POINTS, _FROM_MS = 3.0, 50.0  # a prediction may be so many points off, in steps from there on
_FAR = 0.1  # of its largest number: what a gradient may be off where sums are in another order
_HOST = 0.9  # from that share of the step's time on the host is what is timed


@dataclass(frozen=True)
class Eager:
    """A step as PyTorch runs it: what it leaves, its bytes and times; buffers: those from which every step begins."""

    buffers: list[torch.Tensor]
    left: Left
    memory: dict[str, int]
    times: dict[str, Any]


def eager(context: Context, what: str, module: nn.Module, inputs: Inputs) -> Eager:
    """Run it twice, and say whether it repeats itself: if not, equal bits say nothing."""
    buffers = on_host(module.buffers())
    try:
        first = step_from(module, module, inputs, buffers)
    except RuntimeError as error:
        if "deterministic" not in str(error):
            raise
        torch.use_deterministic_algorithms(True, warn_only=True)
        warnings.filterwarnings("ignore", message=".*deterministic.*")
        context.say(f"{what}, eager", notes=["not deterministic"], text=str(error)[:200])
        first = step_from(module, module, inputs, buffers)
    left = step_from(module, module, inputs, buffers)
    again = compare(first, left)["equal"]
    found = Eager(buffers, left, memory(module, inputs, module), times(module, inputs, module))
    context.say(f"{what}, eager", faults=[] if again else ["repeat"], repeats=again,
                parameters=sum(p.numel() for p in module.parameters()), **_in_mib(found.memory), **found.times)
    return found


def planned(module: nn.Module, inputs: Inputs, budget: int | str, **options: Any) -> tuple[Any, Report, dict[str, Any]]:
    """The module within a budget, or within the smallest that is found; the report of its plan, and seconds."""
    facts: dict[str, Any] = {}
    while True:
        module.zero_grad(set_to_none=True)  # a plan counts what is there
        clean()
        began = time.perf_counter()
        try:
            run = optimize(module, inputs, budget=budget, fallback="error", **options)
            wait()
            return run, reports()[-1], {**facts, "optimize_s": round(time.perf_counter() - began, 2)}
        except BudgetError as error:
            if facts or not error.smallest:
                raise
            facts = {"smallest_mib": mib(error.smallest)}
            budget = int(error.smallest * 1.01)


def check_plan(context: Context, what: str, module: nn.Module, inputs: Inputs, budget: int | str, beside: Eager,
               **options: Any) -> tuple[dict[str, Any], Any, Report] | None:
    """One row: a plan beside the step without one.  Its facts, what runs, the plan's report; None if nothing ran.

    options: of optimize.
    """
    with context.guarded(what):
        run, report, facts = planned(module, inputs, budget, **options)
        left = step_from(run, module, inputs, beside.buffers)
        bits = compare(left, beside.left)
        facts |= {"budget": str(budget), **bits, "exactness": str(report.exactness)[:200],
                  **peaks(memory(run, inputs, module), report), **of_report(report),
                  **beside_eager(times(run, inputs, module), beside)}
        facts |= of_allocator(report, torch.cuda.max_memory_reserved() if context.on_gpu else 0)
        faults = of_peak(facts) + of_reserved(facts)
        notes = ["smallest"] if "smallest_mib" in facts else []
        if not bits["equal"] and not report.exactness.equal:
            faults += ["far"] * (bits["worst_gradient"] > _FAR)
        elif not bits["equal"]:
            facts["equal_to_traced"] = as_traced(left, module, inputs, beside.buffers)
            if facts["equal_to_traced"] and not report.exactness.as_eager:
                notes.append("traced")
            else:
                faults.append("bits")
        del left
        if context.on_gpu:  # a CPU's times are those of the host, and of whatever else it does
            late, off = _of_times(facts, beside)
            notes += ["host"] * late
            faults += ["prediction"] * off
        context.say(what, faults, notes, **facts)
        return facts, run, report
    return None


def beside_eager(took: dict[str, float], beside: Eager) -> dict[str, Any]:
    """Times, and the extra time in per cent: of the medians, and of the fastest steps."""
    return took | {"measured": percent(took["ms"] / beside.times["ms"] - 1),
                   "measured_least": percent(took["least_ms"] / beside.times["least_ms"] - 1)}


def peaks(used: dict[str, int], report: Report) -> dict[str, Any]:
    """The measured memory of a step against its plan."""
    return {**_in_mib(used), "plan_mib": mib(report.peak), "budget_mib": mib(report.budget),
            "above_plan_mib": mib(used["peak"] - report.peak), "requested_above_plan_mib": mib(used["requested"] - report.peak),
            "reserved_beside_peak": round(used["reserved"] / max(1, used["peak"]), 3)}


def of_peak(facts: dict[str, Any]) -> list[str]:
    """The faults of a peak: it exceeds the budget, or differs from the plan's peak."""
    if facts["peak_mib"] > facts["budget_mib"]:
        return ["rounding" if facts["requested_mib"] <= facts["budget_mib"] else "budget"]
    return ["plan"] if abs(facts["above_plan_mib"]) > max(_PLAN_MIB, _PLAN * facts["plan_mib"]) else []


def of_allocator(report: Report, reserved: int) -> dict[str, Any]:
    """What the allocator has reserved over some steps, beside what its model says."""
    return {"footprint": report.footprint, "live_because": report.live_because, "allocator": report.allocator,
            "reserved_in_steps_mib": mib(reserved), "reserved_by_model_mib": mib(report.reserved or 0)}


def of_reserved(facts: dict[str, Any]) -> list[str]:
    """The faults of reserved bytes that the budget limits: they exceed it, or what the model says."""
    if facts["footprint"] != "reserved":
        return []
    taken = facts["reserved_in_steps_mib"]
    return ["segments"] * (taken > facts["budget_mib"]) + ["reserved"] * (taken > (1 + _PLAN) * facts["reserved_by_model_mib"])


def _of_times(facts: dict[str, Any], beside: Eager) -> tuple[bool, bool]:
    """Is it the host that is timed, and, if not, is the extra time another than the plan's?"""
    if facts["host_ms"] > _HOST * facts["ms"]:
        return True, False
    off = min(abs(facts["predicted"] - facts[key]) for key in ("measured", "measured_least"))
    return False, beside.times["least_ms"] >= _FROM_MS and off > _POINTS


def of_report(report: Report) -> dict[str, Any]:
    """The figures of a plan; times use the whole link, since nothing else uses it meanwhile."""
    took = report.duration_full_link
    return {"ops": report.ops, "own_mib": mib(report.own_peak), "floor_mib": mib(report.floor),
            "resident_mib": mib(report.resident), "inputs_mib": mib(report.inputs),
            "predicted": percent(took / max(1, report.own_duration) - 1),
            "predicted_eager_ms": round(report.own_duration / 1e6, 3), "predicted_ms": round(took / 1e6, 3),
            "derated_ms": round(report.duration / 1e6, 3),
            "bound": percent(report.bound / max(1, report.own_duration) - 1), "status": str(report.status),
            "plan_s": round(report.seconds, 2), "computed_again": sum(sum(c.values()) for c in report.again.values()),
            "copied": len(report.offloaded), "copied_mib": mib(sum(report.offloaded.values())), "link": report.link,
            "transforms": report.transforms, "techniques": [str(t)[:120] for t in report.techniques]}


def check_budgets(context: Context, what: str, module: nn.Module, inputs: Inputs, shares: tuple[str, ...],
                  **options: Any) -> Eager:
    """A row for each budget."""
    beside = eager(context, what, module, inputs)
    for share in shares:
        if context.has_time(8, f"{what} {share}"):
            check_plan(context, f"{what} {share}", module, inputs, share, beside, **options)
    return beside


def _in_mib(used: dict[str, int]) -> dict[str, Any]:
    return {f"{name}_mib": mib(count) for name, count in used.items()}
