"""A traced step as a flat list of equations, and how one of them is bound again.

A `Value` is one variable or literal of the jaxpr, an `Equation` one application of a primitive.  Both are compared by
identity.  Calls (jit, custom derivatives, checkpoints) are replaced by what they call, so that a plan can keep or recompute
each value by itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compat import BindContext, array_key, bind


@dataclass(eq=False)
class Value:
    """aval: shape and number type.  literal: the value of a literal; otherwise None.  known: does `literal` count?"""

    aval: Any
    literal: Any = None
    known: bool = False

    @property
    def literal_key(self) -> Hashable:
        """Equal for equal literals."""
        return "literal", array_key(self.literal), str(self.aval)

    @property
    def bytes(self) -> int:
        """0 for what is no array, such as a token."""
        shape, dtype = getattr(self.aval, "shape", None), getattr(self.aval, "dtype", None)
        return 0 if shape is None or dtype is None else math.prod(shape) * dtype.itemsize

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(getattr(self.aval, "shape", ()))

    @property
    def dtype(self) -> str:
        return str(getattr(self.aval, "dtype", ""))


@dataclass(eq=False)
class Equation:
    """scope: the name stack, for people.  effects: does it do more than compute its outputs?"""

    primitive: Any
    params: dict[str, Any]
    inputs: list[Value]
    outputs: list[Value]
    scope: str = ""
    effects: bool = False
    context: BindContext | None = None

    @property
    def name(self) -> str:
        return str(self.primitive.name)

    def bound(self, arguments: Sequence[Any]) -> list[Any]:
        """The results of binding the primitive to these arguments."""
        return bind(self.primitive, self.params, arguments, self.context)

    def with_ends(self, inputs: list[Value], outputs: list[Value]) -> Equation:
        """The same application between other values."""
        return Equation(self.primitive, self.params, inputs, outputs, self.scope, self.effects, self.context)


@dataclass(eq=False)
class FlatStep:
    """A step: equations in order.  constants: the arrays that the step has captured, by value.  donated: for each input,
    whether the caller gives it up.  names: of the inputs, for people."""

    equations: list[Equation]
    inputs: list[Value]
    outputs: list[Value]
    constants: dict[Value, Any] = field(default_factory=dict)
    donated: list[bool] = field(default_factory=list)
    names: list[str] = field(default_factory=list)


def evaluate(equations: Iterable[Equation], known: dict[Value, Any]) -> None:
    """Bind the equations one after another; `known` gives the arguments and takes the results."""
    for equation in equations:
        results = equation.bound([read(known, value) for value in equation.inputs])
        known.update(zip(equation.outputs, results, strict=True))


def read(known: dict[Value, Any], value: Value) -> Any:
    """A value's array: of a literal, or as it was computed."""
    return value.literal if value.known else known[value]
