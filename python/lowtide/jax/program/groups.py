"""Equations -> groups, of which each is one op of the graph.

XLA fuses cheap equations into those that read them, and then their results take no memory.  So a group is one equation, its
root, with the cheap ones that are folded into it; an equation may be folded into several groups.  A plan computes groups, each
once or several times; XLA decides about what is inside.

Loses: where XLA fuses otherwise.  The graph's peak is therefore only an estimate of XLA's total (emission/compiled.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

from ..tracing.equations import Equation, FlatStep, Value, evaluate

VIEWS = frozenset({"reshape", "squeeze", "expand_dims", "stop_gradient", "name", "copy", "copy_p"})
FREE = frozenset({"broadcast_in_dim", "iota"})
ELEMENTWISE = frozenset(
    "add sub mul div neg max min select_n convert_element_type exp exp2 log log1p expm1 tanh logistic rsqrt sqrt cbrt "
    "integer_pow pow square sign abs floor ceil round eq ne lt le gt ge and or not xor erf erfc erf_inv is_finite add_any "
    "clamp shift_left shift_right_logical shift_right_arithmetic bitcast_convert_type real imag rem nextafter sin cos tan "
    "atan2 sinh cosh asinh acosh atanh asin acos".split())
_MOVES = frozenset("transpose pad slice rev concatenate".split())  # which XLA fuses like elementwise equations
CHEAP = ELEMENTWISE | _MOVES | FREE | VIEWS


@dataclass(eq=False)
class Group:
    """equations: in order, the root last.  reads: values of other groups, inputs and constants.  makes: results of the root."""

    equations: list[Equation]
    reads: list[Value]

    @property
    def root(self) -> Equation:
        return self.equations[-1]

    @property
    def makes(self) -> list[Value]:
        return self.root.outputs

    @property
    def effects(self) -> bool:
        return any(equation.effects for equation in self.equations)

    @property
    def elementwise(self) -> bool:
        """Can the root's result be written over an operand of its size?"""
        return all(equation.name in ELEMENTWISE | VIEWS for equation in self.equations)


def groups_of(step: FlatStep) -> list[Group]:
    """The groups of a step in its order."""
    folded = _folded(step)
    return [_group(equation, folded) for equation in step.equations if equation.outputs[:1] == [] or equation.outputs[0] not in folded]


def _folded(step: FlatStep) -> dict[Value, Equation]:
    """The values that are made inside of each group that reads them, with their equations."""
    readers: dict[Value, list[Equation]] = defaultdict(list)
    for equation in step.equations:
        for value in set(equation.inputs):
            readers[value].append(equation)
    folded: dict[Value, Equation] = {}
    outputs = set(step.outputs)
    for equation in step.equations:
        if len(equation.outputs) != 1 or equation.effects or equation.outputs[0] in outputs or equation.name not in CHEAP:
            continue
        made = equation.outputs[0]
        if _folds(equation, made, readers[made]):
            folded[made] = equation
    return folded


def _folds(equation: Equation, made: Value, readers: list[Equation]) -> bool:
    if equation.name in VIEWS and equation.inputs[0].bytes == made.bytes:
        return True
    if equation.name in FREE and all(value.bytes < made.bytes or value.known for value in equation.inputs):
        return True
    return len(readers) == 1 and _fuses(readers[0])


def _fuses(reader: Equation) -> bool:
    """Does XLA compute this equation's operands inside of it?"""
    return reader.name in CHEAP or reader.name.startswith(("reduce_", "argm"))


def _group(root: Equation, folded: dict[Value, Equation]) -> Group:
    reads: dict[Value, None] = {}
    inside: dict[Equation, None] = {}
    pending: list[tuple[Equation, bool]] = [(root, False)]
    while pending:
        equation, ready = pending.pop()
        if ready:
            inside[equation] = None
        elif equation not in inside:
            pending.append((equation, True))
            for value in reversed(equation.inputs):
                if value in folded:
                    pending.append((folded[value], False))
                elif not value.known:
                    reads[value] = None
    return Group(list(inside), list(reads))


def function_of(group: Group) -> Callable[..., list[Any]]:
    """A group as a function of what it reads."""
    def run(*arrays: Any) -> list[Any]:
        known = dict(zip(group.reads, arrays, strict=True))
        evaluate(group.equations, known)
        return [known[value] for value in group.makes]

    return run


def structure(group: Group) -> Hashable | None:
    """Equal for groups that compute the same of operands of the same shapes; None where that cannot be told."""
    number = {value: i for i, value in enumerate(group.reads)}
    found: list[Hashable] = [tuple(str(v.aval) for v in group.reads)]
    for equation in group.equations:
        found.append(_application(equation, number))
        for value in equation.outputs:
            number[value] = len(number)
    try:
        hash(tuple(found))
    except TypeError:
        return None
    return None if group.effects else tuple(found)


def _application(equation: Equation, number: dict[Value, int]) -> Hashable:
    operands = tuple((value.literal_key if value.known else number[value]) for value in equation.inputs)
    return (equation.primitive, tuple(sorted(equation.params.items(), key=lambda item: item[0])), operands,
            equation.context, tuple(str(v.aval) for v in equation.outputs))
