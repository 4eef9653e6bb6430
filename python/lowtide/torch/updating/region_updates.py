"""The updates of one region, and what the code of its forward and backward calls for them."""

from __future__ import annotations

import itertools
import warnings
import weakref
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._guards import detect_fake_mode
from torch.nn.parallel import DistributedDataParallel

from ..errors import OverBudgetWarning, UpdateError, size_text
from ..storages import bytes_of
from .accumulating import accumulates
from .backwards import watch_backwards
from .host_states import HostStates
from .updater import STEP_INSTEAD, Updater, check_hooks

_keys = itertools.count()
_regions: weakref.WeakValueDictionary[int, RegionUpdates] = weakref.WeakValueDictionary()


@dataclass(eq=False)
class RegionUpdates:
    """The updates of one region.  key: what the region's code knows it by.  slots: its parameters by the place of the
    input, as of the latest plan, with its `peak` and `budget`.  homes: what of their state has its home on the host, by
    slot and name; states: what moves that.  looked: has backwards.py seen the backward that is to run?"""

    updater: Updater
    key: int = field(default_factory=lambda: next(_keys))
    slots: dict[int, torch.Tensor] = field(default_factory=dict)
    homes: list[tuple[int, str]] = field(default_factory=list)
    states: HostStates | None = None
    peak: int = 0
    budget: int = 0
    looked: bool = False
    _groups: dict[int, dict[str, Any]] = field(default_factory=dict)
    _adds: bool = False
    _warned: bool = False

    def __post_init__(self) -> None:
        _regions[self.key] = self
        watch_backwards()

    def check(self, args: tuple[Any, ...], whole: bool) -> None:
        """whole: is the call a whole step?  Raises UpdateError unless the region is given the parameters that it was compiled for, as the step before has
        left them, and no ranks share them."""
        self.updater.check_forward(args)
        if not self.slots or not torch.is_grad_enabled():
            return
        if any(args[i] is not p for i, p in self.slots.items()):
            raise UpdateError("update='backward': a region is called with other parameters than it was compiled for, such as "
                              f"one block's code for another block: compile the whole model, {STEP_INSTEAD}")
        if DistributedDataParallel._get_active_ddp_module() is not None:
            raise UpdateError("update='backward' within DistributedDataParallel: gradients are averaged over the ranks when "
                              "the backward has made them, and updates would come before; use update='step'")
        if whole:
            self._begin_step()

    def begin(self, number: int) -> None:
        """The backward of that forward begins."""
        if not self.looked:
            raise UpdateError("update='backward': something other than torch.autograd has begun a backward, so nothing says "
                              "that its updates are those of a step; use update='step'")
        self.looked = False
        self._adds = self.updater.begin(number, self.slots.values())
        self._groups = self.updater.groups()
        if not self._adds or self._warned:
            return
        size = sum(bytes_of(p) for p in self.slots.values())
        if self.peak + size > self.budget:
            self._warned = True
            warnings.warn(f"lowtide: the budget is not kept: within lowtide.torch.accumulate gradients of {size_text(size)} "
                          f"({size} bytes) stand beside this region, whose plan updates each as it comes: the step can take "
                          f"{size_text(self.peak + size)} of {size_text(self.budget)}; reserve={size} counts them",
                          OverBudgetWarning, stacklevel=2)

    def _begin_step(self) -> None:
        parameters = list(self.slots.values())
        check_hooks(self.updater.optimizer, parameters)
        self.updater.check_gradients(parameters)
        if any(p.grad is not None for p in parameters) or any(map(accumulates, parameters)):
            raise UpdateError("step makes its own gradients, and some stand already: set them to None first "
                              "(optimizer.zero_grad()); what is to add up over micro-batches needs "
                              "lowtide.torch.optimize")
        self._adds, self._groups = False, self.updater.groups()
        if self.homes:
            self.states = self.states or HostStates(self.updater.optimizer)
            self.states.go_home((self.slots[slot], name) for slot, name in self.homes)

    def update(self, slot: int, gradient: torch.Tensor, owned: bool) -> None:
        p = self.slots[slot]
        if self.states:
            self.states.arrive(p)
        self.updater.update(p, self._groups[id(p)], gradient, owned, self._adds)


# ---- what the code of a region calls; keys and slots are numbers in it

def open_forward(key: int) -> torch.Tensor:
    """The token that the region's forward saves."""
    region = _regions[key]
    return region.updater.open(frozenset(map(id, region.slots.values())))


@fx.node.has_side_effect
def begin_backward(key: int, token: torch.Tensor) -> None:
    """The region's backward begins."""
    _regions[key].begin(int(token.shape[1]))


@fx.node.has_side_effect
def apply_update(key: int, slot: int, gradient: torch.Tensor, owned: bool) -> None:
    """The parameter at that place has its gradient."""
    _regions[key].update(slot, gradient, owned)


@fx.node.has_side_effect
def move_state(key: int, way: str, slot: int, name: str) -> None:
    """That tensor of the state of the parameter at that place: `fetch`, `leave` or `gone` (transfers.py)."""
    region = _regions[key]
    getattr(region.states, way)(region.slots[slot], name)


def fake_token(inputs: list[fx.Node]) -> torch.Tensor:
    """What a graph with these inputs knows of a token."""
    with detect_fake_mode([n.meta.get("val") for n in inputs]):
        return torch.empty((0, 1), dtype=torch.uint8)
