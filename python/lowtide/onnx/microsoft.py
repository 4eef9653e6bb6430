"""Results of ONNX Runtime's own operators (com.microsoft), of which onnx knows no shapes: those that its optimizer, its quantizer and
training graphs put into models.  Others count by what the model says of their results (value_info)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto

from .values import Value

UNKNOWN = Value(TensorProto.UNDEFINED, None)
# a node of onnx's own operators and its operands -> its results
Infer = Callable[[Any, list[Value]], "list[Value] | None"]

_LIKE_FIRST = frozenset({
    "BiasDropout", "BiasGelu", "DropoutGrad", "FastGelu", "FastGeluGrad", "Gelu", "GeluGrad", "LayerNormalization", "LogSoftmaxGrad",
    "LogSoftmaxGrad_13", "QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", "QuickGelu", "ReluGrad", "RotaryEmbedding",
    "SigmoidGrad", "SimplifiedLayerNormalization", "SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "SoftmaxGrad",
    "SoftmaxGrad_13", "TanhGrad"})
_SAME_AS = {"FusedConv": "Conv", "FusedGemm": "Gemm", "QLinearAveragePool": "AveragePool"}
_SUMS = frozenset({"SkipLayerNormalization", "SkipSimplifiedLayerNormalization"})  # whose fourth result is the sum


def results(node: Any, given: list[Value], opset: int, infer: Infer) -> list[Value] | None:
    """The results of a node, None where they are not known.  given: its operands."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    if not given or not given[0].known:
        return None
    if node.op_type in _LIKE_FIRST:
        first = Value(given[0].dtype, given[0].shape)
        return [first if i == 0 or (i == 3 and node.op_type in _SUMS) else UNKNOWN for i in range(len(node.output))]
    if node.op_type in _SAME_AS:
        return _as(_SAME_AS[node.op_type], node, given, opset, infer)
    rule = _RULES.get(node.op_type)
    made = rule(attributes, given) if rule and all(value.known for value in given) else None
    return None if made is None else [made] + [UNKNOWN] * (len(node.output) - 1)


def _as(kind: str, node: Any, given: list[Value], opset: int, infer: Infer) -> list[Value] | None:
    """The results of an operator of onnx with the same attributes."""
    schema = onnx.defs.get_schema(kind, opset)
    operands = min(len(node.input), schema.max_input)
    copy = onnx.helper.make_node(kind, list(node.input)[:operands], list(node.output))
    copy.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
    if not node.op_type.startswith("QLinear"):
        return infer(copy, given[:operands])
    made = infer(copy, [Value(TensorProto.FLOAT, value.shape) for value in given[:operands]])  # onnx's own takes no bytes
    return None if made is None else [Value(given[0].dtype, value.shape) for value in made]


def _broadcast(attributes: Mapping[str, Any], given: list[Value]) -> Value:
    return Value(given[0].dtype, tuple(np.broadcast_shapes(given[0].extents, given[3].extents)))


def _product(a: Value, b: Value, dtype: int) -> Value:
    stacked = np.broadcast_shapes(a.extents[:-2], b.extents[:-2])
    return Value(dtype, (*stacked, a.extents[-2], b.extents[-1]))


def _product_to_float(attributes: Mapping[str, Any], given: list[Value]) -> Value | None:
    ranks = [len(value.extents) for value in given[:2]]
    return _product(given[0], given[1], given[2].dtype) if min(ranks) >= 2 else None


def _transposed_product(attributes: Mapping[str, Any], given: list[Value]) -> Value | None:
    if min(len(value.extents) for value in given[:2]) < 2 or attributes.get("transBatchA") or attributes.get("transBatchB"):
        return None
    a, b = (Value(value.dtype, (*value.extents[:-2], *value.extents[:-3:-1])) if attributes.get(name) else value
            for name, value in zip(("transA", "transB"), given))
    return _product(a, b, a.dtype)


def _gemm(attributes: Mapping[str, Any], given: list[Value]) -> Value:
    rows = given[0].extents[::-1] if attributes.get("transA") else given[0].extents
    columns = given[3].extents[::-1] if attributes.get("transB") else given[3].extents
    return Value(given[8].dtype if len(given) > 8 else TensorProto.FLOAT, (rows[0], columns[1]))


def _concatenation(attributes: Mapping[str, Any], given: list[Value]) -> Value:
    parts = [value.extents for value in given[2::3]]
    axis = attributes["axis"] % len(parts[0])
    return Value(given[2].dtype, (*parts[0][:axis], sum(part[axis] for part in parts), *parts[0][axis + 1:]))


def _global_pool(attributes: Mapping[str, Any], given: list[Value]) -> Value:
    first, *middle, last = given[0].extents
    shape = (first, *[1] * len(middle), last) if attributes.get("channels_last") else (first, middle[0], *[1] * len(middle))
    return Value(given[0].dtype, shape)


def _packed_product(attributes: Mapping[str, Any], given: list[Value]) -> Value:
    return Value(given[0].dtype, (*given[0].extents[:-1], attributes["N"]))


def _attention(attributes: Mapping[str, Any], given: list[Value]) -> Value | None:
    ranks = [len(value.extents) for value in given[:3]]
    return Value(given[0].dtype, (*given[0].extents[:2], given[2].extents[2])) if ranks == [3, 3, 3] else None


_RULES: dict[str, Callable[[Mapping[str, Any], list[Value]], Value | None]] = {
    "QLinearAdd": _broadcast, "QLinearMul": _broadcast, "MatMulIntegerToFloat": _product_to_float,
    "DynamicQuantizeMatMul": _product_to_float, "FusedMatMul": _transposed_product, "TransposeMatMul": _transposed_product,
    "QGemm": _gemm, "QLinearConcat": _concatenation, "QLinearGlobalAveragePool": _global_pool, "MatMulNBits": _packed_product, "MultiHeadAttention": _attention}
