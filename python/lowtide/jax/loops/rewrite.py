"""A step with a loop and its backward replaced by loops that stack what a schedule of their round saves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax

from ...frontend.planning.schedule import Schedule
from ..compat import shape_of
from ..program.program import Program
from ..tracing.equations import Equation, FlatStep, Value, evaluate, read
from ..tracing.flatten import without_unused
from .body import saved_by
from .pair import LoopPair


def rewritten(step: FlatStep, pair: LoopPair, program: Program, schedule: Schedule) -> FlatStep:
    """The step with other loops in the place of those of the pair.  program, schedule: of a round."""
    assert program.barrier is not None, "a round has one"
    at = schedule.ops.index(program.barrier)
    saved = saved_by(program, schedule)
    carried = pair.forward.params["num_carry"]
    # The forward: its carry and results as before, then the saved values.
    new_stacks = [Value(_stacked(v.aval, pair.rounds)) for v in saved]
    forward = _scan(pair.forward, _body(program, schedule.ops[:at], pair.results + saved), _with_captured(pair.constants, pair), pair.carry,
                    pair.slices, [*pair.kept_results, *new_stacks], carried)
    # Its backward: what it read before, without what was stacked, and the saved values.
    constants = _with_captured(pair.constants | pair.given_constants, pair)
    slices = pair.slices | pair.given_slices | dict(zip(new_stacks, saved, strict=True))
    backward = _scan(pair.backward, _body(program, schedule.ops[at + 1:], pair.made), constants, pair.tangents, slices,
                     pair.backward.outputs, pair.backward.params["num_carry"])
    new = {pair.forward: forward, pair.backward: backward}
    equations = [new.get(equation, equation) for equation in step.equations]
    captured = {value: array for value, array in pair.captured.items()}
    return without_unused(replace(step, equations=equations, constants=step.constants | captured))


def _with_captured(constants: dict[Value, Value], pair: LoopPair) -> dict[Value, Value]:
    return constants | {value: value for value in pair.captured}


def _body(program: Program, ops: Sequence[int], results: Sequence[Value]) -> Callable[[dict[Value, Any]], list[Any]]:
    def run(known: dict[Value, Any]) -> list[Any]:
        for op in ops:
            group = program.groups[op]
            if group.root.name != "lowtide.carry":
                inner = {v: known[v] for v in group.reads}
                evaluate(group.equations, inner)
                known.update((v, inner[v]) for v in group.makes)
        return [read(known, v) for v in results]

    return run


def _scan(old: Equation, body: Callable[[dict[Value, Any]], list[Any]], constants: dict[Value, Value], carry: Sequence[Value],
          slices: dict[Value, Value], outputs: Sequence[Value], carried: int) -> Equation:
    """A scan like the old one with another body.  constants, slices: values of the step, and of a round."""
    inside = [*constants.values(), *carry, *slices.values()]

    def flat(*arrays: Any) -> list[Any]:
        return body(dict(zip(inside, arrays, strict=True)))

    jaxpr = jax.make_jaxpr(flat)(*(shape_of(v.aval) for v in inside))
    first = old.params["num_consts"]
    inputs = [*constants, *old.inputs[first:first + carried], *slices]
    params = old.params | {"jaxpr": jaxpr, "num_consts": len(constants), "num_carry": carried}
    if "linear" in params:
        params["linear"] = (False,) * len(inputs)
    made = Equation(old.primitive, params, inputs, list(outputs), old.scope, old.effects, old.context)
    return made


def _stacked(aval: Any, rounds: int) -> Any:
    return aval.update(shape=(rounds, *aval.shape))
