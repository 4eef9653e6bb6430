"""A flat step as the planner sees it: its graph, and what code can be made of a plan.

XLA's code runs whole steps, so there is no barrier between forward and backward: the two are ops of one graph.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

import lowtide

from ...frontend.draft import GraphBuilder, Op
from ...frontend.exactness import Exactness
from ...frontend.price import Price
from ..compat import closed, inner_jaxprs, is_array
from ..tracing.equations import Equation, FlatStep, Value
from ..tracing.flatten import flatten
from .groups import Group, groups_of
from .kinds import call_of, described
from .number_types import NUMBER_TYPES
from .price import moved_bytes, operations

_WITH_BODIES = ("scan", "while", "cond")


@dataclass
class Program:
    """A step, and its graph: the op of an index computes the group of that index.  tensors: values by tensor."""

    graph: lowtide.Graph
    step: FlatStep
    groups: list[Group]
    tensors: list[Value]
    device: Any = None
    barrier: int | None = None
    kept: tuple[int, ...] = ()

    def without_kept(self) -> Program:
        return self

    def homes(self) -> Mapping[int, Any]:
        return {}

    def movable(self) -> Set[int]:
        """Arrays; keys of random numbers and tokens stay."""
        return {i for i, value in enumerate(self.tensors) if is_array(value.aval)}

    def order(self, computes: list[int]) -> list[int]:
        return computes

    def elided(self, computes: list[int]) -> set[int]:
        return set()

    def as_run(self, computes: list[int]) -> lowtide.Graph:
        return self.graph

    def is_made_by_next(self, op: int) -> bool:
        return False

    def splittable(self) -> Program:
        return self

    def transformed(self, transforms: list[dict[str, Any]]) -> Program:
        assert not transforms, "no option of this front end allows any"
        return self

    def exactness(self, transforms: list[dict[str, Any]]) -> Exactness:
        return Exactness()


def program_of(step: FlatStep, price: Price, name: str, in_place: bool = True, held: bool = False,
               outputs_from_start: bool = False) -> Program:
    """The program of a flat step.

    in_place: may results be written over operands?  held: count only arrays between ops, not what an op takes while it runs.
    outputs_from_start: count the outputs' bytes from the start on, as XLA allocates them.
    """
    draft = _Draft(step, price, in_place, held=held)
    for group in draft.groups:
        draft.compute(group)
    if outputs_from_start:
        draft.hold_outputs()
    return draft.finished(name)


def program_of_round(step: FlatStep, price: Price, forward: Set[Equation], carry: list[Value], tangents: list[Value],
                     results: list[Value]) -> Program:
    """The program of one round of a loop and of its backward, with a barrier between them.

    forward: the equations before it.  carry: values that begin the round, and that may be saved as others are.  tangents: values
    that begin its backward.  results: what the forward hands out.
    """
    draft = _Draft(step, price, True, made=[*carry, *tangents])
    groups = draft.groups
    draft.groups = []
    draft.begin("lowtide.carry", [], carry)
    for group in (group for group in groups if group.root in forward):
        draft.compute(group)
    barrier = draft.begin("lowtide.barrier", results, tangents)
    for group in (group for group in groups if group.root not in forward):
        draft.compute(group)
    return draft.finished("a round", barrier)


@dataclass(frozen=True)
class _Mark:
    """In the place of a primitive, for ops that compute nothing."""

    name: str


class _Draft:
    """The graph of a step's groups, under construction.  made: inputs of the step that ops of the graph begin with."""

    def __init__(self, step: FlatStep, price: Price, in_place: bool, made: Collection[Value] = (), held: bool = False) -> None:
        self.groups = groups_of(step)
        self._step, self._price, self._in_place, self._held = step, price, in_place, held
        self._builder, self._labels = GraphBuilder(), _Labels()
        self._number: dict[Value, int] = {}
        self._values: list[Value] = []
        price.prepare(self.groups)
        for value, donated, label in zip(step.inputs, step.donated, step.names, strict=True):
            if value not in set(made):
                index = self._tensor(value, "input", label, stays=not donated)
                self._builder.tensors[index]["releasable"] = True if donated else None
        for i, value in enumerate(step.constants):
            self._tensor(value, "constant", f"constant {i}", stays=True)

    def _tensor(self, value: Value, role: str | None, label: str, stays: bool = False) -> int:
        if value not in self._number:
            dtype = NUMBER_TYPES.get(value.dtype, value.dtype)
            self._number[value] = self._builder.tensor(label, value.bytes, role, list(value.shape), dtype, stays)
            self._values.append(value)
        return self._number[value]

    def _results(self, label: str, values: Sequence[Value]) -> list[int]:
        return [self._tensor(v, None, label if i == 0 else f"{label}.{i}") for i, v in enumerate(values)]

    def begin(self, kind: str, reads: list[Value], makes: list[Value]) -> int:
        """Append an op of no time that runs once and makes these values; returns its index."""
        group = Group([Equation(_Mark(kind), {}, reads, makes)], list(dict.fromkeys(reads)))
        self.groups.append(group)
        inputs = [self._number[v] for v in group.reads]
        outputs = self._results(kind.removeprefix("lowtide."), makes)
        if kind == "lowtide.barrier":
            self._builder.cross(inputs, outputs)
        else:
            self._builder.op(Op("carry", kind, inputs, outputs, 0, recomputable=False))
        return len(self._builder.ops) - 1

    def compute(self, group: Group) -> None:
        """Append the op of a group."""
        if len(self.groups) <= len(self._builder.ops) or self.groups[len(self._builder.ops)] is not group:
            self.groups.append(group)
        label = self._labels.of(group)
        outputs = self._results(label, group.makes)
        time, workspace, _ = self._price(group)
        tensors = self._builder.tensors
        op = Op(label, f"jax.{group.root.name}", [self._number[v] for v in group.reads], outputs, time, _phase(group.root.scope),
                _origin(group.root.scope), workspace=0 if self._held else workspace + inner_workspace(group, self._price), runs=group,
                attributes={"flops": operations(group), "bytes": moved_bytes(group)})
        if self._in_place and group.elementwise:
            op.in_place = [[t, outputs[0]] for t in op.inputs if tensors[t]["bytes"] == tensors[outputs[0]]["bytes"]
                           and tensors[t]["bytes"] and not tensors[t]["stays"]]
        call = call_of(group)
        if call is not None:
            op.kind = call.kind
            for key, entries in described(call, group.makes[0], self._number.__getitem__).items():
                setattr(op, key, entries)
        self._builder.op(op, effect=group.effects)

    def hold_outputs(self) -> None:
        """Count outputs from the start to the end: in the buffer of a donated input of the same form, or in one of their own."""
        donated = Counter((v.shape, v.dtype) for v, given_up in zip(self._step.inputs, self._step.donated, strict=True) if given_up)
        own, outputs = 0, set()
        for value in dict.fromkeys(v for v in self._step.outputs if not v.known):
            if donated[value.shape, value.dtype]:
                donated[value.shape, value.dtype] -= 1
            else:
                own += value.bytes
            if self._number[value] in self._builder.producer:
                outputs.add(self._number[value])
                self._builder.tensors[self._number[value]]["bytes"] = 0
        for tensor in self._builder.tensors:
            if tensor.pop("releasable", None):
                tensor["stays"] = True
        for op in self._builder.ops:
            op.in_place = [pair for pair in op.in_place if outputs.isdisjoint(pair)]
            if not outputs.isdisjoint((*op.inputs, *op.outputs)):  # which describe arrays of other sizes now
                op.operands, op.results, op.arguments = [], [], {}
        self._builder.tensor("outputs", own, "state", [own], "u8", stays=True)

    def finished(self, name: str, barrier: int | None = None) -> Program:
        outputs = list(dict.fromkeys(self._number[v] for v in self._step.outputs if not v.known))
        return Program(self._builder.finish(name, outputs), self._step, self.groups, self._values, barrier=barrier)


def inner_workspace(group: Group, price: Price) -> int:
    """Bytes that the body of a loop or branch takes beside its operands and results."""
    most = 0
    for equation in group.equations:
        for jaxpr in inner_jaxprs(equation.params) if equation.name in _WITH_BODIES else ():
            inner = program_of(flatten(closed(jaxpr)), price, "body")
            ends = sum(inner.graph.tensor(t).bytes for t in inner.graph.outputs)
            most = max(most, inner.graph.own_peak - inner.graph.input_bytes - ends)
    return most


class _Labels:
    """A name for each op: that of its primitive, with a number."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}

    def of(self, group: Group) -> str:
        name = group.root.name
        self._count[name] = self._count.get(name, 0) + 1
        return f"{name}_{self._count[name]}"


def _phase(scope: str) -> str | None:
    return "backward" if "transpose(" in scope else "forward" if "jvp(" in scope else None


def _origin(scope: str) -> str | None:
    """The name stack without what the transformations of JAX add to it."""
    return "/".join(part for part in re.sub(r"(?:transpose|jvp|vmap|rematted_computation|checkpoint)\(?|[()]", "", scope).split("/") if part) or None
