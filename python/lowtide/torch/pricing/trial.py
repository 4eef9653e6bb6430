"""Tests on this machine whether a kernel computes the rows of a part with the same bits as in the whole.

rows.py states what is known from the kernels' code, but not all kernels follow it: a library selects a product's kernel by
sizes, processor and instruction set, and may select another one for few rows.  So a kernel that rows.py accepts runs here on
random numbers, for the whole and for slices, and the bits are compared.  Kernels are selected by sizes and layouts, not by
values, so the result holds for these sizes on this machine.  In half precision rounding hides some lost bits.  Results are
cached on disk, like prices.
"""

from __future__ import annotations

from typing import Any

import torch

from ... import cache
from ..compat import pytree
from ..device.identity import identity, untraced
from ..tensors.operators import Kernel, flagged_as, leaves
from .costs import key_of

_FORMAT = 2  # to be raised when a trial becomes another
_ELEMENTS = 4096  # of results that are compared at least; small ones are tried several times
_TRIES = 8  # at most
_PLACES = 8  # of slices among the rows, at most: a row at the edge of a kernel's block may have other bits than its neighbours

_kept: dict[str, dict[str, bool]] = {}  # device and threads -> kernel -> do its rows keep their bits?


def instructions() -> str:
    """The instructions of PyTorch's kernels on this CPU: "AVX512", "AVX2", "DEFAULT"."""
    return torch.backends.cpu.get_cpu_capability()


class Trial:
    """A part's kernel beside the call that computes the whole.  whole: its arguments by the names of the same schema, fake
    tensors among them.  share: by what the part's results are multiplied.  Nothing runs before `passes` is asked."""

    def __init__(self, part: Kernel, whole: dict[str, Any], share: float | None = None) -> None:
        self._part, self._whole, self._share = part, whole, share
        self._passes: bool | None = None

    def passes(self) -> bool:
        """Have the whole's rows the bits that the part's kernel gives them?  Of a kernel that refuses random
        numbers, or whose part is no slice of rows, nobody knows: no."""
        if self._passes is None:
            self._passes = self._known_or_tried()
        return self._passes

    def _known_or_tried(self) -> bool:
        device = self._part.written[0].device
        machine = identity(device)
        file = cache.path_of("rows", _FORMAT, *machine)
        known = _kept.setdefault(repr(machine), {})
        if not known:
            found = cache.read(file)
            known.update({k: v for k, v in (found if isinstance(found, dict) else {}).items() if isinstance(v, bool)})
        key = key_of(self._part.target, (self._part.args, self._whole, self._share), self._part.kwargs)
        if key not in known:
            with untraced(device):
                known[key] = self._try(device)
            cache.write(file, known)
        return known[key]

    def _try(self, device: torch.device) -> bool:
        generator = torch.Generator(device).manual_seed(0)
        seen = 0
        try:
            for _ in range(_TRIES):
                compared = self._compare(device, generator)
                if compared is None:
                    return False
                seen += compared
                if seen >= _ELEMENTS:
                    break
        except Exception:  # any kernel may refuse
            return False
        return True

    def _compare(self, device: torch.device, generator: torch.Generator) -> int | None:
        """How many elements were compared, all of them equal; None if one was not."""
        target = self._part.target
        named = pytree.tree_map_only(torch.Tensor, lambda t: _random(t, device, generator), self._whole)
        schema = target._schema.arguments
        made = leaves(target(*(named[a.name] for a in schema if not a.kwarg_only),
                             **{a.name: named[a.name] for a in schema if a.kwarg_only}))
        count = 0
        for place in self._places():
            args, kwargs = self._sliced(named, place)
            for mine, of_whole in zip(leaves(target(*args, **kwargs)), made, strict=True):
                if mine.shape == of_whole.shape:  # a summand of the whole's
                    continue
                if self._share is not None:
                    mine.mul_(self._share)
                if not _same_bits(mine, _rows(of_whole, mine.shape, place)):
                    return None
                count += mine.numel()
        return count

    def _places(self) -> list[int]:
        """The starts of slices: all of them, or an even choice that includes the first and the last."""
        cut = [(int(whole.shape[0]), int(part.shape[0])) for part, whole in zip(
            leaves([*self._part.args, self._part.kwargs]), leaves(self._in_order()), strict=True) if part.shape != whole.shape]
        rows, of_part = cut[0]
        places = [*range(0, rows - of_part, of_part), rows - of_part]
        step = max(1, len(places) // _PLACES)
        return [*places[:-1:step], places[-1]]

    def _in_order(self) -> list[Any]:
        """The whole's arguments as the part's kernel takes them."""
        names = [a.name for a in self._part.target._schema.arguments]
        return [*(self._whole[name] for name in names[:len(self._part.args)]),
                {name: self._whole[name] for name in self._part.kwargs}]

    def _sliced(self, named: dict[str, Any], place: int) -> tuple[Any, Any]:
        """The part's arguments with rows of the whole's numbers in the place of its tensors."""
        def of(name: str, value: Any) -> Any:
            if isinstance(value, (list, tuple)) and leaves(value):
                return [of_tensor(v, w) if isinstance(v, torch.Tensor) else v for v, w in zip(value, named[name], strict=True)]
            return of_tensor(value, named[name]) if isinstance(value, torch.Tensor) else value

        def of_tensor(like: torch.Tensor, whole: torch.Tensor) -> torch.Tensor:
            made = torch.empty_strided(like.shape, like.stride(), dtype=like.dtype, device=whole.device)
            return flagged_as(like, made).copy_(_rows(whole, like.shape, place))

        names = [a.name for a in self._part.target._schema.arguments]
        return ([of(name, value) for name, value in zip(names, self._part.args, strict=False)],
                {name: of(name, value) for name, value in self._part.kwargs.items()})


def _rows(whole: torch.Tensor, shape: torch.Size, place: int) -> torch.Tensor:
    """The whole's rows from `place` on, as many as `shape` says; all of them where it is the whole's shape."""
    if whole.shape == shape:
        return whole
    if whole.shape[1:] != shape[1:]:
        raise ValueError(f"{tuple(shape)} are no rows of {tuple(whole.shape)}")
    return whole[place:place + shape[0]]


def _random(t: torch.Tensor, device: torch.device, generator: torch.Generator) -> torch.Tensor:
    """A real tensor of random numbers that lies as t does; whole numbers are 0."""
    size, strides = ([int(n) for n in numbers] for numbers in (t.shape, t.stride()))
    made = torch.empty_strided(size, strides, dtype=t.dtype, device=device)
    if not (t.dtype.is_floating_point or t.dtype.is_complex):
        return made.zero_()
    return flagged_as(t, made.normal_(generator=generator) if 0 not in strides else made.fill_(0.5))


def _same_bits(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and bool(torch.all((a == b) | ((a != a) & (b != b))))

