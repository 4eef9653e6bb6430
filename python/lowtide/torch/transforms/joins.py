"""Joins the results of an op's parts: copies slices to their places, or accumulates sums.

Each join takes the result so far and, if the plan lets it, writes into it.  The first join makes the storage; a sum starts from
the first part's own value, without an op.  A half-precision sum of more than two parts is accumulated in single precision.
"""

from __future__ import annotations

import functools
from typing import Any

import torch

from ..program.emitter import Code, Emitter
from .parts import Slice, laid_out

Place = tuple[int, int, int, int]  # extent, elements of a slice, the first slice and the count of a part


def _put(whole: torch.Tensor, part: torch.Tensor, place: Place, lies: tuple[int, ...]) -> torch.Tensor:
    """Copy a part's storage to its place in that of the whole, in every round of the extent.  lies: the strides by which
    the part has its place."""
    extent, stride, first, count = place
    part = laid_out(part, lies)
    period = extent * stride
    rounds = whole.untyped_storage().nbytes() // (whole.element_size() * period) if period else 0
    shape = (rounds, count, stride)
    whole.as_strided(shape, (period, stride, 1), first * stride).copy_(
        part.as_strided(shape, (count * stride, stride, 1), 0))
    return whole


def join_first(part: torch.Tensor, lies: tuple[int, ...], shape: tuple[int, ...], strides: tuple[int, ...],
               place: Place) -> torch.Tensor:
    """A new whole with the first part in it."""
    return _put(torch.empty_strided(shape, strides, dtype=part.dtype, device=part.device), part, place, lies)


def join_over(whole: torch.Tensor, part: torch.Tensor, lies: tuple[int, ...], place: Place) -> torch.Tensor:
    """The same whole, with another part in it."""
    return _put(whole, part, place, lies)


def join_anew(whole: torch.Tensor, part: torch.Tensor, lies: tuple[int, ...], place: Place) -> torch.Tensor:
    """Another whole, with another part in it."""
    return _put(whole.clone(), part, place, lies)


CHUNK = 1 << 14  # elements that are added at a time where number types differ: a kernel of the CPU copies them first


def add(before: torch.Tensor, part: torch.Tensor, dtype: torch.dtype, shape: tuple[int, ...], strides: tuple[int, ...],
        over: int | None) -> torch.Tensor:
    """before + part, added in the widest of the three number types and rounded once to `dtype`; over: which of the two it is
    written to.  Both lie as the result does, but what parts of parts made is known as a storage without a shape.

    A kernel adds in the type of its operands, whatever the type of `out`: two in half would be rounded to half first.
    """
    before, part = (laid_out(t, strides) if t.shape == shape else t.as_strided(shape, strides, 0) for t in (before, part))
    out = (before, part)[over] if over is not None else torch.empty_strided(shape, strides, dtype=dtype, device=part.device)
    if before.dtype == part.dtype == dtype:
        return torch.add(before, part, out=out)
    widest = _widest(before.dtype, part.dtype, dtype)
    if part.device.type != "cpu":  # whose kernels read and write mixed number types as they are
        return torch.add(before, part, out=out) if widest in (before.dtype, part.dtype) else out.copy_(before).add_(part)
    flat = [t.as_strided((part.numel(),), (1,), 0) for t in (before, part, out)]
    for one, other, sum_ in zip(*(t.split(CHUNK) for t in flat), strict=True):
        torch.add(one.to(widest), other, out=sum_)
    return out


def _widest(*dtypes: torch.dtype) -> torch.dtype:
    return functools.reduce(torch.promote_types, dtypes)


def copied_bytes(before: torch.dtype, part: torch.dtype, result: torch.dtype, like: torch.Tensor) -> int:
    """Bytes of the copies that `add` takes of what is not of the number type in which it adds."""
    if before == part == result or like.device.type != "cpu":
        return 0
    widest = _widest(before, part, result)
    copies = sum(widest.itemsize for dtype in (before, part, result) if dtype != widest)
    return copies * min(like.numel(), CHUNK)


def lies_as(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Have both the same strides, where these say something?  A storage without a shape lies as any other."""
    if one.shape != other.shape:
        return one.dim() == 1 and one.numel() == other.numel()
    return all(n == 1 or a == b for n, a, b in zip(one.shape, one.stride(), other.stride(), strict=True))


class JoinEmitter(Emitter):
    """before: what is there so far, None for the first part.  result: with the value that it is to have."""

    def __init__(self, before: Slice | None, part: Slice, result: Slice, like: torch.Tensor, place: Place) -> None:
        self._before, self._part, self._result, self._like, self._place = before, part, result, like, place

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        part = code.value(self._part.key, self._part.node)
        lies = tuple(part.meta["val"].stride())
        if self._before is None:
            function: Any = join_first
            args: tuple[Any, ...] = (part, lies, self._result.shape, self._result.strides, self._place)
        else:
            function = join_over if over else join_anew
            args = (code.value(self._before.key, self._before.node), part, lies, self._place)
        code.values[self._result.key] = code.call(function, args, self._result.node, self._like)
        return False


class AddEmitter(Emitter):
    """operands: the tensors of both, in their order."""

    keeps_bits = False
    adds_parts = True

    def __init__(self, before: Slice, part: Slice, result: Slice, like: torch.Tensor, operands: list[int]) -> None:
        self._before, self._part, self._result, self._like, self._operands = before, part, result, like, operands

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        before, part = (code.value(s.key, s.node) for s in (self._before, self._part))
        place = self._operands.index(over[0]) if over else None
        args = (before, part, self._result.dtype, self._result.shape, self._result.strides, place)
        code.values[self._result.key] = code.call(add, args, self._result.node, self._like)
        return False
