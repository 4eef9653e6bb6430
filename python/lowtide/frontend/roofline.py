"""Time of one kernel on a named device, from a roofline model; nothing is measured.

The devices and the formula are the core's: see `lowtide.devices` and src/lowtide/device/roofline.h.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import lowtide
from lowtide._core import _collective_ns as collective_ns
from lowtide._core import _kernel_ns as kernel_ns

__all__ = ["DEVICES", "collective_ns", "kernel_ns", "sheet_of"]

DEVICES = {device.name: device for device in lowtide.devices()}

# The devices nearest to cards without a data sheet here, by the least compute capability from which on they are.
_BY_CAPABILITY = (((9, 0), "h100"), ((8, 9), "rtx4090"), ((8, 6), "rtx3090"), ((8, 0), "a100"), ((7, 5), "rtx8000"), ((7, 0), "v100"),
                  ((0, 0), "p100"))
_CONSUMER = ((12, 0), "rtx4090")  # GeForce cards and their like have higher numbers than the data center's of their generation


def sheet_of(title: str, memory: int = 0, capability: tuple[int, int] | None = None) -> str:
    """The name in DEVICES of a card, or of one that is like it.

    title: as its driver tells it ("NVIDIA A100-SXM4-40GB").  memory: bytes, by which sheets of one name differ; 0 if unknown.
    capability: by which a card without a data sheet is known to be like another; without it as an A100.
    """
    known = [name for name in DEVICES if re.search(_pattern(name), title.lower())]
    if known:
        return min(_of_name(known), key=lambda name: abs((DEVICES[name].memory or 0) - memory) if memory else "_" in name)
    if capability is None:
        return "a100"
    if capability >= _CONSUMER[0]:
        return _CONSUMER[1]
    return next(name for least, name in _BY_CAPABILITY if capability >= least)


def _pattern(name: str) -> str:
    """Where a title names a card: RTX 4090 in two words, and not A10 within A100."""
    return r"\b" + re.sub(r"(?<=[a-z])(?=\d)", "[ -]?", name.split("_")[0]) + r"(?!\d|s\b)"


def _of_name(known: Iterable[str]) -> list[str]:
    """The most specific ones: L40S before L4, all of A100."""
    longest = max(len(name.split("_")[0]) for name in known)
    return [name for name in known if len(name.split("_")[0]) == longest]
