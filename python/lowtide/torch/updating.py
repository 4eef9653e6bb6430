"""Updates in the backward, as they run: each parameter as soon as its gradient is there, by the user's own optimizer.

The code of a region's backward calls `apply_update` where its plan has the op `lowtide.update`.  What runs there is the
optimizer's own step, on a copy that knows one parameter and shares its state: so the settings of a group are those of
the moment (schedulers change them), and the optimizer itself is never anything but an ordinary one.

That is the same as a step after the backward only if each parameter gets its gradient from one backward in a step.  What
could break this is looked for before a backward changes anything (`_Updates.begin`), and where the optimizer's step is
called, which finds no gradients and does nothing.
Forwards are numbered.  A forward saves its number for its backward, as the shape of a tensor without elements: it lives
as long as what else was saved, goes through hooks on saved tensors, and takes no bytes.
"""

from __future__ import annotations

import contextlib
import gc
import itertools
import sys
import warnings
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx, nn
from torch._guards import detect_fake_mode
from torch.multiprocessing.reductions import StorageWeakRef

from .errors import LowtideWarning, OverBudgetWarning, UpdateError, size_text
from .storages import bytes_of, storage
from .updates import Rule, Rules

_accumulating: Counter[int] = Counter()  # parameters by id, and in how many blocks of `accumulate` they are
_keys = itertools.count()
_regions: weakref.WeakValueDictionary[int, RegionUpdates] = weakref.WeakValueDictionary()

NO_GRADIENTS = ("update='backward' leaves no gradients behind: torch.nn.utils.clip_grad_norm_ and clip_grad_value_ find "
                "none, return 0 and clip nothing, and code that reads p.grad reads None. Use update='step' to clip")

_updaters: weakref.WeakValueDictionary[int, Updater] = weakref.WeakValueDictionary()  # by their optimizers' ids


@contextlib.contextmanager
def accumulate(model: nn.Module) -> Iterator[None]:
    """Backwards within the block add to `p.grad`, and update nothing, for every parameter of the model.

    For all micro-batches but the last: the first backward outside adds what stands and updates.  It changes nothing for a
    model without updates in its backward.  Raises TypeError for what is no module.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"accumulate takes the torch.nn.Module whose backwards are to add up, not {type(model).__name__}")
    held = [id(p) for p in model.parameters()]
    _accumulating.update(held)
    try:
        yield
    finally:
        _accumulating.subtract(held)
        for key in held:
            if _accumulating[key] <= 0:
                del _accumulating[key]


@dataclass(eq=False)
class _Open:
    """A forward whose backward has not run.  ref: what it has saved for it."""

    number: int
    ref: StorageWeakRef
    parameters: frozenset[int]


class Updater:
    """The updates of one optimizer's parameters, whatever regions they are in."""

    @staticmethod
    def of(optimizer: torch.optim.Optimizer) -> Updater:
        """That of this optimizer; there is one."""
        return _updaters.get(id(optimizer)) or _updaters.setdefault(id(optimizer), Updater(optimizer))

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        step = type(optimizer).step
        self._step = getattr(step, "__wrapped__", step)  # without the profiler's record and the hooks
        self._forwards = 0
        self._open: list[_Open] = []
        self._updated_at: dict[int, int] = {}  # parameter -> forwards begun when it was updated
        self._updated: dict[int, weakref.ref[torch.Tensor]] = {}  # since the optimizer's last step
        self._added: dict[int, int] = {}  # parameter -> storage of the gradient that `accumulate` left
        self._looked = False
        this = weakref.ref(self)

        def stepped(*_: Any) -> None:
            updater = this()
            if updater:
                updater.stepped()

        stepped.lowtide = True  # type: ignore[attr-defined]
        weakref.finalize(self, optimizer.register_step_pre_hook(stepped).remove)
        warnings.warn(f"lowtide: {NO_GRADIENTS}", LowtideWarning, stacklevel=2)

    def groups(self) -> dict[int, dict[str, Any]]:
        """The optimizer's groups by their parameters."""
        return {id(p): group for group in self.optimizer.param_groups for p in group["params"]}

    def rules(self, inputs: list[Any], trained: Iterable[int]) -> Rules:
        """Those of a region's inputs that are updated, named as the lowering names them."""
        known = {}
        for group in self.optimizer.param_groups:
            known |= dict.fromkeys(map(id, group["params"]), Rule.of(self.optimizer, group))
        return Rules({f"input{i}": known[id(inputs[i])] for i in trained if id(inputs[i]) in known})

    def stepped(self) -> None:
        """The user's own step begins."""
        twice = [p for p in (ref() for ref in self._updated.values()) if p is not None and p.grad is not None]
        self._updated.clear()
        if twice:
            raise UpdateError(f"a parameter of shape {list(twice[0].shape)} was updated in the backward, and has got another "
                              "gradient since, from code outside of the compiled model: the step would update it twice. "
                              "Compute what reads parameters within the model, or use update='step'")

    # ---- forwards and backwards

    def open(self, parameters: frozenset[int]) -> torch.Tensor:
        """A forward of a region with these parameters runs now; what it saves for its backward."""
        self._forwards += 1
        token = torch.empty((0, self._forwards), dtype=torch.uint8)
        self._open = [o for o in self._open if not o.ref.expired()]
        self._open.append(_Open(self._forwards, StorageWeakRef(token.untyped_storage()), parameters))
        return token

    def begin(self, number: int, parameters: dict[int, torch.Tensor]) -> bool:
        """The backward of that forward is about to run: raises UpdateError unless its updates are those of an ordinary
        step.  Is it one that only adds up?"""
        self._open = [o for o in self._open if not o.ref.expired()]
        stale = any(self._updated_at.get(key, 0) >= number for key in parameters)
        if stale:
            raise UpdateError("a second backward: parameters were updated in the backward since this forward ran, so its "
                              "gradients would be of other weights, or added to a step that is made. Call backward once "
                              "for each forward, within lowtide.torch.accumulate(model) for all but the last, or use "
                              "update='step'")
        holds = {_accumulating[key] > 0 for key in parameters}
        if len(holds) > 1:
            raise UpdateError("some parameters of this region are within lowtide.torch.accumulate and some are not: give "
                              "it the model that was compiled")
        self._refuse_hooks(parameters)
        self._refuse_inputs(parameters)
        adds = True in holds
        if not adds:
            self._refuse_others(number, parameters)
        self._open = [o for o in self._open if o.number != number]
        return adds

    def _refuse_hooks(self, parameters: dict[int, torch.Tensor]) -> None:
        check_hooks(self.optimizer, parameters.values())

    def _refuse_inputs(self, parameters: dict[int, torch.Tensor]) -> None:
        for p in parameters.values():
            try:
                fills = torch._C._will_engine_execute_node(torch.autograd.graph.get_gradient_edge(p).node)
            except RuntimeError:  # autograd.grad
                fills = False
            if not fills:
                raise UpdateError("torch.autograd.grad, or backward(inputs=...), asks for some gradients, and with "
                                  "update='backward' parameters are updated with theirs and hand none back: use loss.backward(), or update='step'")

    def _refuse_others(self, number: int, parameters: dict[int, torch.Tensor]) -> None:
        if any(o.number != number and not o.parameters.isdisjoint(parameters) for o in self._open):
            raise UpdateError("another forward with the same parameters waits for its backward, and would find them "
                              "updated: a parameter that two regions or two calls of a step use. Run each backward before "
                              "the next forward, within lowtide.torch.accumulate(model) for all but the last, and forwards without a backward "
                              "under torch.no_grad(); or use update='step'")
        for key, p in parameters.items():
            if key in self._updated:
                raise UpdateError("a second backward before optimizer.step(): its parameters are updated already. Call "
                                  "optimizer.step() after each step as ever, or, for micro-batches, run all backwards but "
                                  "the last within lowtide.torch.accumulate(model)")
            if p.grad is not None and self._added.get(key) != storage(p.grad):
                raise UpdateError(f"a parameter of shape {list(p.shape)} has a gradient from elsewhere, which its update in "
                                  "the backward would not know what to do with: set gradients to None first "
                                  "(optimizer.zero_grad()), and accumulate within lowtide.torch.accumulate(model)")

    def refuse_scaled(self, tangents: list[Any]) -> None:
        """At the first backward: is what comes from behind the region a loss scaled by a GradScaler?"""
        if self._looked:
            return
        self._looked = True
        scalars = [float(t) for t in tangents if isinstance(t, torch.Tensor) and t.numel() == 1]
        scales = {s.get_scale() for s in gc.get_objects() if issubclass(type(s), torch.amp.GradScaler)
                  and s.is_enabled() and s._scale is not None} if any(x != 1 for x in scalars) else ()
        if any(x in scales for x in scalars):
            self._looked = False
            raise UpdateError("the loss is scaled by a GradScaler, and gradients are unscaled, and looked at for infinities, "
                              "only when all are there: after updates in the backward. Use bf16, which needs no scaler, or update='step'")

    def update(self, p: torch.Tensor, gradient: torch.Tensor, owned: bool, adds: bool) -> None:
        """`p` by its gradient; adds: put that to what stands instead.  owned: may it be kept?"""
        if p.grad is not None:
            p.grad.add_(gradient)  # as the engine does
        elif adds:
            p.grad = gradient if owned else gradient.clone(memory_format=torch.preserve_format)
        if adds:
            self._added[id(p)] = storage(p.grad)
            return
        self._added.pop(id(p), None)
        group = self.groups()[id(p)]
        one = {**group, "params": [p]}
        alone = object.__new__(type(self.optimizer))
        alone.__dict__.update(self.optimizer.__dict__)
        alone.param_groups = [one]
        self._updated_at[id(p)] = self._forwards
        self._updated[id(p)] = weakref.ref(p)
        try:
            if p.grad is None:
                p.grad = gradient
            self._step(alone)
        finally:
            p.grad = None
        group.update({key: value for key, value in one.items() if key != "params"})


def check_hooks(optimizer: torch.optim.Optimizer, parameters: Iterable[torch.Tensor]) -> None:
    """Raises UpdateError for hooks that updates in the backward would pass by, or run once for each parameter."""
    module = sys.modules[torch.optim.Optimizer.__module__]
    every = (module._global_optimizer_pre_hooks, module._global_optimizer_post_hooks)
    hooks = [*optimizer._optimizer_step_pre_hooks.values(), *optimizer._optimizer_step_post_hooks.values(),
             *(hook for some in every for hook in some.values())]
    if any(not getattr(hook, "lowtide", False) for hook in hooks):
        raise UpdateError("update: the optimizer has hooks on its step, which find no gradients and parameters that are "
                          "updated already; remove them, or use update='step'")
    for p in parameters:
        if p._backward_hooks or getattr(p, "_post_accumulate_grad_hooks", None):
            raise UpdateError(f"update: a parameter of shape {list(p.shape)} has hooks on its gradient, which an update "
                              "within the backward would pass by; remove them, or use update='step'")


@dataclass(eq=False)
class RegionUpdates:
    """The updates of one region.  key: what the region's code knows it by.  slots: its parameters by the place of the
    input, as of the latest plan."""

    updater: Updater
    key: int = field(default_factory=lambda: next(_keys))
    slots: dict[int, torch.Tensor] = field(default_factory=dict)
    peak: int = 0
    budget: int = 0
    _adds: bool = False
    _warned: bool = False

    def __post_init__(self) -> None:
        _regions[self.key] = self

    def check(self, args: tuple[Any, ...]) -> None:
        """Raises UpdateError unless the region is given the parameters that it was compiled for."""
        if torch.is_grad_enabled() and any(args[i] is not p for i, p in self.slots.items()):
            raise UpdateError("update='backward': a region is called with other parameters than it was compiled for, such as one "
                              "block's code for another block: compile the whole model, or use update='step'")

    def begin(self, number: int) -> None:
        parameters = {id(p): p for p in self.slots.values()}
        self._adds = self.updater.begin(number, parameters)
        if not self._adds or self._warned:
            return
        size = sum(bytes_of(p) for p in parameters.values())
        if self.peak + size > self.budget:
            self._warned = True
            warnings.warn(f"lowtide: the budget is not kept: within lowtide.torch.accumulate gradients of {size_text(size)} "
                          f"({size} bytes) stand beside this region, whose plan updates each as it comes: the step can take "
                          f"{size_text(self.peak + size)} of {size_text(self.budget)}; reserve={size} counts them",
                          OverBudgetWarning, stacklevel=2)

    def update(self, slot: int, gradient: torch.Tensor, owned: bool) -> None:
        self.updater.update(self.slots[slot], gradient, owned, self._adds)


# ---- what the code of a region calls; keys and slots are numbers in it

def open_forward(key: int) -> torch.Tensor:
    """The token that the region's forward saves."""
    region = _regions[key]
    return region.updater.open(frozenset(map(id, region.slots.values())))


@fx.node.has_side_effect
def begin_backward(key: int, token: torch.Tensor) -> None:
    _regions[key].begin(int(token.shape[1]))


@fx.node.has_side_effect
def apply_update(key: int, slot: int, gradient: torch.Tensor, owned: bool) -> None:
    _regions[key].update(slot, gradient, owned)


def fake_token(inputs: list[fx.Node]) -> torch.Tensor:
    """What a graph with these inputs knows of a token."""
    with detect_fake_mode([n.meta.get("val") for n in inputs]):
        return torch.empty((0, 1), dtype=torch.uint8)

