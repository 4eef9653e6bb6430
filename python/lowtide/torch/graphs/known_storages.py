"""The storages that were arguments of a model's graphs, while they live, and the gradients of the leaves among them."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..tensors.storages import Sizes, bytes_of, gradients_by_leaf, is_dense, is_trained, storage
from ..tensors.wrapped import unwrapped


@dataclass(eq=False)
class KnownStorage:
    """One of them."""

    ref: StorageWeakRef
    size: int
    stays: bool  # a parameter or a buffer
    made: bool  # by code that autograd has seen


class KnownStorages:
    """All of them, by the storage."""

    def __init__(self) -> None:
        self._known: dict[int, KnownStorage] = {}
        self._leaf_refs: dict[int, weakref.ref[torch.Tensor]] = {}  # the parameters and inputs with gradients, by the storage
        self._left_out: dict[int, StorageWeakRef] = {}

    def add(self, tensors: Iterable[Any], staying: Iterable[Any]) -> bool:
        """These tensors are there; those in `staying` for as long as the model is.  Is one of them new that stays?"""
        stay = {id(t) for t in staying}
        is_new = False
        for t in tensors:
            if not is_dense(t) or storage(t) in self._left_out:
                continue
            known = self._known.get(storage(t))
            if known is None or known.ref.expired():
                stays = isinstance(t, torch.nn.Parameter) or id(t) in stay
                self._forget(storage(t))
                self._known[storage(t)] = KnownStorage(StorageWeakRef(unwrapped(t).untyped_storage()), bytes_of(t), stays,
                                                       t.grad_fn is not None)
                if is_trained(t):
                    self._leaf_refs[storage(t)] = weakref.ref(t)
                is_new = is_new or stays
        return is_new

    def leave_out(self, held: Iterable[torch.UntypedStorage]) -> None:
        """These are counted elsewhere: whole parameters of FSDP2, whose bytes come and go."""
        self._left_out |= {s._cdata: StorageWeakRef(s) for s in held}
        for key in self._left_out.keys() & self._known.keys():
            self._forget(key)

    def alive(self) -> dict[int, KnownStorage]:
        """The storages that still exist."""
        for key in [key for key, s in list(self._known.items()) if s.ref.expired()]:
            self._forget(key)
        return dict(self._known)

    def _forget(self, key: int) -> None:
        self._known.pop(key, None)
        self._leaf_refs.pop(key, None)

    def staying(self, given: bool) -> Sizes:
        """Parameters and buffers; given: also inputs from the user that still exist."""
        return {key: s.size for key, s in self.alive().items() if s.stays or given and not s.made}

    def gradients(self) -> Sizes:
        """Gradients that are there, by leaf.  Each step calls this, so leaves without a gradient are passed over first."""
        return gradients_by_leaf(leaf for leaf in self._leaves() if leaf.grad is not None)

    def present(self) -> list[torch.Tensor]:
        """Leaves that are there, and their gradients."""
        return [t for leaf in self._leaves() for t in (leaf, leaf.grad) if t is not None]

    def _leaves(self) -> list[torch.Tensor]:
        return [leaf for ref in list(self._leaf_refs.values()) if (leaf := ref()) is not None and leaf.is_leaf]
