"""Random draws that can be made again: the generator's state before a draw, and the draw from that state.

A draw whose results are much larger than the generator's state gets a STATE op before it: the state is a tensor that
a plan may keep instead of the results, and draw the same numbers again.  Where a schedule draws once, nobody reads
the state, and STATE has no code.  Draws follow one another by `after`, as effects do.

A replay leaves the generator as it found it, so the numbers that the step draws afterwards are those of a
run without a plan.  Works in eager execution only: the state is read and set on the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import fx

import lowtide

from ....frontend.draft import Op
from ...compat.dispatch import OpOverload
from ...tensors.operators import arguments_of, device_of, fake_mode_of, is_effect, leaves
from ..builder import ProgramBuilder
from ..emitter import Code, Emitter, Run
from ..program import Program
from .call import CallEmitter, call_op
from .interface import Lowering

aten = torch.ops.aten
# Draws that look at nothing of their operand but its shape, strides and type: what they do to an empty tensor that is like
# it, a method and its arguments (names are those of the draw's own)
INTO: dict[Any, tuple[str, tuple[Any, ...]]] = {
    aten.rand_like.default: ("uniform_", ()),
    aten.randn_like.default: ("normal_", ()),
    aten.randint_like.default: ("random_", (0, "high")),
    aten.randint_like.low_dtype: ("random_", ("low", "high")),
    aten.bernoulli.p: ("bernoulli_", ("p",)),
    aten.exponential.default: ("exponential_", ("lambd",)),
    aten.uniform.default: ("uniform_", ("from", "to")),
    aten.normal_functional.default: ("normal_", ("mean", "std")),
}
_WORTH_A_STATE = 4  # times the state's bytes that a draw's results must have

# bytes of one generator's state as a tensor (on the host for both)
STATE_BYTES = {"cpu": torch.get_rng_state().numel(), "cuda": 16}


def may_replay(node: fx.Node) -> bool:
    """Does this node draw from a default generator whose state can be read and set?

    Where operators of other libraries draw from nobody knows, and cuDNN's recurrent layers keep a state of their own.
    """
    devices = {t.device.type for t in leaves(node.meta.get("val"))}
    return (len(devices) == 1 and devices <= STATE_BYTES.keys() and isinstance(node.target, OpOverload)
            and node.target.namespace in ("aten", "prims") and "rnn" not in node.target.name()
            and torch.Tag.nondeterministic_seeded in node.target.tags
            and node.kwargs.get("generator") is None)


def read_state(device: torch.device) -> torch.Tensor:
    """The state of the device's default generator, a uint8 tensor on the host."""
    return torch.get_rng_state() if device.type == "cpu" else torch.cuda.get_rng_state(device)


def replay(state: torch.Tensor, device: torch.device, function: Any, /, *args: Any, **kwargs: Any) -> Any:
    """function(*args, **kwargs) with the generator at `state`; the generator is put back afterwards."""
    now = read_state(device)
    _write_state(state, device)
    try:
        return function(*args, **kwargs)
    finally:
        _write_state(now, device)


def _write_state(state: torch.Tensor, device: torch.device) -> None:
    if device.type == "cpu":
        torch.set_rng_state(state)
    else:
        torch.cuda.set_rng_state(state, device)


class _StateEmitter(Emitter):
    """The state is read, and its value known by the op."""

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        with fake_mode_of(leaves(node.meta["val"])[0]):
            fake = torch.empty(STATE_BYTES[device_of(node).type], dtype=torch.uint8, device="cpu")
        code.values["state", op] = code.call(read_state, (device_of(node),), node, fake)
        return False


class DrawEmitter(CallEmitter):
    """The first time the call itself, then a replay from the state, where there is one."""

    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        return {}

    def part_of(self, node: fx.Node) -> None:
        return None

    def before_parts(self, node: fx.Node) -> Emitter | None:
        return _ALONE if node.target in INTO else None

    def call(self, code: Code, op: int, again: bool) -> fx.Node:
        node, state = code.runs[op].own_node, code.runs[op].state
        if not again or state is None:
            return super().call(code, op, again)
        args, kwargs = code.arguments(node)
        return self.replayed(code, op, node.target, args, kwargs, node.meta["val"])

    def replayed(self, code: Code, op: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], like: Any) -> fx.Node:
        """function(*args, **kwargs) from the state before the op."""
        node, state = code.runs[op].own_node, code.runs[op].state
        value = code.value(("state", state), code.runs[state].own_node)
        return code.call(replay, (value, device_of(node), function, *args), node, like, kwargs)


class AloneEmitter(DrawEmitter):
    """The draw without its operand."""

    def result(self, node: fx.Node) -> torch.Tensor:
        """The result of the draw, as a fake tensor."""
        return node.meta["val"]

    def into(self, node: fx.Node) -> tuple[str, tuple[Any, ...]]:
        """The method that fills an empty tensor, and its arguments."""
        method, names = INTO[node.target]
        given = arguments_of(node)
        return method, tuple(given[name] if isinstance(name, str) else name for name in names)

    def call(self, code: Code, op: int, again: bool) -> fx.Node:
        node, state = code.runs[op].own_node, code.runs[op].state
        fake = self.result(node)
        args = (tuple(fake.shape), tuple(fake.stride()), fake.dtype, fake.device, *self.into(node))
        if again and state is not None:
            return self.replayed(code, op, draw_into, args, {}, fake)
        return code.call(draw_into, args, node, fake)


def draw_into(shape: tuple[int, ...], strides: tuple[int, ...], dtype: torch.dtype, device: torch.device, method: str,
              arguments: tuple[Any, ...]) -> torch.Tensor:
    """A new tensor, filled in the order in which it lies."""
    return getattr(torch.empty_strided(shape, strides, dtype=dtype, device=device), method)(*arguments)


_STATE, DRAW, _ALONE = _StateEmitter(), DrawEmitter(), AloneEmitter()


class RandomDraw(Lowering):
    """A node that draws from a generator whose state can be read and set."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return may_replay(node) and is_effect(node, arguments)

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        append_draw(builder, call_op(builder, node, arguments, DRAW))

    def elided(self, program: Program, computes: list[int]) -> set[int]:
        """STATE ops whose draw is never made again: there is no need to read the state."""
        seen: set[int] = set()
        states = {i for i, run in enumerate(program.runs) if run.emitter is _STATE}
        for op in computes:
            if op in seen:
                states.discard(program.runs[op].state)
            seen.add(op)
        return states

    def as_run(self, program: Program, graph: lowtide.Graph, computes: list[int]) -> lowtide.Graph:
        """The graph in which elided states take no bytes."""
        elided = self.elided(program, computes)
        if not elided:
            return graph
        draws = {run.state: op for op, run in enumerate(program.runs) if run.state is not None}
        states = {op: graph.op(op).outputs[0] for op in elided}
        workspaces = {draws[op]: {"workspace": graph.op(draws[op]).workspace - graph.tensor(state).bytes}
                      for op, state in states.items()}
        return graph.edited(tensors={state: {"bytes": 0} for state in states.values()}, ops=workspaces)


def append_draw(builder: ProgramBuilder, op: Op) -> None:
    """Append an op that draws; where it is worth it, with the generator's state before it."""
    node = op.runs.node
    size = sum(builder.graph.tensors[t]["bytes"] for t in op.outputs)
    if not builder.replays or not builder.draws_again or not may_replay(node):
        builder.graph.op(op, effect=True)
        return
    state_bytes = builder.state_bytes or STATE_BYTES[device_of(node).type]
    if size < _WORTH_A_STATE * state_bytes:
        builder.graph.op(op, effect=True)
        return
    tensor = builder.graph.tensor(f"{op.name}.state", state_bytes, None, [state_bytes], "u8")
    source = {key: value for key, value in op.attributes.items() if key == "source"}
    state = Op(f"{op.name}.state", "lowtide.random_state", [], [tensor], 0, op.phase, op.origin,
               attributes=source, runs=Run(_STATE, node))
    builder.graph.op(state, effect=True)
    op.inputs.append(tensor)
    op.workspace += state_bytes  # the generator's own state meanwhile
    op.runs = replace(op.runs, state=state)
    builder.graph.op(op, effect=True)
    op.recomputable = True
