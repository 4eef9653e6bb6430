"""The memory that other graphs need beside a plan, as a graph and limits for the planner."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import lowtide

from ..program import Program
from .taken import AllocatorState

_SMALL = 512  # bytes; a block of a GPU's allocator


@dataclass(frozen=True)
class Constraints:
    """The memory of others beside a running graph, and the limit on what the graph may save for its backward, in bytes.

    resident: held by others all the time.  saved_earlier: the part of `resident` that earlier forwards have saved.
    gradients: held by others from the end of the graph's forward on.
    save_limit: the most bytes live between its forward and backward, without its inputs but with its outputs; None: no limit.
    allocator_state: what the device's allocator holds, where a budget limits reserved bytes; None if it is not known.
    """

    resident: int = 0
    gradients: int = 0
    save_limit: int | None = None
    saved_earlier: int = 0
    allocator_state: AllocatorState | None = field(default=None, compare=False)

    @property
    def alone(self) -> bool:
        """Is nothing to be saved for later than the graph's own backward limited or counted?"""
        return not self.gradients and self.save_limit is None

    def for_copies(self, program: Program) -> Constraints:
        """The same for plans that may copy to the host, to which no file can say that the loss and its tangent and the
        like, a few bytes, stay where they are: these are taken to stand there all the time."""
        return replace(self, resident=self.resident + small_fixed_bytes(program))

    def graph(self, program: Program) -> lowtide.Graph:
        """The program's graph, with the memory of others."""
        graph, barrier = program.graph, program.barrier
        if not self.gradients:
            return graph if graph.resident_bytes == self.resident else graph.edited(resident_bytes=self.resident)
        assert barrier is not None, "gradients come after a forward"
        beside = {"name": "gradients of other graphs", "bytes": self.gradients, "role": "gradient"}
        return graph.edited(resident_bytes=self.resident, more_tensors=[beside],
                            ops={barrier: {"outputs": [*graph.op(barrier).outputs, graph.num_tensors]}},
                            outputs=[*graph.outputs, graph.num_tensors])

    def live_limits(self, program: Program) -> dict[int, int | str]:
        """The limit on bytes live at the barrier of that graph, in the form of a Problem: saved tensors and the memory beside them."""
        if self.save_limit is None:
            return {}
        assert program.barrier is not None, "what is saved is live at a barrier"
        barrier = program.graph.op(program.barrier)
        made = self.gradients + sum(program.graph.tensor(t).bytes for t in barrier.outputs)
        return {program.barrier: self.resident + input_bytes(program) + made + barrier.workspace + self.save_limit}


def small_fixed_bytes(program: Program) -> int:
    """Bytes of what is small and stays where it is, such as what goes through the caller's hands between forward and
    backward."""
    movable = program.movable()
    return sum(t.bytes for t in program.graph.tensors if t.bytes <= _SMALL and t.producer is not None and t.index not in movable)


def input_bytes(program: Program) -> int:
    """Bytes on the device before the graph runs: its inputs, and the state of its updates."""
    away = program.homes()
    return sum(t.bytes for t in program.graph.tensors if t.producer is None and t.index not in away)


def given_bytes(program: Program) -> int:
    """Bytes of the graph's inputs."""
    state = {operand["tensor"] for op in program.graph.ops if op.kind == "lowtide.update"
             for operand in op.operands if operand["argument"] not in ("grad", "param")} - program.homes().keys()
    return input_bytes(program) - sum(program.graph.tensor(t).bytes for t in state)
