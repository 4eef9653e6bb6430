"""A flat step as the planner sees it: its graph, and what code can be made of a plan.

XLA's code runs whole steps, so there is no barrier between forward and backward: the two are ops of one graph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from typing import Any

import lowtide

from ...frontend.draft import GraphBuilder, Op
from ...frontend.exactness import Exactness
from ...frontend.price import Price
from ..compat import is_array
from ..tracing.equations import FlatStep, Value
from .groups import Group, groups_of
from .price import moved_bytes, operations

_DTYPES = {"float64": "f64", "float32": "f32", "bfloat16": "bf16", "float16": "f16", "int64": "i64", "int32": "i32",
           "int16": "i16", "int8": "i8", "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64", "bool": "b8"}


@dataclass(frozen=True)
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

    def tighter(self, resident: int) -> Program:
        """The same program beside other memory."""
        return replace(self, graph=self.graph.edited(resident_bytes=resident))


def program_of(step: FlatStep, price: Price, name: str, in_place: bool = True) -> Program:
    """The program of a flat step.  in_place: may results be written over operands?"""
    groups = groups_of(step)
    price.prepare(groups)
    builder, number, values = GraphBuilder(), {}, []

    def tensor(value: Value, role: str | None, label: str, stays: bool = False) -> int:
        if value not in number:
            dtype = _DTYPES.get(value.dtype, value.dtype)
            number[value] = builder.tensor(label, value.bytes, role, list(value.shape), dtype, stays)
            values.append(value)
        return number[value]

    for value, donated, label in zip(step.inputs, step.donated, step.names, strict=True):
        index = tensor(value, "input", label, stays=not donated)
        if donated:
            builder.tensors[index]["releasable"] = True
    for i, value in enumerate(step.constants):
        tensor(value, "constant", f"constant {i}", stays=True)
    labels = _Labels()
    for group in groups:
        label = labels.of(group)
        ends = [f"{label}" if i == 0 else f"{label}.{i}" for i in range(len(group.makes))]
        outputs = [tensor(value, None, end) for value, end in zip(group.makes, ends, strict=True)]
        time, workspace, _ = price(group)
        op = Op(label, f"jax.{group.root.name}", [number[v] for v in group.reads], outputs, time, _phase(group.root.scope),
                _origin(group.root.scope), workspace=workspace, runs=group,
                attributes={"flops": operations(group), "bytes": moved_bytes(group)})
        if in_place and group.elementwise:
            op.in_place = [[t, outputs[0]] for t in op.inputs if builder.tensors[t]["bytes"] == builder.tensors[outputs[0]]["bytes"]
                           and builder.tensors[t]["bytes"] and not builder.tensors[t]["stays"]]
        builder.op(op, effect=group.effects)
    outputs = list(dict.fromkeys(number[v] for v in step.outputs if not v.known))
    return Program(builder.finish(name, outputs), step, groups, values)


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
