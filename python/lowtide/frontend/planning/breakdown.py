"""The effect of each technique in a plan: ops and modules, bytes saved, cost."""

from __future__ import annotations

from collections import Counter
from typing import Any

import lowtide

from ..errors import size_text
from ..program import Program
from .report import Technique
from .schedule import Schedule

ROOT = "(the model itself)"  # of ops that are in no module below it


def offloaded(program: Program, scheduled: Schedule) -> dict[str, int]:
    """Bytes of what is copied to the host, by the tensors' names."""
    graph = program.graph
    return {graph.tensor(t).name: graph.tensor(t).bytes for t in scheduled.copied}


def techniques(graph: lowtide.Graph, program: Program, transforms: list[dict[str, Any]], schedule_: Schedule,
                cost: lowtide.Cost) -> list[Technique]:
    """The effect of each technique: first each transform, then the techniques of the plan of their graph."""
    found, whole, own = [], graph.duration or 1, graph
    end = 0
    for several in together(transforms):
        end += len(several)
        last = end == len(transforms)  # whose parts were priced
        now = program.graph if last else lowtide.transform(graph, transforms[:end])["graph"]
        changed = (index for t in several for index in t.get("ops", ()) if index < graph.num_ops)
        modules = Counter(_module(graph.op(index)) for index in changed)
        found.append(Technique(several[0]["kind"], said(several), own.own_peak - now.own_peak, (now.duration - own.duration) / whole,
                               modules or Counter({ROOT: 1})))
        own = now
    entries, computes = program.graph.ops, schedule_.computes
    times = Counter(op for op, _ in computes)
    again = Counter({op: count - 1 for op, count in times.items() if count > 1})
    over = Counter(op for op, written in computes if written)
    saved = max(0, own.own_peak - cost.peak)
    away = Counter(schedule_.copied)
    if away:
        modules, waits = Counter(), max(0, cost.duration - sum(entries[op].time for op, _ in computes if entries[op].lane == "compute"))
        for op in entries:
            modules[_module(op)] += sum(away[t] for t in op.outputs)
        size = size_text(sum(program.graph.tensor(t).bytes * count for t, count in away.items()))
        found.append(Technique("offload", f"{sum(away.values())} results, {size}, to the host and back", saved, waits / whole, +modules))
    for name, ops, detail in (("recompute", again, "computed again"), ("in_place", over, "written over what is read last")):
        if ops:
            modules = Counter()
            for index, count in ops.items():
                modules[_module(entries[index])] += count
            time = sum(count * entries[index].time for index, count in ops.items()) / whole if name == "recompute" else 0.0
            found.append(Technique(name, f"{sum(ops.values())} results {detail}", saved, time, modules))
    return found


def _module(op: lowtide.Op) -> str:
    return op.origin or ROOT


def together(transforms: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The transforms, with substitutions that follow one another as one."""
    found: list[list[dict[str, Any]]] = []
    for t in transforms:
        if found and t["kind"] == found[-1][0]["kind"] == "substitute":
            found[-1].append(t)
        else:
            found.append([t])
    return found


def said(transforms: list[dict[str, Any]]) -> str:
    """A transform, or substitutions, in words."""
    first = transforms[0]
    if first["kind"] == "split":
        return f"split of {len(first['ops'])} ops into {first['parts']} parts"
    if first["kind"] == "substitute":
        rules = Counter(t["rule"] for t in transforms)
        return "substitutions: " + ", ".join(f"{count} by {rule}" for rule, count in rules.items())
    return "hoist of the backward into the forward"


def again(program: Program, computes: list[int]) -> dict[str, Counter[str]]:
    """Module path -> names of ops that run more than once, with how often."""
    found: dict[str, Counter[str]] = {}
    for op, times in Counter(computes).items():
        if times > 1:
            entry = program.graph.op(op)
            found.setdefault(_module(entry), Counter())[entry.name] += times - 1
    return found
