"""Storages of tensors: their identity, their bytes, and which of them take part in training.

A tensor of a plan is one storage, so whatever is counted is counted by storage: views of one storage are one entry
in a table `storage -> bytes`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch

from ...frontend.errors import CaptureError
from ..compat.cuda import allocator_backend
from .used_gradient import UsedGradient
from .wrapped import unwrapped

Sizes = dict[int, int]  # storage -> bytes

_CUDA_BLOCK = 512  # bytes
_LARGE = 1 << 20  # bytes: a larger block may be given out with as much beside it
_LEFT_OVER = 64 << 10  # bytes that are counted beside each larger block


def storage(t: torch.Tensor) -> int:
    """The identity of t's storage, for as long as somebody keeps it alive (an FX graph its fake tensors', for one)."""
    t = unwrapped(t)
    if t.layout != torch.strided:
        raise CaptureError(f"the step makes a tensor of layout {t.layout}; only dense tensors have one storage")
    return t.untyped_storage()._cdata


def bytes_of(t: torch.Tensor) -> int:
    """Bytes of t's storage, as its device's allocator counts them."""
    t = unwrapped(t)
    return allocated(int(t.untyped_storage().nbytes()), t.device)  # a fake storage does not know its device


def device_among(tensors: Iterable[torch.Tensor]) -> torch.device:
    """The first device among these tensors that is not the host; the host if there is none."""
    return next((t.device for t in tensors if t.device.type != "cpu"), torch.device("cpu"))


def allocated(size: int, device: torch.device) -> int:
    """The bytes that a device's allocator uses for a storage of `size` bytes: on a GPU whole blocks (CUDACachingAllocator's
    kMinBlockSize).

    torch.cuda.max_memory_allocated may count up to 1 MiB more for a block above 1 MiB: see `left_over`."""
    return -(-size // _CUDA_BLOCK) * _CUDA_BLOCK if device.type == "cuda" else size


def left_over(sizes: Iterable[int], device: torch.device) -> int:
    """Bytes that a GPU's allocator may count beyond those of tensors of these sizes.

    Without expandable segments it gives out a block above 1 MiB together with what is left of a free one, if that is no more
    than 1 MiB.  How much it is at the peak depends on all that was allocated before; most sizes of a model come again, and
    leave nothing.  It is taken to be 64 KiB for each large tensor, which no step of the check has exceeded: a convolutional net
    with 1280 of them takes 74 MiB, language models a fifth of it.
    """
    large = sum(size > _LARGE for size in sizes) if device.type == "cuda" else 0
    if not large or allocator_backend() != "native" or any(segment.get("is_expandable") for segment in torch.cuda.memory_snapshot()):
        return 0
    return large * _LEFT_OVER


def is_dense(t: Any) -> bool:
    """Is it a tensor with one storage?"""
    return isinstance(t, torch.Tensor) and unwrapped(t).layout == torch.strided and not isinstance(t, UsedGradient)


def lies_like(t: torch.Tensor, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Has t that shape, and each of its elements the place that these strides give it?  The stride of a dimension of one element
    says nothing."""
    return t.shape == shape and all(n == 1 or a == b for n, a, b in zip(t.shape, t.stride(), strides, strict=True))


def storages(values: Iterable[Any]) -> Sizes:
    """The storages of the dense tensors among these values, with their bytes."""
    return {storage(t): bytes_of(t) for t in values if is_dense(t)}


def is_trained(t: Any) -> bool:
    """Is it a leaf of the autograd graph that gets a gradient: a parameter, or an input that requires one?"""
    return isinstance(t, torch.Tensor) and t.is_leaf and t.requires_grad


def trained_arguments(args: Iterable[Any]) -> set[int]:
    """Which of these arguments get a gradient, by their positions."""
    return {i for i, t in enumerate(args) if is_trained(t)}


def has_gradient(t: Any) -> bool:
    """Is it a leaf whose gradient is there, and dense?"""
    return isinstance(t, torch.Tensor) and t.is_leaf and t.grad is not None and is_dense(t.grad)


def gradients_by_leaf(values: Iterable[Any]) -> Sizes:
    """Bytes of the gradients that are there, by the storages of their leaves."""
    return {storage(t): bytes_of(t.grad) for t in values if has_gradient(t)}


def gradient_bytes(values: Iterable[Any]) -> int:
    """Bytes of the gradients that are there, each storage once."""
    return sum(storages(t.grad for t in values if has_gradient(t)).values())
