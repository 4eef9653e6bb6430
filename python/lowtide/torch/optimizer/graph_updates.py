"""The updates of one graph, and the functions that its generated code calls for them."""

from __future__ import annotations

import itertools
import warnings
import weakref
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from ...frontend.errors import OverBudgetWarning, size_text
from ..compat.distributed import running_ddp
from ..compat.fake import detect_fake_mode
from ..device.stream_order import wait_when_backward_ends
from ..step_errors import UpdateError
from ..tensors.storages import bytes_of, device_among
from .accumulating import accumulates, any_accumulates
from .assigned import Assigned
from .backwards import watch_backwards
from .batch import Batch
from .host_states import HostStates
from .rules import Rule, Rules
from .updater import STEP_INSTEAD, Updater, check_hooks, new_token

_keys = itertools.count()
_captured_graphs: weakref.WeakValueDictionary[int, GraphUpdates] = weakref.WeakValueDictionary()


@dataclass(eq=False)
class GraphUpdates:
    """The updates of one graph.

    updaters: those of the optimizers, each of which has parameters of its own.  key: what the graph's code knows it by.
    slots: its parameters by the place of the input, as of the latest plan, with its `peak` and `budget`.  homes: what of
    their state has its home on the host, by slot and name; states: what moves that, by optimizer.  state_sizes: the bytes of each
    piece of state on the device, by slot, until memory is held for what the first step makes.  looked: has backwards.py seen the backward that is to run?
    """

    updaters: tuple[Updater, ...]
    key: int = field(default_factory=lambda: next(_keys))
    slots: dict[int, torch.Tensor] = field(default_factory=dict)
    homes: list[tuple[int, str]] = field(default_factory=list)
    states: dict[Updater, HostStates] = field(default_factory=dict)
    state_sizes: dict[int, list[int]] = field(default_factory=dict)
    peak: int = 0
    budget: int = 0
    looked: bool = False
    _assigned: Assigned | None = None
    _warned: bool = False

    def __post_init__(self) -> None:
        _captured_graphs[self.key] = self
        watch_backwards()

    def rules(self, inputs: list[Any], trained: Iterable[int], home: str) -> Rules:
        """The rules of a graph's updated inputs, by the lowering's names.  home: of their state."""
        known: dict[int, Rule] = {}
        for updater in self.updaters:
            for group in updater.optimizer.param_groups:
                known |= dict.fromkeys(map(id, group["params"]), Rule.of(updater.optimizer, group))
        return Rules({f"input{i}": known[id(inputs[i])] for i in trained if id(inputs[i]) in known}, home)

    def by_updater(self) -> list[tuple[Updater, Batch]]:
        """The parameters of the latest plan by what updates them.  Raises UpdateError for one that nothing does."""
        assigned = self._assigned_now()
        assigned.check()
        return assigned.found

    def _assigned_now(self) -> Assigned:
        if self._assigned is None or not self._assigned.is_of(self.slots, self.updaters):
            self._assigned = Assigned(self.slots, self.updaters)
        return self._assigned

    def read_on_host(self) -> Any:
        """What updates read beside tensors on the device: settings of groups, and the state, in a form that can be compared.  A setting in
        a tensor on the host is read there, as a number is."""
        device = device_among(self.slots.values())

        def of(value: Any) -> Any:
            if not isinstance(value, torch.Tensor):
                return value
            return _Same(value) if value.device.type == device.type else (_Same(value), value.tolist())

        return [(_Same(updater.optimizer.state), [[(key, of(value)) for key, value in group.items() if key != "params"]
                                                  for group in updater.optimizer.param_groups]) for updater in self.updaters]

    def check(self, args: tuple[Any, ...], whole: bool) -> None:
        """whole: is the call a whole step?  Raises UpdateError unless the graph is given the parameters that it was
        compiled for, as the step before has left them, and no ranks share them."""
        for updater in self.updaters:
            updater.check_forward(args)
        if not self.slots or not torch.is_grad_enabled():
            return
        if any(args[i] is not p for i, p in self.slots.items()):
            raise UpdateError("update='backward': a graph is called with other parameters than it was compiled for, such as "
                              f"one block's code for another block: compile the whole model, {STEP_INSTEAD}")
        if running_ddp() is not None:
            raise UpdateError("update='backward' within DistributedDataParallel: gradients are averaged over the ranks when "
                              "the backward has made them, and updates would come before; use update='step', or lowtide.torch.step")
        if whole:
            self._begin_step()
        if self.state_sizes:
            sizes, self.state_sizes = self.state_sizes, {}
            for updater, batch in self.by_updater():
                updater.places.hold((p, sizes[slot]) for slot, p in self.slots.items() if slot in sizes and id(p) in batch.refs)

    def begin(self, number: int) -> None:
        """The backward of that forward begins."""
        if not self.looked:
            raise UpdateError("update='backward': something other than torch.autograd has begun a backward, so nothing says "
                              "that its updates are those of a step; use update='step'")
        self.looked = False
        for updater, batch in self.by_updater():
            updater.begin(number, batch.refs)
        wait_when_backward_ends(device_among(self.slots.values()))
        if self._warned or not any_accumulates() or not any(map(accumulates, self.slots.values())):
            return
        size = sum(bytes_of(p) for p in self.slots.values())
        if self.peak + size > self.budget:
            self._warned = True
            warnings.warn(f"lowtide: the budget is not kept: within lowtide.torch.accumulate gradients of {size_text(size)} "
                          f"({size} bytes) exist beside this graph, whose plan counts none of them: the step can take "
                          f"{size_text(self.peak + size)} of {size_text(self.budget)}; reserve={size} counts them",
                          OverBudgetWarning, stacklevel=2)

    def _begin_step(self) -> None:
        by_updater = self.by_updater()
        for updater, batch in by_updater:
            check_hooks(updater.optimizer, batch.parameters)
            updater.check_gradients(batch.parameters)
        if any(p.grad is not None or accumulates(p) for p in self.slots.values()):
            raise UpdateError("step makes its own gradients, and some exist already: set them to None first "
                              "(optimizer.zero_grad()); what is to add up over microbatches needs "
                              "lowtide.torch.optimize")
        names = [(self.slots[slot], name) for slot, name in self.homes]
        for updater, batch in by_updater if names else ():
            states = self.states.get(updater) or self.states.setdefault(updater, HostStates(updater.optimizer))
            states.go_home((p, name) for p, name in names if id(p) in batch.refs)

    def update(self, slots: tuple[int, ...], gradients: Sequence[torch.Tensor], owned: Sequence[bool]) -> None:
        """The parameters at these places.  owned: may their gradients be kept?"""
        assert self._assigned is not None, "by the check of this step"
        for updater, places, batch in self._assigned.calls(slots):
            if updater in self.states:
                for p in batch.parameters:
                    self.states[updater].arrive(p)
            if len(places) == len(slots):
                updater.update(batch, gradients, owned)
            else:
                updater.update(batch, [gradients[place] for place in places], [owned[place] for place in places])

    def open(self) -> torch.Tensor:
        """A forward begins; what it saves for its backward."""
        number, token = new_token()
        for updater, batch in self._assigned_now().found:
            updater.open(number, token, batch.refs)
        return token

    def move(self, way: str, slot: int, name: str) -> None:
        assert self._assigned is not None, "by the check of this step"
        p = self.slots[slot]
        getattr(self.states[self._assigned.updater_of[id(p)]], way)(p, name)


@dataclass(frozen=True)
class _Same:
    """An object that equals itself alone."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


# ---- what the code of a graph calls; keys and slots are numbers in it

def open_forward(key: int) -> torch.Tensor:
    """The token that the graph's forward saves."""
    return _captured_graphs[key].open()


@fx.node.has_side_effect
def begin_backward(key: int, token: torch.Tensor) -> None:
    """The graph's backward begins."""
    _captured_graphs[key].begin(int(token.shape[1]))


@fx.node.has_side_effect
def apply_updates(key: int, slots: tuple[int, ...], gradients: Sequence[torch.Tensor], owned: Sequence[bool]) -> None:
    """The parameters at these places have their gradients."""
    _captured_graphs[key].update(slots, gradients, owned)


@fx.node.has_side_effect
def move_state(key: int, way: str, slot: int, name: str) -> None:
    """Moves the tensor `name` of the state at `slot`; way: `fetch`, `leave` or `gone` (transfers.py)."""
    _captured_graphs[key].move(way, slot, name)


def fake_token(inputs: list[fx.Node]) -> torch.Tensor:
    """The fake token of a graph with these inputs."""
    mode = detect_fake_mode([n.meta.get("val") for n in inputs])
    assert mode is not None, "inputs of a graph that was traced are fake"
    with mode:
        return torch.empty((0, 1), dtype=torch.uint8)
