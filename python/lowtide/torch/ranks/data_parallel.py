"""Data parallelism in the graph of one rank: what FSDP2 or DDP holds beside the activations, and the time that ranks wait.

Of FSDP2, for a unit u of modules that are gathered together, by its design:

    always                    the rank's parts of parameters and gradients; the root unit's gathered parameters
    while u runs forward      its gathered parameters; the flat copy that they come from, or the next unit's, if larger
    while u runs backward     the same, of the unit before; its gradients, and the larger of the copy from which they are reduced
                              and the one of the unit behind it, which is reduced meanwhile

These bytes are workspaces of the unit's ops, so they hold for every order, and for what a plan recomputes.  Without `reshard`
gathered parameters stay from the unit's forward to its backward.  DDP holds everything, and buckets of as many bytes as the gradients.

Collectives of a unit run beside the computation of the unit before.  The time by which they are longer is one op of the graph
that no plan repeats.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import lowtide

from ...frontend.roofline import DEVICES, collective_ns
from .mesh import Ranks, matcher

Link = Callable[[int], int]  # bytes -> ticks, between data-parallel ranks
_BUCKET = 25 << 20  # bytes, of DDP
_MASTER = 4  # bytes of a number
ROOT = ""


def units_of(module: torch.nn.Module, ranks: Ranks) -> list[str]:
    """The paths of the modules whose parameters FSDP gathers together; all others belong to the root."""
    patterns = ranks.shard.units
    if patterns:
        matches = matcher(patterns)
        found = [path for path, _ in module.named_modules() if path and matches(path)]
        if not found:
            raise ValueError(f"shard: no module's path matches units={patterns!r}")
        return found
    lists: list[str] = []
    for path, part in module.named_modules():
        if isinstance(part, torch.nn.ModuleList) and not any(path.startswith(f"{outer}.") for outer in lists):
            lists.append(path)
    return [f"{path}.{name}" if path else name for path in lists for name, _ in module.get_submodule(path).named_children()]


def held_bytes(size: int, shape: Sequence[int], ranks: Ranks | None) -> int:
    """Bytes that a rank holds of a parameter of so many, or of its gradient: FSDP2 divides dimension 0."""
    if ranks is None or ranks.shard.data == "ddp" or not size:
        return size
    rows, numbers = shape[0] if shape else 1, math.prod(shape)
    part = -(-rows // ranks.dp) * (numbers // rows)
    return part * (_MASTER if ranks.shard.master else size // numbers)


@dataclass
class _Unit:
    """Bytes of its whole parameters and gradients."""
    parameters: int = 0
    gradients: int = 0


@dataclass
class _Visit:
    """A run of ops of one unit in the given order."""
    unit: str
    backward: bool
    ops: list[int]
    time: int = 0


def with_data_parallel(graph: lowtide.Graph, units: list[str], ranks: Ranks, device: str, states: int) -> lowtide.Graph:
    """The graph of one data-parallel rank, of one that holds all parameters.

    device: prices the links.  states: the numbers that the optimizer keeps for each trained one.
    """
    parameters = {t.name: t for t in graph.tensors if t.role == "parameter"}
    trained = [parameters[name] for t in graph.tensors if t.role == "gradient" for name in _names(t) if name in parameters]
    state = states * sum(held_bytes(t.bytes, t.shape or (), ranks) for t in trained)
    graph = graph.edited(resident_bytes=graph.resident_bytes + state)
    if ranks.dp == 1 and not ranks.shard.master:
        return graph
    link = _link(graph, ranks, device)
    return (_fsdp if ranks.shard.data == "fsdp" else _ddp)(graph, units, ranks, link)


def _fsdp(graph: lowtide.Graph, units: list[str], ranks: Ranks, link: Link) -> lowtide.Graph:
    unit_of = _Owner(units)
    sizes: dict[str, _Unit] = {unit: _Unit() for unit in (ROOT, *units)}
    tensors: dict[int, dict[str, int]] = {}
    shapes = {t.name: t.shape or () for t in graph.tensors if t.role == "parameter"}
    for t in graph.tensors:
        if t.role not in ("parameter", "gradient"):
            continue
        name = _names(t)[0]  # a gradient may be seen in another shape than its parameter
        unit = sizes[unit_of(name)]
        if t.role == "parameter":
            unit.parameters += t.bytes
        elif name in shapes:
            unit.gradients += t.bytes
        if name in shapes:
            tensors[t.index] = {"bytes": held_bytes(t.bytes, shapes[name], ranks)}
    visits = _visits(graph, unit_of)
    # A part of a parameter is no operand of the op that reads the whole one.
    ops: dict[int, dict[str, Any]] = {op.index: {"described": False} for op in graph.ops}
    gathered: set[str] = set()
    for visit, before, after in zip(visits, [None, *visits], [*visits[1:], None]):
        gathered.add(visit.unit)
        extra = _beside(visit, before, after, sizes, ranks)
        if not ranks.shard.reshard:
            extra += sum(sizes[unit].parameters for unit in gathered - {visit.unit, ROOT})
            if visit.backward:
                gathered.discard(visit.unit)
        for op in visit.ops:
            ops[op]["workspace"] = graph.op(op).workspace + extra
    edited = graph.edited(tensors=tensors, ops=ops, resident_bytes=graph.resident_bytes + sizes[ROOT].parameters)
    return _with_wait(edited, _exposed(visits, sizes, ranks, link))


def _names(tensor: lowtide.Tensor) -> list[str]:
    """The parameters that a gradient is of; a parameter's own name."""
    return [name.removesuffix(".grad") for name in tensor.name.split(", ")]


def _beside(visit: _Visit, before: _Visit | None, after: _Visit | None, sizes: dict[str, _Unit], ranks: Ranks) -> int:
    """Bytes that stand while the ops of a visit run, beside the root's gathered parameters."""
    own = sizes[visit.unit]
    gathered = 0 if visit.unit == ROOT else own.parameters
    if visit.backward and not ranks.shard.reshard:
        coming = 0  # is still there
    else:
        flat = gathered
        ahead = sizes[after.unit].parameters if after is not None and after.unit != ROOT else 0
        coming = max(flat, ahead)
    extra = gathered + coming
    if visit.backward:
        scale = _MASTER / 2 if ranks.shard.master else 1  # of a copy in the numbers that are reduced; half precision
        behind = sizes[before.unit].gradients if before is not None and before.backward else 0
        extra += own.gradients + int(max(own.gradients, behind) * scale)
    return extra


def _exposed(visits: list[_Visit], sizes: dict[str, _Unit], ranks: Ranks, link: Link) -> int:
    """The time in which a rank computes nothing, because collectives last longer than what runs beside them."""
    waits = beside = 0
    for visit in visits:
        own = sizes[visit.unit]
        gather = 0 if visit.unit == ROOT or (visit.backward and not ranks.shard.reshard) else _ring(own.parameters, ranks, link)
        waits += max(0, gather - beside)  # it ran beside the visit before
        beside = visit.time
        if visit.backward:
            beside -= _ring(own.gradients, ranks, link)  # its reduction runs beside the next visit
    return waits + max(0, -beside)


def _ring(size: int, ranks: Ranks, link: Link) -> int:
    """The time of an all-gather or a reduce-scatter of so many bytes."""
    return link(size * (ranks.dp - 1) // ranks.dp) if size else 0


def _ddp(graph: lowtide.Graph, units: list[str], ranks: Ranks, link: Link) -> lowtide.Graph:
    gradients = sum(t.bytes for t in graph.tensors if t.role == "gradient")
    backward = sum(op.time for op in graph.ops if op.phase == "backward")
    reduced = 2 * _ring(gradients, ranks, link)
    last = 2 * _ring(min(gradients, _BUCKET), ranks, link)
    edited = graph.edited(resident_bytes=graph.resident_bytes + gradients)
    return _with_wait(edited, max(last, reduced - backward))


class _Owner:
    """The unit that a module or a tensor belongs to, by its path: the innermost."""

    def __init__(self, units: list[str]) -> None:
        self._units = sorted(units, key=len, reverse=True)
        self._known: dict[str, str] = {}

    def __call__(self, path: str | None) -> str:
        path = path or ROOT
        if path not in self._known:
            self._known[path] = next((u for u in self._units if path == u or path.startswith(f"{u}.")), ROOT)
        return self._known[path]


def _visits(graph: lowtide.Graph, unit_of: _Owner) -> list[_Visit]:
    visits: list[_Visit] = []
    for index in graph.order:
        op = graph.op(index)
        backward, unit = op.phase == "backward", unit_of(op.origin)
        if not visits or visits[-1].unit != unit or visits[-1].backward != backward:
            visits.append(_Visit(unit, backward, []))
        visits[-1].ops.append(index)
        visits[-1].time += op.time
    return visits


def _link(graph: lowtide.Graph, ranks: Ranks, device: str) -> Link:
    if graph.tick != "ns":
        return lambda size: 0  # nothing to compare with
    if ranks.shard.link is not None:
        # As the command reads a link to the host.
        machine = lowtide.Problem(graph, "100%", link=ranks.shard.link, derate="0%").machine
        assert machine is not None
        latency, bytes_, ticks = (machine["host_to_device"][key] for key in ("latency", "bytes", "ticks"))
        return lambda size: latency + -(-size * ticks // bytes_)
    return lambda size: collective_ns(DEVICES[device], size)


def _with_wait(graph: lowtide.Graph, ticks: int) -> lowtide.Graph:
    """The graph with an op of so many ticks that runs once."""
    if not ticks:
        return graph
    written: dict[str, Any] = graph.to_dict()
    written["tensors"].append({"name": "collectives are done", "bytes": 0})
    written["ops"].append({"name": "wait for collectives of other ranks", "kind": "lowtide.wait_for_ranks", "inputs": [],
                           "outputs": [len(written["tensors"]) - 1], "time": ticks, "recomputable": False, "phase": "backward"})
    if "order" in written:
        written["order"].append(len(written["ops"]) - 1)
    return lowtide.Graph.from_dict(written)
