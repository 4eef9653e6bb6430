"""Which modules under DistributedDataParallel there are, so that a step that was planned without one finds the one around its model."""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Iterable

import torch
from torch.nn.modules.module import register_module_module_registration_hook
from torch.nn.parallel import DistributedDataParallel

from ..compat.distributed import parameters_of

_known: weakref.WeakSet[DistributedDataParallel] = weakref.WeakSet()


@functools.cache
def watch_wrappers() -> None:
    """From now on all modules under DistributedDataParallel are known: those that exist, and each that is made later, which registers
    the module within it."""
    _known.update(found for found in gc.get_objects() if issubclass(type(found), DistributedDataParallel))
    register_module_module_registration_hook(_note)


def _note(module: torch.nn.Module, name: str, part: torch.nn.Module | None) -> None:
    if isinstance(module, DistributedDataParallel):
        _known.add(module)


def reduced_elsewhere(parameters: Iterable[torch.Tensor]) -> bool:
    """Would a backward through DistributedDataParallel reduce gradients of some of these over several ranks?"""
    if not _known:
        return False
    own = set(map(id, parameters))
    return any(ddp.process_group.size() > 1 and not own.isdisjoint(map(id, parameters_of(ddp))) for ddp in list(_known))
