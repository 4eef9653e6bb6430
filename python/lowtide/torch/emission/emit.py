"""A schedule -> the FX graphs of forward and backward that execute its steps in its order.

The step is divided at the barrier; half_graph.py makes the nodes of each half.  Effects are not repeated: the file of each
kind of op in `lowerings` defines its recomputation.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Iterable, Iterator

from torch import fx

from ...frontend.planning.schedule import Computation, Transfers
from ..compat.aot import SavedForBackwardsAOTOutput, graph_module
from ..optimizer.graph_updates import begin_backward, fake_token, open_forward
from ..program.lowerings import elided_ops
from ..program.program import Program, owned
from ..tensors.operators import is_tangent, leaves
from ..tensors.storages import storage
from ..tracing.origins import unexpected
from ..transforms.hoist import scale_gradients
from .half_graph import HalfGraphBuilder
from .points import Points
from .repeated import share_code
from .write_back import writes_back


def emit(program: Program, computes: list[Computation], transfers: Transfers | None = None, points: Points | None = None,
         together: Iterable[tuple[int, ...]] = ()) -> tuple[fx.GraphModule, fx.GraphModule]:
    """Forward and backward modules that make these computations of program.graph's ops, in their order, and these copies
    between them.  points: to note where allocations may be arranged.  together: updates in one call, which follow one another.

    Raises CaptureError, and nothing else, for what cannot be put into code, with the node named.
    """
    with _named() as halves:
        ops, transfers = [op for op, _ in computes], transfers or {}
        cut = ops.index(program.barrier)
        inputs = program.joint.graph.find_nodes(op="placeholder")
        elided = elided_ops(program, ops)
        done: set[int] = set()
        groups = {op: group if op == group[-1] else () for group in together for op in group}
        halves.append(forward := HalfGraphBuilder(program, None, elided, done, points, groups))
        for node in inputs:
            if not is_tangent(node):
                forward.placeholder(node)
        forward.run(computes[:cut], transfers)
        forward.settle()
        halves.append(backward := HalfGraphBuilder(program, forward, elided, done, points, groups))
        for node in inputs:
            if is_tangent(node):
                backward.placeholder(node)
        if program.assumed_tangent:  # ops that read the tangent read the assumed one
            (tangent,) = filter(is_tangent, inputs)
            arrived = backward.values.pop(tangent)
        if program.updates is not None and not program.in_one_call:
            token = forward.add(open_forward, (program.updates,), fake_token(inputs))
            backward.add(begin_backward, (program.updates, backward.take(token)), None)
        backward.run(computes[cut + 1:], transfers, cut + 1)
        backward.settle()
        if program.assumed_tangent:
            _scale(program, backward, tangent, arrived)
        given_back = [backward.get(n) if isinstance(n, fx.Node) else n for n in program.backward_outputs]
        handed_out = [forward.get(n) if isinstance(n, fx.Node) else n for n in program.forward_outputs]
        saved = [*backward.saved, *backward.numbers]
        handed_out = writes_back(forward, saved, program, handed_out)
        output = forward.graph.output(tuple([*handed_out, *saved]))
        output.meta["desc"] = program.forward_descriptors + [SavedForBackwardsAOTOutput(i) for i in range(len(saved))]
        output = backward.graph.output(tuple(given_back))
        output.meta["desc"] = list(program.backward_descriptors)
        return _module(program, forward), _module(program, backward)


def emit_forward(program: Program, computes: list[Computation], transfers: Transfers | None = None) -> fx.GraphModule:
    """The module of a program without a backward; what comes after the barrier nobody reads.  Raises as `emit`."""
    with _named() as halves:
        ops = [op for op, _ in computes]
        cut = ops.index(program.barrier)
        halves.append(half := HalfGraphBuilder(program, None, elided_ops(program, ops), set()))
        for node in program.joint.graph.find_nodes(op="placeholder"):
            half.placeholder(node)
        half.run(computes[:cut], transfers or {})
        half.settle()
        handed_out = [half.get(n) if isinstance(n, fx.Node) else n for n in program.forward_outputs]
        half.graph.output(tuple(writes_back(half, [], program, handed_out))).meta["desc"] = list(program.forward_descriptors)
        return _module(program, half)


def _scale(program: Program, backward: HalfGraphBuilder, tangent: fx.Node, arrived: fx.Node) -> None:
    """Scale the gradients that a hoisted backward returns from the assumed tangent to the actual one."""
    made = [(owner, owned(*owner)) for owner in program.owners.values()]
    owners = {storage(t): owner for owner, t in made if t is not None}
    seen = {storage(t) for n in program.forward_outputs if isinstance(n, fx.Node) for t in leaves(n.meta["val"])}
    gradients, mine = {}, []
    for node in program.backward_outputs:
        for t in leaves(node.meta["val"]) if isinstance(node, fx.Node) else ():
            key, maker = owners[storage(t)]
            if maker.op != "placeholder" and key not in gradients:
                gradients[key] = maker
                mine.append(storage(t) not in seen and maker.op != "get_attr")
    if gradients and program.assumed_tangent is not None:
        scale_gradients(backward, program.assumed_tangent, tangent, arrived, list(gradients.items()), mine)


@contextlib.contextmanager
def _named() -> Iterator[list[HalfGraphBuilder]]:
    """An exception within becomes a CaptureError that names the current node of the last of these halves."""
    halves: list[HalfGraphBuilder] = []
    try:
        yield halves
    except Exception as error:
        raise unexpected(error, halves[-1].at if halves else None) from error


def _module(program: Program, half: HalfGraphBuilder) -> fx.GraphModule:
    for node in reversed(list(half.graph.nodes)):
        if node.target is operator.getitem and not node.users:
            half.graph.erase_node(node)
    share_code(program.joint, half.graph)
    half.graph.lint()
    return graph_module(program.joint, half.graph)
