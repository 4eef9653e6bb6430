"""Dropout's second half on its own: what `native_dropout` makes of an input whose mask was drawn before.

`native_dropout_backward` computes the same product, and rounds otherwise: on a CPU the forward rounds the scale to
the input's number type first, on a GPU it takes the reciprocal of a probability in single precision, and the results
of the two do not always have the same strides.  So each device's forward is followed here, operation by operation
(aten/src/ATen/native/Dropout.cpp and cuda/Dropout.cu), and gives its bits and its strides for every number type.
"""

from __future__ import annotations

import ctypes

import torch

aten = torch.ops.aten
_DEVICES = ("cpu", "cuda")  # where the forward is known

_library = torch.library.Library("lowtide", "DEF")
_library.define("dropout_apply(Tensor input, Tensor mask, float p) -> Tensor")


def can_apply(device: torch.device) -> bool:
    """Is dropout_apply what the forward of this device does?"""
    return device.type in _DEVICES


@torch.library.impl(_library, "dropout_apply", "CompositeExplicitAutograd")
def _dropout_apply(x: torch.Tensor, mask: torch.Tensor, p: float) -> torch.Tensor:
    """native_dropout(x, p, True)[0], where its second result was `mask`."""
    keep = 1.0 - p
    if x.device.type == "cuda":
        return _as_fused(x, mask, keep)
    # a number as a Scalar, as C++ hands it on: as a Tensor it would not be rounded to the type of x
    return aten.mul_.Scalar(x.mul(mask), 0.0 if keep == 0 else 1.0 / keep)


def _as_fused(x: torch.Tensor, mask: torch.Tensor, keep: float) -> torch.Tensor:
    """x * mask * scale in the type in which the fused kernel computes; what it drops whole it does not read."""
    if keep == 0:
        return torch.zeros_like(x)
    out = torch.mul(x, mask, out=torch.empty_like(x))
    if x.dtype != torch.float64:
        keep = ctypes.c_float(keep).value
    return aten.mul_.Scalar(out, 1.0 / keep)


apply = torch.ops.lowtide.dropout_apply.default
