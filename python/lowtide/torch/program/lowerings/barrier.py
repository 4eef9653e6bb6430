"""The barrier between forward and backward, where the user has control.

It reads the forward's outputs and produces the tangents.  It `mutates` the inputs that the runtime overwrites at the end of the
forward (buffers, running statistics), so no plan reads them afterwards.  It follows the forward's draws, since the user may
read the generator there.  The code is divided at the barrier; the barrier itself has no code.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ...tensors.operators import leaves, values
from ..builder import ProgramBuilder
from ..emitter import Code, Emitter, Run


class _BarrierEmitter(Emitter):
    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        raise AssertionError("the code is cut at the barrier")


def lower_barrier(builder: ProgramBuilder, inputs: list[fx.Node], outputs: list[Any], descriptors: list[Any],
                  tangents: list[fx.Node]) -> None:
    """Append the barrier.

    inputs: those of the joint graph.  outputs, descriptors: the forward's.  tangents: inputs that the user makes.
    """
    mutated = [desc.mutated_input for desc in descriptors if hasattr(desc, "mutated_input")]
    changed = [n for n in inputs if n.meta.get("desc") in mutated]
    overwritten = builder.known(leaves([n.meta["val"] for n in changed]))
    results = leaves(values([n for n in outputs if isinstance(n, torch.fx.Node)]))
    gone = {t for op in builder.graph.ops for t in op.mutates}  # an input with a new value is handed out as it is
    handed_out = [t for t in builder.known(results) if t not in gone]
    made = [builder.tensor(t, n.name) for n in tangents for t in leaves(n.meta["val"])]
    barrier = builder.graph.cross(list(dict.fromkeys([*handed_out, *overwritten])), list(dict.fromkeys(made)))
    barrier.mutates = overwritten
    barrier.runs = Run(_BarrierEmitter())


def read_by_backward(builder: ProgramBuilder) -> set[int]:
    """The tensors that the backward, of which all is lowered, reads as it was traced: as eager execution does."""
    ops = builder.graph.ops
    return {t for op in ops[ops.index(builder.graph.crossed) + 1:] for t in op.inputs}


def keep_from_backward(builder: ProgramBuilder, changing: list[fx.Node]) -> list[int]:
    """Have the barrier overwrite these inputs and results, where the backward does not read them: code that runs between may
    write to whatever eager execution has not saved.  The tensors that it overwrites for this alone."""
    barrier = builder.graph.crossed
    read = read_by_backward(builder)
    written = {t for op in builder.graph.ops for t in op.mutates}  # by the step itself, which no plan reads afterwards
    gone = [t for t in builder.known(leaves(values(changing))) if t not in read and t not in written]
    barrier.inputs += [t for t in gone if t not in barrier.inputs]
    barrier.mutates = [*barrier.mutates, *gone]
    return gone
