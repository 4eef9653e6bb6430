"""Dropout: a draw of the mask, which runs once, and a product with it, which may run again.

It is two ops, MASK (input -> mask) and APPLY (input and mask -> output).  The kernel makes both at once, so MASK has
the output as its workspace; where a schedule has APPLY right behind MASK, its code is the kernel.

APPLY alone is an operator of our own, which follows what eager execution does on each device, operation by operation
(aten/src/ATen/native/Dropout.cpp and cuda/Dropout.cu), and gives its bits and its strides for every number type.  On a
GPU that is the forward of `native_dropout`, which takes the reciprocal of a probability in single precision.  On a CPU
eager execution calls no such kernel: it divides a mask by a probability, in the input's number type, and multiplies with
that in the forward and in the backward.  The kernel that the tracer writes multiplies with the reciprocal, which for a few
probabilities (.15 in f32) is another number, and its backward does not round it to the number type.  Where one of them
would have other bits, it is not called: APPLY does its work (`as_in_eager`).
"""

from __future__ import annotations

import ctypes
import functools
import math
import operator
from typing import Any

import torch
from torch import fx

from ...device.identity import untraced
from ...tensors.operators import Kernel, arguments_of, device_of, is_effect, operand
from ...tensors.storages import bytes_of
from ..builder import ProgramBuilder
from ..describe import describe
from ..emitter import Code, Emitter
from ..in_place import LISTED_FOR_CPU, OutVariant, is_laid_out_as
from .interface import Lowering
from .random_draws import DRAW, AloneEmitter, append_draw

aten = torch.ops.aten
_DEVICES = ("cpu", "cuda")  # where the forward is known

_library = torch.library.Library("lowtide", "DEF")
_library.define("dropout_apply(Tensor input, Tensor mask, float p) -> Tensor")
_library.define("dropout_apply_(Tensor(a!) input, Tensor mask, float p) -> Tensor(a!)")


def can_apply(device: torch.device) -> bool:
    """Is dropout_apply what the forward of this device does?"""
    return device.type in _DEVICES


@torch.library.impl(_library, "dropout_apply", "CompositeExplicitAutograd")
def _dropout_apply(x: torch.Tensor, mask: torch.Tensor, p: float) -> torch.Tensor:
    """native_dropout(x, p, True)[0], where its second result was `mask`."""
    keep = 1.0 - p
    if x.device.type == "cuda":
        return _as_fused(x, mask, keep, torch.empty_like(x))
    # a number as a Scalar, as C++ hands it on: as a Tensor it would not be rounded to the type of x
    scale = _scale(x.dtype, keep)
    if math.isinf(scale):
        return x.mul(mask.to(x.dtype).div_(keep))  # where nothing is kept that is zero, and not zero times infinity
    return aten.mul_.Scalar(x.mul(mask), scale)


@torch.library.impl(_library, "dropout_apply_", "CompositeExplicitAutograd")
def _dropout_apply_(x: torch.Tensor, mask: torch.Tensor, p: float) -> torch.Tensor:
    """The same over x."""
    keep = 1.0 - p
    if x.device.type == "cuda":
        return _as_fused(x, mask, keep, x)
    scale = _scale(x.dtype, keep)
    if math.isinf(scale):
        return x.mul_(mask.to(x.dtype).div_(keep))
    return aten.mul_.Scalar(x.mul_(mask), scale)


def _scale(dtype: torch.dtype, keep: float) -> float:
    """The factor of kept elements in eager execution on a CPU."""
    if keep == 0 or dtype.is_complex:
        return 0.0 if keep == 0 else 1.0 / keep
    return _rounded(dtype, 1.0, keep)


def _is_native(dtype: torch.dtype, p: float, *, backward: bool) -> bool:
    """Has PyTorch's kernel the bits of eager execution on a CPU?  Its forward alone rounds the scale to the number type."""
    keep = 1.0 - p
    if keep == 0 or dtype.is_complex:
        return True
    if math.isinf(_scale(dtype, keep)):
        return False
    computes = torch.float32 if backward and dtype.itemsize < 4 else dtype
    return _rounded(computes, 1.0 / keep, 1.0) == _scale(dtype, keep)


@functools.cache
def _rounded(dtype: torch.dtype, number: float, by: float) -> float:
    """A number over another, as a kernel divides a tensor of that type by a number."""
    with untraced(torch.device("cpu")):
        return torch.full((), number, dtype=dtype, device="cpu").div_(by).item()


def as_in_eager(joint: fx.GraphModule) -> None:
    """Have backwards of dropouts on a CPU multiply as eager execution does."""
    for node in joint.graph.find_nodes(op="call_function", target=aten.native_dropout_backward.default):
        gradient, mask = operand(node), operand(node, 1)
        drawn: Any = mask.args[0] if mask.target is operator.getitem else None
        if getattr(drawn, "target", None) is not aten.native_dropout.default or device_of(node).type != "cpu":
            continue
        p = arguments_of(drawn)["p"]
        if not _is_native(gradient.meta["val"].dtype, p, backward=True):
            node.target, node.args, node.kwargs = dropout_apply, (gradient, mask, p), {}


def _as_fused(x: torch.Tensor, mask: torch.Tensor, keep: float, out: torch.Tensor) -> torch.Tensor:
    """x * mask * scale, into `out`, in the type in which the fused kernel computes; what it drops whole it does not
    read."""
    if keep == 0:
        return out.zero_()
    torch.mul(x, mask, out=out)
    if x.dtype != torch.float64:
        keep = ctypes.c_float(keep).value
    return aten.mul_.Scalar(out, 1.0 / keep)


dropout_apply = torch.ops.lowtide.dropout_apply.default
dropout_apply_ = torch.ops.lowtide.dropout_apply_.default
_OVER = OutVariant(dropout_apply_, None, ("input",))
LISTED_FOR_CPU[dropout_apply] = dropout_apply_, None, ("input",)


class _MaskEmitter(Emitter):
    """The kernel; its output is taken too where the next op is this one's APPLY.  That one may be meant to write over
    the input: the kernel takes no more than its mask does with the output as workspace."""

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        runs = code.runs
        node = runs[op].own_node
        both = (following is not None and runs[following].emitter is _APPLY and runs[following].node is node
                and (device_of(node).type != "cpu"
                     or _is_native(node.meta["val"][0].dtype, arguments_of(node)["p"], backward=False)))
        made = DRAW.call(code, op, again)
        code.items(node, made, (0,) if both else ())
        code.item(node, made, 1)  # APPLY reads it where nobody else does
        return both

    def before_parts(self, node: fx.Node) -> Emitter | None:
        return _MASK_ALONE if device_of(node).type == "cpu" else None


class _MaskAloneEmitter(AloneEmitter):
    """The mask without its input, of which it has the shape, as native_dropout draws it on a CPU."""

    def result(self, node: fx.Node) -> torch.Tensor:
        return node.meta["val"][1]

    def into(self, node: fx.Node) -> tuple[str, tuple[Any, ...]]:
        return "bernoulli_", (1.0 - arguments_of(node)["p"],)

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        code.values[code.runs[op].node, 1] = self.call(code, op, again)
        return False


class _ApplyEmitter(Emitter):
    def overwritable(self, node: fx.Node) -> dict[str, torch.Tensor]:
        source = arguments_of(node)["input"].meta["val"]
        return {"input": source} if is_laid_out_as(source, node.meta["val"][0]) else {}

    def part_of(self, node: fx.Node) -> tuple[Any, dict[str, Any]]:
        given = arguments_of(node)
        return dropout_apply, {"input": given["input"], "mask": None, "p": given["p"]}

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        args = (code.get(operand(node)), code.value((node, 1), node), arguments_of(node)["p"])
        value = node.meta["val"][0]
        code.values[node, 0] = (code.call_over(args[0], _OVER, dropout_apply, args, node, value) if over
                                else code.call(dropout_apply, args, node, value))
        return False


_MASK, _MASK_ALONE, _APPLY = _MaskEmitter(), _MaskAloneEmitter(), _ApplyEmitter()


class Dropout(Lowering):
    """A dropout that draws, on a device whose forward is known."""

    def applies(self, node: fx.Node, arguments: dict[str, Any]) -> bool:
        return node.target is aten.native_dropout.default and is_effect(node, arguments) and can_apply(device_of(node))

    def lower(self, builder: ProgramBuilder, node: fx.Node, arguments: dict[str, Any]) -> None:
        out, mask = node.meta["val"]
        source = arguments["input"].meta["val"]
        chance = {"p": arguments["p"]}
        draw = builder.op(node, _MASK, [source], [mask], name=f"{node.name}.mask", word="lowtide.dropout_mask",
                          attributes=chance)
        draw.workspace += bytes_of(out)
        describe(builder, draw, {"input": source} | chance, {"mask": mask})
        append_draw(builder, draw)
        apply = builder.op(node, _APPLY, [source, mask], [out], word="lowtide.dropout_apply", attributes=chance)
        apply.kernel = Kernel(dropout_apply, (source, mask, arguments["p"]), {}, [source, mask], [out], out)
        describe(builder, apply, {"input": source, "mask": mask} | chance, {"": out})
        builder.one_kernel.append((draw, apply))
        builder.graph.op(apply)
