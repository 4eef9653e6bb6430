"""Prices of groups measured on this machine's device: each distinct group is compiled by itself and run a few times.

Times are kept on disk under a key of the device and the versions.  A group that cannot run alone has the price of its data
sheet.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Hashable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ... import cache
from ...frontend import progress
from ...frontend.price import Price
from ..compat import is_array
from .groups import Group, function_of, structure

_RUNS = 5  # after one that is not counted


class Measured:
    """otherwise: the price of what cannot be measured, and of workspaces."""

    real = True

    def __init__(self, otherwise: Price) -> None:
        self._otherwise = otherwise
        self._known: dict[Hashable, int | None] = {}

    def prepare(self, kernels: Sequence[Group]) -> None:
        for i, group in enumerate(kernels):
            key = structure(group)
            if key is not None and key not in self._known:
                progress.stage("pricing ops", i, len(kernels))
                self._known[key] = _measured(group, key)

    def __call__(self, kernel: Group) -> tuple[int, int, list[int]]:
        key = structure(kernel)
        ticks = None if key is None else self._known.get(key)
        otherwise, workspace, sizes = self._otherwise(kernel)
        return otherwise if ticks is None else ticks, workspace, sizes


def _measured(group: Group, key: Hashable) -> int | None:
    """ns, or None if the group cannot run alone."""
    if group.effects or not all(is_array(v.aval) for v in group.reads):
        return None
    device = jax.devices()[0]
    file = cache.path_of("jax-prices", repr(key), jax.__version__, device.platform, device.device_kind)
    known = cache.read(file)
    if isinstance(known, int):
        return known
    try:
        found = _timed(group)
    except Exception:  # whatever XLA says of an op alone; the data sheet has a price
        return None
    cache.write(file, found)
    return found


def _timed(group: Group) -> int:
    arguments = [jnp.ones(v.shape, v.aval.dtype) for v in group.reads]
    run = jax.jit(function_of(group))
    jax.block_until_ready(run(*arguments))
    took: list[Any] = []
    for _ in range(_RUNS):
        began = time.perf_counter_ns()
        jax.block_until_ready(run(*arguments))
        took.append(time.perf_counter_ns() - began)
    return int(statistics.quantiles(took, n=4)[0])
