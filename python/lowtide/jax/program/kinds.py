"""Kinds of the core's table for groups that compute the same: other planners can price and split such ops.

A group has the kind of its root if that is an operator of the table and all that is folded into it are views: of what it reads, with
other extents and strides.  Several elementwise equations of one shape are one `lowtide.pointwise`, such as the exponential of a
softmax.  Operands, results and arguments are described as the operator of that kind has them (docs/reference/formats.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..tracing.equations import Equation, Value
from .groups import ELEMENTWISE, FREE, VIEWS, Group
from .number_types import NUMBER_TYPES
from .strides import Layout, layout_of, merged, viewed

_UNARY = {"logistic": "sigmoid", "erf_inv": "erfinv", "is_finite": "isfinite", "copy": "clone", "copy_p": "clone", "transpose": "clone",
          "broadcast_in_dim": "clone"}
_UNARY |= {name: name for name in ("neg exp exp2 expm1 log log1p tanh rsqrt sqrt sin cos tan sinh cosh asin acos atan asinh acosh atanh "
                                   "abs sign floor ceil erf erfc square").split()}
_BINARY = {"add_any": "add", "max": "maximum", "min": "minimum", "rem": "fmod"}
_BINARY |= {name: name for name in "add sub mul div pow atan2 eq ne lt le gt ge".split()}
_LOGIC = {"and": "and", "or": "or", "xor": "xor"}
_REDUCTIONS = {"reduce_sum": "sum", "reduce_max": "amax", "reduce_min": "amin"}


@dataclass
class Call:
    """kind: of the core.  operands: argument -> a value with its layout; a list where the argument is one.  result: the layout of the
    result, None as it lies."""

    kind: str
    operands: dict[str, Operand | list[Operand]]
    arguments: dict[str, Any] = field(default_factory=dict)
    result: Layout | None = None


@dataclass(frozen=True)
class Operand:
    """A value that the group reads, as its root sees it."""

    value: Value
    layout: Layout

    @property
    def rank(self) -> int:
        return len(self.layout.extents)


def call_of(group: Group) -> Call | None:
    """The call that computes the group's result, or None."""
    root = group.root
    if group.effects or len(root.outputs) != 1 or any(v.dtype not in NUMBER_TYPES or 0 in v.shape for v in (*group.reads, *group.makes)):
        return None
    return _of_root(group) or _pointwise(group)


def _of_root(group: Group) -> Call | None:
    """The call of the root, of views of what the group reads."""
    root = group.root
    seen = {value: Operand(value, layout_of(value.shape)) for value in group.reads}
    for equation in group.equations[:-1]:
        source = seen.get(equation.inputs[0]) if equation.inputs else None
        layout = viewed(equation, source.layout) if source and len(equation.inputs) == 1 else None
        if source is None or layout is None:
            return None
        seen[equation.outputs[0]] = Operand(source.value, layout)
    rule = _RULES.get(root.name)
    return rule(root, [seen.get(value) for value in root.inputs]) if rule else None


def _pointwise(group: Group) -> Call | None:
    """The call of elementwise equations of what the group reads and of numbers.

    What is computed of one operand alone is seen as that operand is, so it may be viewed in turn; what is computed of several must
    have the shape of the result, or be broadcast to it.
    """
    made = group.makes[0]
    seen = {value: Operand(value, layout_of(value.shape)) for value in group.reads}
    inside: dict[Value, set[Operand]] = {}  # what is computed of several operands, or of numbers alone
    for equation in group.equations:
        result, given = equation.outputs[0], [value for value in equation.inputs if not value.known]
        operands = {seen[value] for value in given if value in seen}.union(*(inside[value] for value in given if value in inside))
        if equation.name in ELEMENTWISE and len(operands) == 1 and all(v.shape == result.shape for v in given):
            (seen[result],) = operands
        elif equation.name in ELEMENTWISE and (not operands or _broadcasts(result.shape, made.shape)):
            inside[result] = operands
        elif equation.name in FREE | VIEWS and equation.inputs and not operands:  # of numbers; an iota has no input
            inside[result] = operands
        elif len(given) == 1 and given[0] in seen:
            layout = viewed(equation, seen[given[0]].layout)
            if layout is None:
                return None
            seen[result] = Operand(seen[given[0]].value, layout)
        elif len(given) == 1 and equation.name in VIEWS and result.shape == given[0].shape:
            inside[result] = operands
        else:
            return None
    found = {seen[made]} if made in seen else inside[made]
    return Call("lowtide.pointwise", {"operands": sorted(found, key=lambda o: (group.reads.index(o.value), o.layout.strides))}) if found else None


def _broadcasts(shape: Sequence[int], to: Sequence[int]) -> bool:
    return len(shape) == len(to) and all(extent in (1, wanted) for extent, wanted in zip(shape, to, strict=True))


def described(call: Call, made: Value, number: Callable[[Value], int]) -> dict[str, Any]:
    """The entries operands, results and arguments of a draft's op.  number: of a value's tensor."""
    def entry(value: Value, layout: Layout) -> dict[str, Any]:
        return {"tensor": number(value), "shape": list(layout.extents), "strides": list(layout.strides), "dtype": NUMBER_TYPES[value.dtype]}

    operands = []
    for argument, given in call.operands.items():
        for index, operand in enumerate(given if isinstance(given, list) else [given]):
            place = {"index": index} if isinstance(given, list) else {}
            operands.append({"argument": argument, **place, **entry(operand.value, operand.layout)})
    return {"operands": operands, "results": [entry(made, call.result or layout_of(made.shape))], "arguments": call.arguments}


Given = Sequence["Operand | None"]  # None: a literal


def _unary(root: Equation, given: Given) -> Call | None:
    source = given[0]
    if source is None or len(given) != 1 or root.params.get("accuracy") is not None:
        return None
    layout = viewed(root, source.layout) if root.name in ("transpose", "broadcast_in_dim") else source.layout
    return None if layout is None else Call(f"aten.{_UNARY[root.name]}", {"self": Operand(source.value, layout)})


def _binary(root: Equation, given: Given) -> Call | None:
    name, (left, right) = _BINARY[root.name], given
    if left is None or (name == "div" and "float" not in root.inputs[0].dtype):  # integers: truncates
        return None
    second = "exponent" if name == "pow" else "other"
    scale = {"alpha": 1} if name in ("add", "sub") else {}
    if right is not None:
        return Call(f"aten.{name}", {"self": left, second: right}, scale)
    literal = root.inputs[1].literal
    if name in ("maximum", "minimum", "atan2") or getattr(literal, "shape", ()) != () or not math.isfinite(literal):
        return None
    return Call(f"aten.{name}", {"self": left}, {second: _number(literal), **scale})


def _number(literal: Any) -> Any:
    return literal.item() if hasattr(literal, "item") else literal


def _logic(root: Equation, given: Given) -> Call | None:
    left, right = given
    kind = "logical" if root.inputs[0].dtype == "bool" else "bitwise"
    return Call(f"aten.{kind}_{_LOGIC[root.name]}", {"self": left, "other": right}) if left and right else None


def _not(root: Equation, given: Given) -> Call | None:
    return Call("aten.logical_not" if root.inputs[0].dtype == "bool" else "aten.bitwise_not", {"self": given[0]}) if given[0] else None


def _power(root: Equation, given: Given) -> Call | None:
    return Call("aten.pow", {"self": given[0]}, {"exponent": root.params["y"]}) if given[0] else None


def _cast(root: Equation, given: Given) -> Call | None:
    return Call("aten._to_copy", {"self": given[0]}, {"dtype": {"dtype": NUMBER_TYPES[root.outputs[0].dtype]}}) if given[0] else None


def _select(root: Equation, given: Given) -> Call | None:
    if len(given) != 3 or None in given or root.inputs[0].dtype != "bool":
        return None
    condition, otherwise, chosen = (operand for operand in given if operand)
    return Call("aten.where", {"condition": condition, "self": chosen, "other": otherwise})


def _reduction(root: Equation, given: Given) -> Call | None:
    source, dims = given[0], list(root.params["axes"])
    if source is None or not dims or root.params.get("out_sharding") is not None:
        return None
    kind = _REDUCTIONS[root.name]
    return Call(f"aten.{kind}", {"self": source}, {"dim": dims, "keepdim": False} | ({"dtype": None} if kind == "sum" else {}))


def _scan(root: Equation, given: Given) -> Call | None:
    return Call("aten.cumsum", {"self": given[0]}, {"dim": root.params["axis"], "dtype": None}) if given[0] and not root.params["reverse"] else None


def _concatenation(root: Equation, given: Given) -> Call | None:
    tensors = [operand for operand in given if operand]
    return Call("aten.cat", {"tensors": tensors}, {"dim": root.params["dimension"]}) if len(tensors) == len(given) else None


def _product(root: Equation, given: Given) -> Call | None:
    """A product of matrices, or of a batch of them, if the dimensions of each role lie as one."""
    left, right = given
    if left is None or right is None or len({v.dtype for v in (*root.inputs, *root.outputs)}) != 1:
        return None
    (contracted, batch) = root.params["dimension_numbers"]
    factors = []
    for operand, summed, batches, rows in ((left, contracted[0], batch[0], True), (right, contracted[1], batch[1], False)):
        free = [d for d in range(operand.rank) if d not in (*summed, *batches)]
        roles = [merged(operand.layout, dims) for dims in ([batches] if batches else []) + ([free, summed] if rows else [summed, free])]
        if None in roles:
            return None
        factors.append(Operand(operand.value, Layout.of([role for role in roles if role])))
    extents = (*factors[0].layout.extents[:-1], factors[1].layout.extents[-1])
    return Call("aten.bmm" if batch[0] else "aten.mm", {"self": factors[0], "mat2": factors[1]}, {}, layout_of(extents))


def _convolution(root: Equation, given: Given) -> Call | None:
    params, numbers = root.params, root.params["dimension_numbers"]
    image, weight = given
    rank = len(numbers.lhs_spec) - 2
    if image is None or weight is None or not 1 <= rank <= 3 or params["batch_group_count"] != 1 or set(params["lhs_dilation"]) != {1} \
            or any(low != high or low < 0 for low, high in params["padding"]) or len({v.dtype for v in (*root.inputs, *root.outputs)}) != 1:
        return None
    arguments = {"bias": None, "stride": list(params["window_strides"]), "padding": [low for low, _ in params["padding"]],
                 "dilation": list(params["rhs_dilation"]), "transposed": False, "output_padding": [0] * rank,
                 "groups": params["feature_group_count"]}
    operands: dict[str, Operand | list[Operand]] = {
        "input": Operand(image.value, image.layout.permuted(numbers.lhs_spec)),
        "weight": Operand(weight.value, weight.layout.permuted(numbers.rhs_spec))}
    return Call("aten.convolution", operands, arguments, layout_of(root.outputs[0].shape).permuted(numbers.out_spec))


_RULES: dict[str, Callable[[Equation, Given], Call | None]] = {
    **dict.fromkeys(_UNARY, _unary), **dict.fromkeys(_BINARY, _binary), **dict.fromkeys(_LOGIC, _logic),
    **dict.fromkeys(_REDUCTIONS, _reduction), "not": _not, "integer_pow": _power, "convert_element_type": _cast, "select_n": _select,
    "cumsum": _scan, "concatenate": _concatenation, "dot_general": _product, "conv_general_dilated": _convolution}
