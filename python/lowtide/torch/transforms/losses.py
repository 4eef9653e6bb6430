"""A cross-entropy in parts that sums in the order of the whole.

The sum over rows is the only operation of `nll_loss` that parts would do in another order, and users look at the loss.  So each
part keeps the terms of its rows: the log-probabilities of their targets, and whether they count.  The last part lets the kernel
sum them, over one column instead of all classes: the same numbers in the same order.  Not with class weights, for which the
kernel sums products.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from ..program.emitter import Code, Emitter
from ..tensors.operators import arguments_of
from .parts import Key, Slice

aten = torch.ops.aten
_LINES = 2  # of what is kept: log-probabilities, and 1 where a row counts


def keeps_rows(node: fx.Node) -> bool:
    """Is it a loss of rows with one class each, which are added up?"""
    if node.target is not aten.nll_loss_forward.default:
        return False
    given = arguments_of(node)
    return given["weight"] is None and given["reduction"] != 0 and given["self"].meta["val"].dim() == 2


def kept_bytes(rows: int, dtype: torch.dtype) -> int:
    """Bytes of what is kept of so many rows."""
    return _LINES * rows * dtype.itemsize


def picking_bytes(rows: int) -> int:
    """Bytes that it takes to pick them from a part: flags and targets."""
    return rows * (1 + torch.int64.itemsize)


def summing_bytes(rows: int, dtype: torch.dtype) -> int:
    """Bytes that it takes to sum them: all of them in one tensor, their flags, and as many targets."""
    return kept_bytes(rows, dtype) + rows * (1 + torch.int64.itemsize)


def rows_of(log_probabilities: torch.Tensor, targets: torch.Tensor, ignored: int) -> torch.Tensor:
    """The terms that the rows of a part add to the loss."""
    kept = log_probabilities.new_empty((_LINES, targets.numel()))
    counts = targets != ignored
    chosen = torch.where(counts, targets, 0)
    torch.gather(log_probabilities, 1, chosen[:, None], out=kept[0].unsqueeze(1))
    kept[1].copy_(counts)
    return kept


def more_rows(before: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    return torch.cat([before, part], 1)


def loss_of(before: torch.Tensor, part: torch.Tensor, reduction: int) -> torch.Tensor:
    """The loss of all rows, by the operator's own kernel."""
    kept = torch.cat([before, part], 1)
    ignored = -100
    targets = (kept[1] == 0).to(torch.int64).mul_(ignored)
    return aten.nll_loss_forward.default(kept[0].unsqueeze(1), targets, None, reduction, ignored)[0]


class RowsEmitter(Emitter):
    """The rows of a part.  scores, targets: what it reads."""

    def __init__(self, scores: Slice, targets: Slice, ignored: int, result: Key, like: torch.Tensor) -> None:
        self._scores, self._targets, self._ignored, self._result, self._like = scores, targets, ignored, result, like

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node = code.runs[op].own_node
        args = (self._scores.on(code), self._targets.on(code), self._ignored)
        code.values[self._result] = code.call(rows_of, args, node, self._like)
        return False


class SumEmitter(Emitter):
    """The rows of all parts so far; reduction: of the last, which makes the loss."""

    def __init__(self, before: Slice, part: Slice, result: Slice, like: torch.Tensor, reduction: int | None) -> None:
        self._before, self._part, self._result, self._like, self._reduction = before, part, result, like, reduction

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        values: tuple[Any, ...] = tuple(code.value(s.key, s.node) for s in (self._before, self._part))
        function = more_rows if self._reduction is None else loss_of
        args = values if self._reduction is None else (*values, self._reduction)
        code.values[self._result.key] = code.call(function, args, self._result.node, self._like)
        return False
