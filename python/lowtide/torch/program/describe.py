"""Describes an op for the graph file: operands and results as the operator sees them, and literal arguments."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import fx

from ...frontend.draft import Op
from ..tensors.operators import DTYPES, leaves, values
from .builder import ProgramBuilder

CONJUGATES, NEGATIVES = "lowtide.conjugates", "lowtide.negatives"  # literals: names of operands


def describe(builder: ProgramBuilder, op: Op, arguments: dict[str, Any], results: dict[str, Any]) -> None:
    """Note operands, literal arguments and results of an op, by their names in its operator's schema.

    arguments: nodes of the joint graph, fake tensors, literals, and lists of these.  results: fake tensors, or tuples
    and lists of them; those that lie in tensors which the op does not make are left out.  Operands that are conjugates or
    negatives which nobody has computed yet are named in the literals CONJUGATES and NEGATIVES, since no strides say so.
    """
    for word, is_one in ((CONJUGATES, torch.Tensor.is_conj), (NEGATIVES, torch.Tensor.is_neg)):
        named = [name for name, value in arguments.items() if any(map(is_one, leaves(values([value]))))]
        if named:
            op.arguments[word] = named
    for name, value in arguments.items():
        if leaves(values([value])):
            op.operands += _entries(builder, name, values(value), op.inputs)
        else:
            literal = _literal(value)
            if literal is not _NONE:
                op.arguments[name] = literal
    for name, value in results.items():
        op.results += _entries(builder, name, value, op.outputs)


def returned(target: Any, value: Any) -> dict[str, Any]:
    """The results of an operator by their names in its schema; what has no name there is numbered."""
    names = [r.name or "" for r in target._schema.returns]
    if isinstance(value, (tuple, list)) and len(names) == len(value) and all(names):
        return dict(zip(names, value, strict=True))
    return {names[0] if len(names) == 1 else "": value}


def _entries(builder: ProgramBuilder, name: str, value: Any, tensors: list[int]) -> list[dict[str, Any]]:
    listed = isinstance(value, (tuple, list))
    found = []
    for i, t in enumerate(value if listed else [value]):
        tensor = builder.find(t)
        if tensor not in tensors:
            continue
        place = {"argument": name} | ({"index": i} if listed else {})
        found.append(place | {"tensor": tensor, "shape": [int(n) for n in t.shape],
                              "strides": [int(n) for n in t.stride()], "offset": int(t.storage_offset()),
                              "dtype": DTYPES[t.dtype]})
    return found


_NONE = object()  # no value that is known before the step runs, or none that the file could have


def _literal(value: Any) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value) if abs(value) < 2**63 else _NONE
    if isinstance(value, float):
        return value if math.isfinite(value) else {"float": str(value)}
    if isinstance(value, complex):
        return {"complex": [_literal(value.real), _literal(value.imag)]}
    if isinstance(value, torch.dtype):
        return {"dtype": DTYPES.get(value, str(value).removeprefix("torch."))}
    if isinstance(value, (torch.device, torch.layout, torch.memory_format)):
        return str(value).removeprefix("torch.")
    if isinstance(value, (tuple, list)) and not any(isinstance(v, fx.Node) for v in value):
        items = [_literal(v) for v in value]
        return _NONE if any(item is _NONE for item in items) else items
    return _NONE
