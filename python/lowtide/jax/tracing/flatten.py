"""A closed jaxpr -> FlatStep: calls replaced by what they call, equal equations computed once, and none that nothing needs.

A `jax.checkpoint` of the caller appears in the jaxpr as equations that repeat earlier ones.  They become the earlier ones
here: the mark is leave to compute a value again, and the plan decides whether to.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from typing import Any

from ..compat import Literal, context_of, get_aval, scope_of, sub_jaxpr
from .equations import Equation, FlatStep, Value


def flatten(closed: Any, donated: Sequence[bool] = (), names: Sequence[str] = ()) -> FlatStep:
    """The flat equations of a closed jaxpr.  donated, names: of its inputs."""
    inputs = [Value(v.aval) for v in closed.jaxpr.invars]
    constants = {Value(get_aval(c)): c for c in closed.consts}
    building = Flattening()
    outputs = building.inline(closed.jaxpr, list(constants), inputs, "")
    constants |= building.constants
    names = list(names) or [f"argument {i}" for i in range(len(inputs))]
    step = FlatStep(building.equations, inputs, outputs, constants, list(donated) or [False] * len(inputs), names)
    return without_unused(step)


def without_unused(step: FlatStep) -> FlatStep:
    """The step without equations whose results nothing needs, and which have no effects."""
    needed, kept = set(step.outputs), []
    for equation in reversed(step.equations):
        if equation.effects or not needed.isdisjoint(equation.outputs):
            kept.append(equation)
            needed.update(equation.inputs)
    constants = {value: array for value, array in step.constants.items() if value in needed}
    return FlatStep(kept[::-1], step.inputs, step.outputs, constants, step.donated, step.names)


class Flattening:
    """The equations so far, and the known results of each."""

    def __init__(self) -> None:
        self.equations: list[Equation] = []
        self.constants: dict[Value, Any] = {}
        self._known: dict[Hashable, list[Value]] = {}
        self._number: dict[Value, int] = {}
        self._next = itertools.count()

    def inline(self, jaxpr: Any, constants: Sequence[Value], arguments: Sequence[Value], scope: str) -> list[Value]:
        """Append the equations of a jaxpr of these arguments; returns its results."""
        env = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*constants, *arguments], strict=True))

        def value_of(atom: Any) -> Value:
            return Value(atom.aval, atom.val, True) if isinstance(atom, Literal) else env[atom]

        for equation in jaxpr.eqns:
            given = [value_of(atom) for atom in equation.invars]
            inside = "/".join(filter(None, [scope, scope_of(equation)]))
            called = sub_jaxpr(equation)
            if called is not None:
                captured = [self.constant(c) for c in called[1]]
                results = self.inline(called[0], captured, given, inside)
            else:
                results = self._append(equation, given, inside)
            env.update(zip(equation.outvars, results, strict=True))
        return [value_of(atom) for atom in jaxpr.outvars]

    def constant(self, array: Any) -> Value:
        for value, known in self.constants.items():
            if known is array:
                return value
        made = Value(get_aval(array))
        self.constants[made] = array
        return made

    def _append(self, equation: Any, given: list[Value], scope: str) -> list[Value]:
        key = None if equation.effects else self._key(equation, given)
        if key is not None and key in self._known:
            return self._known[key]
        results = [Value(v.aval) for v in equation.outvars]
        self.equations.append(Equation(equation.primitive, dict(equation.params), given, results, scope,
                                       bool(equation.effects), context_of(equation)))
        if key is not None:
            self._known[key] = results
        return results

    def _key(self, equation: Any, given: list[Value]) -> Hashable | None:
        """Equal for equations with equal results; None where that cannot be told."""
        operands = tuple(self._operand(value) for value in given)
        try:
            key = (equation.primitive, tuple(sorted(equation.params.items(), key=lambda item: item[0])), operands,
                   tuple(str(v.aval) for v in equation.outvars), context_of(equation))
            hash(key)
        except TypeError:
            return None
        return key

    def _operand(self, value: Value) -> Hashable:
        if value.known:
            return value.literal_key
        if value not in self._number:
            self._number[value] = next(self._next)
        return self._number[value]
