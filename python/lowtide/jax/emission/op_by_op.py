"""Runs a schedule op by op: one executable an op, and each free drops an array, so that the bytes held are the plan's.

Equal ops, such as those of equal layers, share an executable.  An op that overwrites an operand is given it (donation).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import jax

from ...frontend.planning.copies import COMPUTES, Step
from ..compat import nbytes
from ..program.groups import Group, function_of, structure
from ..program.program import Program
from ..tracing.equations import Value, read


class OpByOp:
    """Called with the step's flat inputs, which it may free where the caller donated them; returns the flat results.

    held: the most bytes of arrays that a call has held at once, inputs included; None before the first call.
    """

    def __init__(self, program: Program, steps: list[Step]) -> None:
        self._program, self._steps = program, steps
        self._executables: dict[Hashable, Any] = {}
        self._of_op: dict[tuple[int, tuple[int, ...]], Any] = {}
        self.held: int | None = None

    @property
    def executables(self) -> int:
        """How many were compiled."""
        return len(self._executables)

    def __call__(self, *arguments: Any) -> list[Any]:
        run = _Run(self._program, arguments)
        for kind, what, *over in self._steps:
            if kind in COMPUTES:
                run.compute(self._executable(what, tuple(over)), self._program.groups[what], over)
            elif kind == "free":
                run.free(self._program.tensors[what])
            elif kind == "offload":
                run.offload(self._program.tensors[what])
            else:
                run.prefetch(self._program.tensors[what])
        self.held = run.most
        return [read(run.known, value) for value in self._program.step.outputs]

    def _executable(self, op: int, over: tuple[int, ...]) -> Any:
        if (op, over) not in self._of_op:
            group = self._program.groups[op]
            donated = tuple(group.reads.index(self._program.tensors[t]) for t in over)
            key = (structure(group) or op, donated)
            if key not in self._executables:
                self._executables[key] = jax.jit(function_of(group), donate_argnums=donated)
            self._of_op[op, over] = self._executables[key]
        return self._of_op[op, over]


class _Run:
    """The arrays of one call."""

    def __init__(self, program: Program, arguments: Sequence[Any]) -> None:
        step = program.step
        self.known: dict[Value, Any] = dict(zip(step.inputs, arguments, strict=True)) | step.constants
        self._program = program
        self._on_host: dict[Value, Any] = {}
        self._donated = {value for value, given_up in zip(step.inputs, step.donated, strict=True) if given_up}
        self._now = sum(nbytes(array, value) for value, array in self.known.items())
        self.most = self._now

    def compute(self, executable: Any, group: Group, over: Sequence[int]) -> None:
        overwritten = [self._program.tensors[t] for t in over]
        results = executable(*(self.known[value] for value in group.reads))
        for value in overwritten:
            self._now -= nbytes(self.known.pop(value), value)
        for value, array in zip(group.makes, results, strict=True):
            self.known[value] = array
            self._now += nbytes(array, value)
        self.most = max(self.most, self._now)

    def free(self, value: Value) -> None:
        array = self.known.pop(value)
        self._now -= nbytes(array, value)
        if value in self._donated and hasattr(array, "delete"):
            array.delete()

    def offload(self, value: Value) -> None:
        self._on_host[value] = jax.block_until_ready(jax.device_put(self.known[value], jax.memory.Space.Host))

    def prefetch(self, value: Value) -> None:
        self.known[value] = jax.device_put(self._on_host[value], jax.memory.Space.Device)
        self._now += nbytes(self.known[value], value)
        self.most = max(self.most, self._now)
