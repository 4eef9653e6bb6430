"""Kinds of the core's table for nodes that compute the same: such ops can be split by a plan; others cannot.

Operands, results and arguments are described as the operator of that kind has them (docs/reference/formats.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

from .number_types import name_of
from .values import Value

# The strides of an operand as the op sees it, and the extents; None: as they lie.
Layout = Optional[tuple[list[int], list[int]]]


@dataclass
class Call:
    """kind: of the core.  operands: argument -> place of the operand in the node, or a list of places.  layouts: of operands that the
    op sees otherwise than they lie, by place."""

    kind: str
    operands: dict[str, int | list[int]]
    arguments: dict[str, Any] = field(default_factory=dict)
    layouts: dict[int, Layout] = field(default_factory=dict)


_UNARY = {name: name.lower() for name in ("Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Erf", "Exp",
                                          "Floor", "HardSwish", "Log", "Mish", "Neg", "Reciprocal", "Relu", "Round", "Selu",
                                          "Sigmoid", "Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Softplus", "IsNaN", "IsInf")}
_UNARY |= {"Not": "logical_not"}
_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Equal": "eq", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
           "LessOrEqual": "le", "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor", "Pow": "pow", "Max": "maximum",
           "Min": "minimum", "Sum": "add"}


def call_of(node: Any, given: Sequence[Value], made: Sequence[Value]) -> Call | None:
    """The call of a kind of the table that computes the first result, or None.  Values are those of named operands and results."""
    if node.domain not in ("", "ai.onnx") or len([name for name in node.output if name]) != 1 or "" in node.input:
        return None
    attributes = {a.name: _literal(a) for a in node.attribute}
    kind, operands = node.op_type, len(node.input)
    if kind in _UNARY and operands == 1:
        return Call(f"aten.{_UNARY[kind]}", {"self": 0})
    if kind in _BINARY and operands == 2:
        names: dict[str, int | list[int]] = {"self": 0, "exponent" if kind == "Pow" else "other": 1}
        return Call(f"aten.{_BINARY[kind]}", names, {"alpha": 1} if _BINARY[kind] in ("add", "sub") else {})
    rule = _RULES.get(kind)
    return rule(attributes, given, made) if rule else None


def describe(call: Call, node: Any, given: Sequence[Value], made: Value, number: Callable[[str], int]) -> dict[str, Any]:
    """The entries operands, results and arguments of a draft's op.  number: of a value's tensor."""
    operands = []
    for argument, places in call.operands.items():
        listed = isinstance(places, list)
        for index, place in enumerate(places if isinstance(places, list) else [places]):
            extents, strides = call.layouts.get(place) or (given[place].extents, contiguous(given[place].extents))
            entry: dict[str, Any] = {"argument": argument} | ({"index": index} if listed else {})
            operands.append(entry | {"tensor": number(node.input[place]), "shape": extents, "strides": strides,
                                     "dtype": name_of(given[place].dtype)})
    result = {"tensor": number(node.output[0]), "shape": made.extents, "strides": contiguous(made.extents), "dtype": name_of(made.dtype)}
    return {"operands": operands, "results": [result], "arguments": call.arguments}


def contiguous(extents: Sequence[int]) -> list[int]:
    """The strides of a tensor whose elements lie in order."""
    strides, step = [], 1
    for extent in reversed(extents):
        strides.append(step)
        step *= max(extent, 1)
    return strides[::-1]


def _literal(a: Any) -> Any:
    return {1: a.f, 2: a.i, 3: a.s}.get(a.type, list(a.ints))


def _product(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call | None:
    ranks = [len(value.extents) for value in given]
    if ranks == [2, 2]:
        return Call("aten.mm", {"self": 0, "mat2": 1})
    if ranks == [3, 3] and given[0].extents[0] == given[1].extents[0]:
        return Call("aten.bmm", {"self": 0, "mat2": 1})
    return None


def _gemm(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call | None:
    layouts: dict[int, Layout] = {}
    for place, name in enumerate(("transA", "transB")):
        if attributes.get(name):
            extents = given[place].extents
            layouts[place] = extents[::-1], contiguous(extents)[::-1]
    if len(given) == 2:
        return Call("aten.mm", {"self": 0, "mat2": 1}, layouts=layouts) if attributes.get("alpha", 1) == 1 else None
    scales = {"beta": attributes.get("beta", 1), "alpha": attributes.get("alpha", 1)}
    return Call("aten.addmm", {"self": 2, "mat1": 0, "mat2": 1}, scales, layouts)


def _convolution(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call | None:
    rank = len(given[0].extents) - 2
    pads = attributes.get("pads") or [0] * 2 * rank
    if rank < 1 or attributes.get("auto_pad", b"NOTSET") != b"NOTSET" or pads[:rank] != pads[rank:]:
        return None
    operands: dict[str, Any] = {"input": 0, "weight": 1} | ({"bias": 2} if len(given) > 2 else {})
    arguments = {"stride": attributes.get("strides") or [1] * rank, "padding": pads[:rank],
                 "dilation": attributes.get("dilations") or [1] * rank, "transposed": False, "output_padding": [0] * rank,
                 "groups": attributes.get("group", 1)}
    return Call("aten.convolution", operands, arguments if len(given) > 2 else {"bias": None, **arguments})


def _softmax(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call:
    return Call("aten._softmax", {"self": 0}, {"dim": attributes.get("axis", -1), "half_to_float": False})


def _concatenation(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call:
    return Call("aten.cat", {"tensors": list(range(len(given)))}, {"dim": attributes["axis"]})


def _gelu(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call:
    return Call("aten.gelu", {"self": 0}, {"approximate": (attributes.get("approximate") or b"none").decode()})


def _leaky(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call:
    return Call("aten.leaky_relu", {"self": 0}, {"negative_slope": round(attributes.get("alpha", 0.01), 9)})


def _where(attributes: Mapping[str, Any], given: Sequence[Value], made: Sequence[Value]) -> Call:
    return Call("aten.where", {"condition": 0, "self": 1, "other": 2})


_RULES: dict[str, Callable[[Mapping[str, Any], Sequence[Value], Sequence[Value]], Call | None]] = {
    "MatMul": _product, "Gemm": _gemm, "Conv": _convolution, "Softmax": _softmax, "Concat": _concatenation, "Gelu": _gelu,
    "LeakyRelu": _leaky, "Where": _where}
