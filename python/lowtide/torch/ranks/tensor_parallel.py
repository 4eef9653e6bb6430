"""Tensor parallelism without a process group: a module becomes what one rank of the group runs.

A rank holds its part of each divided weight, and functional collectives stand where its results are brought together (Shoeybi et
al.: Megatron-LM, 2019; Korthikanti et al.: Reducing Activation Recomputation in Large Transformer Models, 2022, section 4.2).

                    column, gather                          row
    forward   input as it is, or gathered [1]     results summed, or summed and scattered [1]
    backward  gradient summed, or scattered [1]   gradient as it is, or gathered [1]

[1] with `sequence`.  The input of several divided modules is brought together once, as by torch's PrepareModuleInput.  Between
modules a rank sees its part of the features, so a model's code must not name their number: `view(b, t, -1, head_size)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from ...frontend.errors import CaptureError
from ..compat.distributed import functional_collectives
from .mesh import Ranks, check_style, divided, matcher

# Of whole weights, by id and dimension: they, so that ids stay theirs, and their parts.  Tied weights stay tied.
_Parts = dict[tuple[int, int], tuple[nn.Parameter, nn.Parameter]]
GROUP = "tensor parallel"  # the name of the group in the graph


def localize(model: nn.Module, ranks: Ranks) -> None:
    """Replaces each divided module's parameters and forward by those of one rank, in place.  Raises CaptureError, ValueError."""
    if ranks.tp == 1:
        return
    styles = {path: style for path, module in model.named_modules() if (style := _style(ranks, path, module))}
    if not styles:
        raise CaptureError("shard: no module's path matches a pattern of `tensor`; there are "
                           f"{', '.join(path for path, m in model.named_modules() if isinstance(m, (nn.Linear, nn.Embedding)))}")
    group = _Group(ranks.tp, ranks.shard.sequence)
    parts: _Parts = {}
    for path, style in styles.items():
        module = model.get_submodule(path)
        row, is_embedding = style == "row", isinstance(module, nn.Embedding)
        if not (isinstance(module, nn.Linear) or is_embedding and row):
            raise CaptureError(f'{path}: style "{style}" is of nn.Linear{" and nn.Embedding" if row else ""}, not of '
                               f"{type(module).__name__}")
        dim = 1 if row and not is_embedding else 0
        _divide(module, "weight", dim, ranks.tp, path, parts)
        if getattr(module, "bias", None) is not None and not row:
            _divide(module, "bias", 0, ranks.tp, path, parts)
        module.forward = _FORWARDS["embedding" if is_embedding else style](module, group)


def _style(ranks: Ranks, path: str, module: nn.Module) -> str | None:
    rule = ranks.shard.tensor
    if not isinstance(rule, Mapping):
        return check_style(path, rule(path, module))
    return next((style for pattern, style in rule.items() if matcher(pattern)(path)), None)


def _divide(module: nn.Module, name: str, dim: int, tp: int, path: str, parts: _Parts) -> None:
    whole = getattr(module, name)
    key = id(whole), dim
    if key not in parts:
        shape = list(whole.shape)
        shape[dim] = divided(shape[dim], tp, f"{path}.{name}, dimension {dim}")
        parts[key] = whole, nn.Parameter(whole.detach().new_empty(shape), whole.requires_grad)
    setattr(module, name, parts[key][1])


class _Group:
    """The collectives of one rank."""

    def __init__(self, size: int, sequence: bool) -> None:
        self.size, self.sequence, self._ops = size, sequence, functional_collectives()
        self._last: tuple[torch.Tensor, torch.Tensor] | None = None

    def reduced(self, x: torch.Tensor) -> torch.Tensor:
        return self._ops.wait_tensor(self._ops.all_reduce(x.contiguous(), "sum", GROUP))

    def gathered(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        whole = self._ops.wait_tensor(self._ops.all_gather_into_tensor(x.contiguous(), self.size, GROUP))
        return whole if dim == 0 else torch.cat(whole.chunk(self.size), dim)

    def scattered(self, x: torch.Tensor, dim: int) -> torch.Tensor:
        """The part of this rank of the sum."""
        divided(x.shape[dim], self.size, "sequence")
        parts = x.contiguous() if dim == 0 else torch.cat(x.chunk(self.size, dim))
        return self._ops.wait_tensor(self._ops.reduce_scatter_tensor(parts, "sum", self.size, GROUP))

    def input(self, x: torch.Tensor) -> torch.Tensor:
        """The whole input of divided modules, of which several may take the same."""
        if self._last is None or self._last[0] is not x:
            self._last = x, _Collective.apply(x, *((self._gathered, self._scattered) if self.sequence else (_same, self.reduced)))
        return self._last[1]

    def output(self, x: torch.Tensor) -> torch.Tensor:
        """The sum of what all ranks have, or its part."""
        return _Collective.apply(x, *((self._scattered, self._gathered) if self.sequence else (self.reduced, _same)))

    def together(self, x: torch.Tensor) -> torch.Tensor:
        """The features of all ranks, side by side."""
        return _Collective.apply(x, lambda part: self.gathered(part, part.dim() - 1), self._own_features)

    def _gathered(self, x: torch.Tensor) -> torch.Tensor:
        return self.gathered(x, 1)

    def _scattered(self, x: torch.Tensor) -> torch.Tensor:
        return self.scattered(x, 1)

    def _own_features(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.chunk(self.size, -1)[0].contiguous()


class _Collective(torch.autograd.Function):
    """One function forward, another backward."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, forward: Any, backward: Any) -> torch.Tensor:
        ctx.back = backward
        return forward(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        return ctx.back(gradients[0]), None, None


def _same(x: torch.Tensor) -> torch.Tensor:
    return x.view_as(x)


def _column(module: Any, group: _Group) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda input: F.linear(group.input(input), module.weight, module.bias)


def _gather(module: Any, group: _Group) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda input: group.together(F.linear(group.input(input), module.weight, module.bias))


def _row(module: Any, group: _Group) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(input: torch.Tensor) -> torch.Tensor:
        y = group.output(F.linear(input, module.weight))
        return y if module.bias is None else y + module.bias

    return forward


def _vocabulary(module: Any, group: _Group) -> Callable[[torch.Tensor], torch.Tensor]:
    """Of rank 0: its rows are the first; what it does not have is 0."""
    def forward(input: torch.Tensor) -> torch.Tensor:
        others = input >= module.weight.shape[0]
        own = F.embedding(input.masked_fill(others, 0), module.weight, None, module.max_norm, module.norm_type,
                          module.scale_grad_by_freq, module.sparse)
        return group.output(own.masked_fill(others.unsqueeze(-1), 0))

    return forward


_FORWARDS = {"column": _column, "row": _row, "gather": _gather, "embedding": _vocabulary}
