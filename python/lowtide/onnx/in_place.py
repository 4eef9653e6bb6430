"""Which nodes may write a result over an operand, and which only give a tensor another shape, by runtime.

"onnxruntime": the CPU kernels of ONNX Runtime 1.32, without graph optimizations, as tests/onnx/test_onnx_in_place.py measures them:
the memory of a run shows which kernels reuse their operand.  They reuse one of equal bytes that nothing reads later.

"generic": what a runtime with a kernel of its own for each operator can do, such as code generators for microcontrollers.  Each
element of a result depends on the same element of the operand alone, or each row on the same row, which a kernel can hold back.
"""

from __future__ import annotations

from typing import Any

from .values import Value

RUNTIMES = ("generic", "onnxruntime")

_VIEWS = frozenset({"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout"})  # sessions remove a Dropout that drops nothing
_ONNXRUNTIME = frozenset({
    "Celu", "Clip", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Relu", "ScatterElements", "Selu", "Shrink", "Sigmoid", "Softmax",
    "Softplus", "Softsign", "Tanh", "ThresholdedRelu", "Trilu"})
_FIRST = frozenset({  # generic: over the first operand
    "BatchNormalization", "BiasGelu", "Cast", "Celu", "Clip", "CumSum", "DequantizeLinear", "FastGelu", "GroupNormalization", "Hardmax",
    "InstanceNormalization", "LayerNormalization", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization", "PRelu", "QuantizeLinear",
    "RMSNormalization", "ScatterElements", "ScatterND", "Shrink", "SimplifiedLayerNormalization", "Softmax", "TensorScatter",
    "Trilu", *_VIEWS})
_ELEMENTWISE = frozenset({  # generic: over each operand that has the shape of the result
    "Abs", "Acos", "Acosh", "Add", "And", "Asin", "Asinh", "Atan", "Atanh", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr",
    "BitwiseXor", "Ceil", "Cos", "Cosh", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu", "Greater", "GreaterOrEqual",
    "HardSigmoid", "HardSwish", "IsInf", "IsNaN", "LeakyRelu", "Less", "LessOrEqual", "Log", "Max", "Mean", "Min", "Mish", "Mod",
    "Mul", "Neg", "Not", "Or", "Pow", "QLinearAdd", "QLinearMul", "QuickGelu", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softplus", "Softsign", "Sqrt", "Sub", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where", "Xor"})


def is_view(node: Any, made: list[str]) -> bool:
    """Whether the node gives its first operand another shape, without a copy.  made: its results that are used."""
    if node.op_type not in _VIEWS or node.domain not in ("", "ai.onnx") or made != [node.output[0]]:
        return False
    return node.op_type != "Dropout" or len(node.input) < 3 or not node.input[2]  # one in training drops


def overwritable(node: Any, runtime: str, given: list[Value], made: Value) -> list[int]:
    """The operands, by their places, that the node may overwrite with its first result.  Each is read once by the node."""
    if runtime == "onnxruntime":
        places = range(1) if node.op_type in _ONNXRUNTIME else range(0)
    elif node.op_type in _ELEMENTWISE:
        places = range(len(node.input))
    else:
        places = range(1) if node.op_type in _FIRST else range(0)
    return [i for i in places if node.input[i] and list(node.input).count(node.input[i]) == 1 and _fits(given[i], made, node)]


def _fits(operand: Value, made: Value, node: Any) -> bool:
    same_shape = operand.extents == made.extents or node.op_type in _VIEWS
    return same_shape and operand.bytes == made.bytes
