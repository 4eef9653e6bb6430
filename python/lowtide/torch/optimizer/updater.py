"""One optimizer's updates of some parameters at a time, and the conditions under which they equal its step."""

from __future__ import annotations

import contextlib
import itertools
import sys
import weakref
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from ..compat.cuda import is_inside_pool, outside_of_pools
from ..compat.optimizers import never_asks_for_capturable
from ..step_errors import UpdateError
from ..tensors.storages import is_dense
from ..tensors.used_gradient import UsedGradient
from .accumulating import accumulates, any_accumulates
from .batch import Batch, InGroup
from .state_places import StatePlaces

_updaters: weakref.WeakValueDictionary[int, Updater] = weakref.WeakValueDictionary()  # by their optimizers' ids
_forwards = itertools.count(1)  # numbers of all forwards, whichever optimizers they wait for

STEP_INSTEAD = "or use update='step'"


@dataclass(eq=False)
class _Open:
    """A forward whose backward has not run.  ref: what it has saved for it."""

    number: int
    ref: StorageWeakRef
    parameters: Container[int]


class Updater:
    """The updates of one optimizer's parameters, whatever graphs they are in.

    Forwards are numbered.  A forward saves its number for its backward, as the shape of a tensor without elements, its
    token: it lives as long as what else was saved, goes through hooks on saved tensors, and takes no bytes.
    """

    @staticmethod
    def of(optimizer: torch.optim.Optimizer) -> Updater:
        """The only updater of this optimizer."""
        return _updaters.get(id(optimizer)) or _updaters.setdefault(id(optimizer), Updater(optimizer))

    @staticmethod
    def are_any() -> bool:
        """Is there one?"""
        return bool(_updaters)

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.places = StatePlaces(optimizer)
        self._listed: list[list[int]] = []  # ids of the groups and of their parameters
        self._groups: dict[int, dict[str, Any]] = {}
        self._latest = 0  # forward of these parameters
        self._open: list[_Open] = []
        self._updated_at: dict[int, int] = {}  # parameter -> the latest forward when it was updated
        self._updated: dict[int, weakref.ref[torch.Tensor]] = {}  # since the optimizer's last step
        self._used: dict[int, dict[str, Any]] = {}  # group -> its settings, by which parameters were updated since then
        self._used_gradients: dict[int, UsedGradient] = {}  # by the parameters' ids
        self._aside: list[tuple[torch.Tensor, UsedGradient]] = []  # while the optimizer steps
        this = weakref.ref(self)

        def stepping(_: Any, args: Any, kwargs: Any) -> Any:
            updater = this()
            return updater and updater._stepping(args, kwargs)

        def stepped(*_: Any) -> None:
            updater = this()
            if updater:
                updater._stepped()

        hooks = (optimizer.register_step_pre_hook(_own(stepping)), optimizer.register_step_post_hook(_own(stepped)))
        for hook in hooks:
            weakref.finalize(self, hook.remove)

    def groups(self) -> dict[int, dict[str, Any]]:
        """The optimizer's groups by their parameters' ids; the same dict as long as they stay the same."""
        now = [[id(group), *map(id, group["params"])] for group in self.optimizer.param_groups]
        if now != self._listed:
            self._listed, self._groups = now, {id(p): group for group in self.optimizer.param_groups for p in group["params"]}
        return self._groups

    # ---- the user's own step, which has nothing to do for what is updated

    def _stepping(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any] | None:
        self._aside.clear()
        self._put_aside()
        closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        if not callable(closure):
            return None

        def closed() -> Any:
            result = closure()
            self._put_aside()
            return result

        return (args[:1], kwargs | {"closure": closed})

    def _put_aside(self) -> None:
        """Take away used gradients, for which there is nothing to do.  Raises UpdateError for what would be a second
        update."""
        updated: list[tuple[torch.Tensor, UsedGradient]] = []
        for p in (ref() for ref in self._updated.values()):
            gradient = None if p is None else p.grad
            if p is None or gradient is None:
                continue
            if not isinstance(gradient, UsedGradient):
                raise UpdateError(f"a parameter of shape {list(p.shape)} was updated in the backward, and somebody has given "
                                  "it another gradient since: the step would update it twice. Leave p.grad alone, "
                                  + STEP_INSTEAD)
            updated.append((p, gradient))
        if any(self._used.get(id(group), now) != now for group in self.optimizer.param_groups for now in [_settings(group)]):
            raise UpdateError("the settings of one of the optimizer's groups, such as lr, have changed between the backward "
                              "and optimizer.step(), and parameters were updated by those of before: set them before the "
                              f"backward, {STEP_INSTEAD}")
        self._used.clear()
        self._updated.clear()
        for p, _ in updated:
            p.grad = None
        self._aside += updated

    def _stepped(self) -> None:
        for p, gradient in self._aside:
            gradient.stepped = True
            if p.grad is None:
                p.grad = gradient
        self._aside.clear()

    # ---- forwards and backwards

    def check_forward(self, values: Iterable[Any]) -> None:
        """Raises UpdateError if a parameter among these values is updated, and the optimizer has not stepped."""
        if self._updated and any(id(value) in self._updated for value in values):
            raise UpdateError("a forward before optimizer.step(): the backward has updated parameters already, which an "
                              "ordinary one would leave to the step. Call optimizer.step() right after the backward, or, for "
                              "microbatches, run all backwards but the last within lowtide.torch.accumulate(model)")

    def open(self, number: int, token: torch.Tensor, parameters: Container[int]) -> None:
        """A forward of that number runs now, in a graph with parameters of these ids."""
        self._latest = number
        self._open.append(_Open(number, StorageWeakRef(token.untyped_storage()), parameters))

    def any_waits_twice(self, parameters: Iterable[torch.Tensor]) -> bool:
        """Do several forwards with one of these parameters wait for their backward?"""
        self._open = [o for o in self._open if not o.ref.expired()]
        return len(self._open) > 1 and any(sum(id(p) in o.parameters for o in self._open) > 1 for p in parameters)

    def check_gradients(self, parameters: Iterable[torch.Tensor]) -> None:
        """Raises UpdateError unless these may get gradients now."""
        for p in parameters:
            if id(p) in self._updated:
                raise UpdateError(f"a second backward before optimizer.step(): {_shape_of(p)} is updated already. Call "
                                  "optimizer.step() after each step as ever, or, for microbatches, run all backwards but "
                                  "the last within lowtide.torch.accumulate(model)")
            gradient = p.grad
            if gradient is None:
                continue
            if isinstance(gradient, UsedGradient):
                if not gradient.zeroed:
                    raise UpdateError(f"the gradient of {_shape_of(p)} was used by its update in an earlier step and has not been set "
                                      "to None or zero since, so an ordinary step would add to it: call optimizer.zero_grad() "
                                      f"once a step, {STEP_INSTEAD}")
            elif not is_dense(gradient):
                raise UpdateError(f"{_shape_of(p)} has a gradient of layout {gradient.layout}, and a plan knows dense tensors alone: "
                                  f"set it to None first, {STEP_INSTEAD}")

    def begin(self, number: int, parameters: Iterable[int]) -> None:
        """The backward of that forward is about to run.  parameters: their ids.  Raises UpdateError if they were updated since."""
        self._open = [o for o in self._open if o.number != number]
        if any(self._updated_at.get(p, 0) >= number for p in parameters):
            raise UpdateError("a second backward: parameters were updated in the backward since this forward ran, so its "
                              "gradients would be of other weights. Call backward once for each forward, within "
                              f"lowtide.torch.accumulate(model) for all but the last, {STEP_INSTEAD}")

    def update(self, batch: Batch, gradients: Sequence[torch.Tensor], owned: Sequence[bool]) -> None:
        """Parameters by their gradients in one step, or, within `accumulate`, put these to what stands.  owned: may the gradients
        be kept?"""
        adding = {id(p) for p in batch.parameters if accumulates(p)} if any_accumulates() else ()
        for p, gradient, is_owned in zip(batch.parameters, gradients, owned):
            standing = p.grad
            if standing is not None and not isinstance(standing, UsedGradient):  # which was set to zero
                standing.add_(gradient)  # as the engine does
            elif is_owned or not adding:
                p.grad = gradient
            else:
                p.grad = gradient.clone(memory_format=torch.preserve_format)
        if adding:
            batch = Batch.of((group, p) for group, some in batch.groups for p in some if id(p) not in adding)
        self._updated_at.update(dict.fromkeys(batch.refs, self._latest))
        self._updated.update(batch.refs)
        try:
            with self.places.used_for(batch.parameters):
                step_of_some(self.optimizer, batch.groups)
        finally:
            self._use_gradients(batch.parameters)
        for group, _ in batch.groups:
            if id(group) not in self._used:
                self._used[id(group)] = _settings(group)

    def _use_gradients(self, parameters: Iterable[torch.Tensor]) -> None:
        """Put a UsedGradient in the place of each gradient, from step to step the same."""
        known = self._used_gradients
        for p in parameters:
            try:
                gradient = known[id(p)]
                gradient.stepped = gradient.zeroed = False
                p.grad = gradient
            except (KeyError, RuntimeError):  # the parameter is new, or has become of another shape, type or device
                p.grad = known[id(p)] = UsedGradient(p.shape, p.dtype, p.device)


def step_of_some(optimizer: torch.optim.Optimizer, groups: Iterable[InGroup]) -> None:
    """The optimizer's step for parameters of its groups, by their gradients, without the optimizer's hooks."""
    of_step = [(group, {**group, "params": parameters}) for group, parameters in groups]
    if not of_step:
        return
    kind = type(optimizer)
    stands_for = object.__new__(kind)
    stands_for.__dict__.update(optimizer.__dict__)
    never_asks_for_capturable(stands_for)
    stands_for.param_groups = [copy for _, copy in of_step]
    with outside_of_pools() if is_inside_pool() and not _have_state(optimizer, of_step) else contextlib.nullcontext():
        getattr(kind.step, "__wrapped__", kind.step)(stands_for)  # without the profiler's record and the hooks
    for group, copy in of_step:
        del copy["params"]
        group.update(copy)


def _have_state(optimizer: torch.optim.Optimizer, groups: Iterable[tuple[dict[str, Any], dict[str, Any]]]) -> bool:
    """Has every parameter its state?  What a step makes of it stays."""
    return all(p in optimizer.state for _, group in groups for p in group["params"])


def _shape_of(p: torch.Tensor) -> str:
    return f"a parameter of shape {list(p.shape)}"


def new_token() -> tuple[int, torch.Tensor]:
    """The number of a forward that begins, and what it saves."""
    number = next(_forwards)
    return number, torch.empty((0, number), dtype=torch.uint8)


def _settings(group: dict[str, Any]) -> dict[str, Any]:
    """A group's settings, in a form that is compared without reading tensors."""
    return {key: (id(value), value._version) if isinstance(value, torch.Tensor) else value for key, value in group.items()
            if key != "params"}


def _own(hook: Callable[..., Any]) -> Callable[..., Any]:
    hook.lowtide = True  # type: ignore[attr-defined]
    return hook


def check_hooks(optimizer: torch.optim.Optimizer, parameters: Iterable[torch.Tensor]) -> None:
    """Raises UpdateError for hooks that updates in the backward would pass by, or run once for each parameter."""
    module = sys.modules[torch.optim.Optimizer.__module__]
    every = (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks)
    hooks = [*optimizer._optimizer_step_pre_hooks.values(), *optimizer._optimizer_step_post_hooks.values(),
             *(hook for some in every for hook in some.values())]
    if any(not getattr(hook, "lowtide", False) for hook in hooks):
        raise UpdateError("update: the optimizer has hooks on its step, which would find no gradients and parameters that "
                          f"are updated already; remove them, {STEP_INSTEAD}")
    for p in parameters:
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            raise UpdateError(f"update: a parameter of shape {list(p.shape)} has hooks on its gradient, which an update "
                              f"within the backward would pass by; remove them, {STEP_INSTEAD}")
