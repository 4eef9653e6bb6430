"""Where the values of a planned model lie in one arena, in the forms that runtimes take.

The arena has inputs, results and workspaces; weights are not in it.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lowtide

from .errors import ModelError
from .lower import Lowered

ALIGNMENT = 16  # bytes; what tflite-micro and ExecuTorch use


@dataclass(frozen=True)
class Place:
    """offset, size: in bytes.  first, last: the positions in the order of the nodes between which it lies there; an input is there
    before the first, at -1."""

    value: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Arena:
    """size: bytes of the arena.  peak: the most that is live at once, which no arena is below.  greedy: the arenas that the rules of
    other planners come to, by name.  nodes: in order, by name.  places: one for each value and each time that it is made."""

    model: str
    size: int
    peak: int
    alignment: int
    greedy: dict[str, int]
    nodes: list[str] = field(repr=False)
    places: list[Place] = field(repr=False)

    def to_json(self) -> str:
        """All places, as text."""
        return json.dumps({"format": "lowtide-onnx-arena", "version": 1, "model": self.model, "bytes": self.size, "peak": self.peak,
                           "alignment": self.alignment, "greedy": self.greedy, "nodes": self.nodes,
                           "places": [{"value": p.value, "offset": p.offset, "bytes": p.size, "first": p.first, "last": p.last}
                                       for p in self.places]}, indent=1)

    def to_tflite_micro(self, names: Sequence[str] | None = None, subgraph: int = 0) -> bytes:
        """The buffer of the metadata entry "OfflineMemoryAllocation": 32-bit integers of the version, 1, the index of the sub-graph, the
        number of tensors, and their offsets; -1 leaves a tensor to the runtime.

        names: of the tensors in the order of the TensorFlow Lite model; those that are no values of this model, such as its weights,
        get -1.  Without names, the order of `places`.  Raises ModelError for a value that is made twice.
        """
        offsets = self._once("tflite-micro")
        if self.size > 2**31 - 1:
            raise ModelError(f"an arena of {self.size} bytes is too large for tflite-micro, whose offsets have 31 bits")
        listed = [offsets.get(name, -1) for name in (list(offsets) if names is None else names)]
        return struct.pack(f"<{3 + len(listed)}i", 1, subgraph, len(listed), *listed)

    def to_executorch(self) -> str:
        """ExecuTorch's sizes of buffers and AllocationDetails by the name of a value, as JSON.  Buffer 0 is for constants.

        Raises ModelError for a value that is made twice.
        """
        details = {name: {"memory_id": 1, "memory_offset_low": offset % 2**32, "memory_offset_high": offset >> 32}
                   for name, offset in self._once("ExecuTorch").items()}
        return json.dumps({"non_const_buffer_sizes": [0, self.size], "allocation_info": details}, indent=1)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write `to_json` to a file."""
        Path(path).write_text(self.to_json() + "\n", encoding="utf-8")

    def _once(self, runtime: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for place in self.places:
            if place.value in found:
                raise ModelError(f"'{place.value}' is computed again and lies in two places, which {runtime} cannot say: save the "
                                 "planned model and load it, so that each has a name, or plan without recomputation")
            found[place.value] = place.offset
        return found


def arena_of(graph: lowtide.Graph, lowered: Lowered, plan: lowtide.Plan, alignment: int, time: float | None, work: int | None) -> Arena:
    """The arena of a verified plan."""
    weights = {t.index: {"bytes": 0} for t in graph.tensors if t.role == "parameter"}
    bare = graph.edited(tensors=weights, ops={op.index: {"described": False} for op in graph.ops})
    placed = lowtide.place(bare, lowtide.Plan(plan.steps), alignment=alignment, time=time, work=work)
    places = list(_places(bare, lowered, list(plan.steps), placed.offsets))
    peak = lowtide.simulate(bare, lowtide.Plan(plan.steps)).peak
    return Arena(graph.name, placed.arena, peak, alignment, placed.baselines, [graph.op(op).name for op in plan.sequence], places)


def _places(graph: lowtide.Graph, lowered: Lowered, steps: list[tuple[Any, ...]],
            offsets: Sequence[tuple[int | None, int | None, int]]) -> Iterator[Place]:
    names: dict[int, list[str]] = {}
    for name, t in lowered.tensor.items():
        names.setdefault(t, []).append(name)
    begins: dict[int | None, list[tuple[int, int]]] = {}
    for step, tensor, offset in offsets:
        if tensor is not None:
            begins.setdefault(step, []).append((tensor, offset))
    live: dict[int, tuple[int, int]] = {t: (offset, -1) for t, offset in begins.get(None, [])}
    found: list[tuple[int, int, int, int]] = []  # first, tensor, offset, last
    position = -1
    for step, (kind, index, *over) in enumerate(steps):
        if kind == "free":
            if index in live:
                offset, first = live.pop(index)
                found.append((first, index, offset, position))
            continue
        position += 1
        for t in over:
            if t not in live:  # of no bytes
                continue
            offset, first = live.pop(t)
            found.append((first, t, offset, position))
            live[dict(graph.op(index).in_place)[t]] = offset, position
        live.update((t, (offset, position)) for t, offset in begins.get(step, []))
    found += [(first, t, offset, position) for t, (offset, first) in live.items()]
    for first, t, offset, last in sorted(found):
        yield from (Place(name, offset, graph.tensor(t).bytes, first, last) for name in names[t])
