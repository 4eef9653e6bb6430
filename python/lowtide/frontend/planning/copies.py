"""The steps of a plan with copies to the host, in the order of the generated code.

The code waits for a copy to the host where the plan frees the tensor, and for all copies between forward and backward, like
the barrier.  If nothing is waited for, a tensor is freed right after its last use, as without copies.
"""

from __future__ import annotations

from typing import Any

from ..program import Program

Step = tuple[Any, ...]  # its kind, an op or a tensor, and the tensors over which an op writes

COMPUTES = ("compute", "compute_in_place")
COPIES = ("offload", "prefetch")


def with_copies(program: Program, steps: list[Step], computes: list[int], elided: set[int]) -> list[Step]:
    """The steps with computations in the order of `computes`, without copies that code cannot make or that are not needed, and with
    frees at the places of the code.  elided: ops without code.
    """
    fixed = {t for op in elided for t in program.graph.op(op).outputs}
    steps = _without_copies_of(steps, {t for kind, t, *_ in steps if kind in COPIES} - program.movable() | fixed)
    return _freed_early(program, _without_idle_copies(_in_order(program, steps, computes), set(program.homes())))


def _without_copies_of(steps: list[Step], fixed: set[int]) -> list[Step]:
    """The steps without the copies of some tensors, which stay on the device meanwhile."""
    stays: set[int] = set()
    left: list[Step] = []
    for step in reversed(steps):
        kind, tensor = step[:2]
        if kind in COMPUTES or tensor not in fixed:
            left.append(step)
        elif kind == "prefetch":
            stays.add(tensor)
        elif kind == "free":
            left += [] if tensor in stays else [step]
            stays.discard(tensor)
    return left[::-1]


def _in_order(program: Program, steps: list[Step], computes: list[int]) -> list[Step]:
    """The steps with each op that the next one makes right before that one, as in `computes`; what a plan does meanwhile with the
    tensors that the two read and make comes behind them."""
    early = {op for op in computes if program.is_made_by_next(op)}
    order = iter(computes)
    waiting: set[int] = set()  # ops that the plan has made and code has not
    held: list[Step] = []
    ordered: list[Step] = []
    for step in steps:
        kind, what = step[:2]
        if kind not in COMPUTES:
            (held if what in _touched(program, waiting) else ordered).append(step)
        elif what in early:
            waiting.add(what)
        else:
            while (op := next(order)) in early:
                ordered.append(("compute", op))
                waiting.remove(op)
            assert op == what, "lowerings move nothing but what the next op makes"
            left = _touched(program, waiting)
            ordered += [step, *(late for late in held if late[1] not in left)]
            held = [late for late in held if late[1] in left]
    return ordered


def _touched(program: Program, ops: set[int]) -> set[int]:
    """The tensors that these read or make."""
    entries = [program.graph.op(op) for op in ops]
    return {tensor for entry in entries for tensor in (*entry.inputs, *entry.outputs)}


def _without_idle_copies(steps: list[Step], homes: set[int]) -> list[Step]:
    """The steps without copies out of which nothing is copied back, but for the last ones home."""
    wanted = set(homes)
    left: list[Step] = []
    for step in reversed(steps):
        kind, tensor = step[:2]
        if kind == "prefetch":
            wanted.add(tensor)
        if kind != "offload" or tensor in wanted:
            left.append(step)
        if kind == "offload":
            wanted.discard(tensor)
    return left[::-1]


def _freed_early(program: Program, steps: list[Step]) -> list[Step]:
    """The steps with each free right after the last use; of a tensor whose copy out is under way where it stands, and
    before the barrier at the latest, unless something behind that needs the tensor."""
    barrier = len(steps) if program.barrier is None else steps.index(("compute", program.barrier))
    used: dict[int, int] = {}  # tensor -> the step that makes it or reads it
    leaving: dict[int, int] = {}  # tensor -> the step at which the copy began
    behind: dict[int, list[Step]] = {}
    for at, step in enumerate(steps):
        kind, what = step[:2]
        place = at
        if kind in COMPUTES:
            op = program.graph.op(what)
            used |= dict.fromkeys((*op.inputs, *op.outputs), at)
            for tensor in step[2:]:
                leaving.pop(tensor, None)
        elif kind == "prefetch":
            used[what] = at
        elif kind == "offload":
            leaving[what] = at
        else:
            begun = leaving.pop(what, None)
            if begun is None:
                place = used[what]
            elif begun < barrier < at:
                place = max(used[what], barrier - 1)
        behind.setdefault(place, []).append(step)
    return [step for at in range(len(steps)) for step in behind.get(at, ())]
