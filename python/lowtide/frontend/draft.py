"""A Lowtide graph under construction: tensors and ops that may still change, then a `lowtide.Graph`.

Knows the rules of the file format and of no framework.  Tensors are numbered as they come; ops name each
other as objects until `finish`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import lowtide


class BrokenOrder(Exception):
    """An op reads a tensor that an op before it changed in place."""


def _present(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in entry.items() if value is not None} for entry in entries]


@dataclass(eq=False)
class Op:
    """One op.  inputs, outputs, mutates and the pairs of in_place are tensor numbers; time is in ticks; lane is that of the
    file, or None.  operands, results and arguments are entries as the file has them."""

    name: str
    kind: str
    inputs: list[int]
    outputs: list[int]
    time: int
    phase: str | None = None
    origin: str | None = None
    recomputable: bool = True
    lane: str | None = None
    after: list[Op] = field(default_factory=list)
    mutates: list[int] = field(default_factory=list)
    in_place: list[list[int]] = field(default_factory=list)
    operands: list[dict[str, Any]] = field(default_factory=list)
    results: list[dict[str, Any]] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    workspace: int = 0
    kernel: Any = None  # what it is priced by, and
    runs: Any = None  # what computes it; neither is in the file


class GraphBuilder:
    """Collects tensors and ops in the given order."""

    def __init__(self) -> None:
        self.tensors: list[dict[str, Any]] = []
        self.ops: list[Op] = []
        self.producer: dict[int, Op] = {}
        self.barrier: Op | None = None
        self.due_at_barrier: list[Op] = []  # what must have run once when the barrier is reached
        self._effect: Op | None = None

    def tensor(self, name: str, size: int, role: str | None, shape: list[int], dtype: str, stays: bool = False) -> int:
        """Add a tensor of `size` bytes; returns its number.  stays: the caller holds it."""
        self.tensors.append({"name": name, "bytes": size, "role": role, "stays": stays or None, "shape": shape,
                             "dtype": dtype})
        return len(self.tensors) - 1

    def op(self, op: Op, effect: bool = False) -> Op:
        """Append an op.  Effects run once, one after another, and on their own side of the barrier."""
        if effect:
            op.recomputable = False
            op.after += [earlier for earlier in (self._effect, self.barrier) if earlier]
            self._effect = op
        self.ops.append(op)
        self.producer.update(dict.fromkeys(op.outputs, op))
        return op

    def insert(self, op: Op) -> Op:
        """Put an op without outputs behind the last of those that make or read its inputs, and of op.after."""
        inputs = set(op.inputs)
        last = max((i for i, o in enumerate(self.ops)
                    if o in op.after or not inputs.isdisjoint(o.inputs) or not inputs.isdisjoint(o.outputs)),
                   default=len(self.ops) - 1)
        self.ops.insert(last + 1, op)
        return op

    def cross(self, inputs: list[int], outputs: list[int]) -> Op:
        """Append the barrier, after all effects and all of due_at_barrier so far."""
        first = [*self.due_at_barrier, *([self._effect] if self._effect else [])]
        self.barrier = self.op(Op("barrier", "lowtide.barrier", inputs, outputs, 0, recomputable=False, after=first))
        self._effect = None
        return self.barrier

    @property
    def crossed(self) -> Op:
        """The barrier, which was appended."""
        assert self.barrier is not None
        return self.barrier

    def finish(self, name: str, outputs: list[int]) -> lowtide.Graph:
        """The graph.

        Raises BrokenOrder, and lowtide.Error for what no file could hold.
        """
        self._check_reads()
        place = {op: i for i, op in enumerate(self.ops)}
        ops = [{"name": op.name, "kind": op.kind, "inputs": op.inputs, "outputs": op.outputs, "time": op.time,
                "workspace": op.workspace, "recomputable": op.recomputable, "lane": op.lane,
                "after": sorted({place[o] for o in op.after}), "mutates": op.mutates, "in_place": op.in_place or None,
                "operands": op.operands or None, "results": op.results or None, "arguments": op.arguments or None,
                "phase": op.phase, "origin": op.origin, "attributes": op.attributes} for op in self.ops]
        return lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "name": name, "tick": "ns",
                                        "resident_bytes": 0, "tensors": _present(self.tensors), "ops": _present(ops),
                                        "outputs": outputs})

    def _check_reads(self) -> None:
        changed: dict[int, Op] = {}
        for op in self.ops:
            for t in op.inputs:
                if t in changed:
                    raise BrokenOrder(f"{op.name} (in {op.origin or 'the model itself'}) reads "
                                      f"{self.tensors[t]['name']} as it was before {changed[t].name} changed it in "
                                      "place, and is to run after that: clone the tensor before the change")
            changed.update(dict.fromkeys(op.mutates, op))
