"""A schedule -> a function of the step's flat inputs, which computes as the schedule says when JAX traces it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from ...frontend.planning.copies import COMPUTES, Step
from ..compat import is_array
from ..program.groups import Group, function_of
from ..program.program import Program
from ..tracing.equations import Value, evaluate, read
from .ties import APART, Ties, apart


def planned_function(program: Program, steps: list[Step], ties: Ties) -> Callable[..., list[Any]]:
    """The function of a schedule."""
    def run(*arguments: Any) -> list[Any]:
        flow = _Flow(program, ties)
        flow.known.update(zip(program.step.inputs, arguments, strict=True))
        flow.known.update(program.step.constants)
        for kind, what, *_ in steps:
            if kind in COMPUTES:
                flow.compute(what)
            elif kind == "offload":
                flow.offload(program.tensors[what])
            elif kind == "prefetch":
                flow.prefetch(program.tensors[what])
        return [read(flow.known, value) for value in program.step.outputs]

    return run


class _Flow:
    """The values while the function is traced."""

    def __init__(self, program: Program, ties: Ties) -> None:
        self.known: dict[Value, Any] = {}
        self._program, self._ties = program, ties
        self._computed: set[int] = set()
        self._repeats = False  # has something been computed again?
        self._newest: Value | None = None
        self._on_host: dict[Value, Any] = {}

    def compute(self, op: int) -> None:
        group = self._program.groups[op]
        again = op in self._computed
        self._repeats |= again
        known = self._read(group, again or (self._repeats and self._ties.free))
        self._computed.add(op)
        if self._repeats and self._newest is not None and any(e.name in APART for e in group.equations) and self._ties.apart:
            known |= zip(group.makes, apart(function_of(group), [known[v] for v in group.reads], self.known[self._newest]), strict=True)
        else:
            evaluate(group.equations, known)
        for value in group.makes:
            self.known[value] = known[value]
        self._newest = next((v for v in group.makes if v.bytes and is_array(v.aval)), self._newest)

    def _read(self, group: Group, tied: bool) -> dict[Value, Any]:
        reads = [v for v in group.reads if v is not self._newest]
        known = {v: self.known[v] for v in group.reads}
        if tied and self._newest is not None and reads:
            known |= zip(reads, self._ties.tie([known[v] for v in reads], self.known[self._newest]), strict=True)
        return known

    def offload(self, value: Value) -> None:
        self._on_host[value] = jax.device_put(self.known[value], jax.memory.Space.Host)

    def prefetch(self, value: Value) -> None:
        self._repeats = True
        copy = self._on_host[value]
        if self._newest is not None:
            (copy,) = self._ties.tie([copy], self.known[self._newest])
        self.known[value] = jax.device_put(copy, jax.memory.Space.Device)
