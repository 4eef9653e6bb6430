"""`step`: forward, backward and the optimizer's step as one planned call; for a model that ranks share see shared_step.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...frontend.planning.report import Report, reports
from ..graphs.group import Group
from ..optimizer.after_backward import UpdatesAfterBackward
from ..optimizer.given import Optimizers, StateHome
from ..ranks.shared import refuse_shared
from ..ranks.together import planning, process_group_of
from ..ranks.wrappers import reduced_elsewhere, watch_wrappers
from ..settings import Settings, StepOptions
from ..step_errors import UpdateError
from ..tracing.fake_step import LossFunction, loss_and_others
from .entry import compiled_within
from .shared_step import SharedStep, is_shared
from .with_loss import WithLoss, detached

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ..ranks.together import Ranks


class Step:
    """A training step: a call runs forward, backward and updates, and returns the detached loss.

    If the loss function returns a tuple, the call returns the loss and the other entries, detached.  Gradients are None before and
    after.  The optimizers are the user's own: their state and groups are as after their own steps.
    """

    def __init__(self, module: nn.Module, run: Callable[..., Any], optimizers: Sequence[torch.optim.Optimizer],
                 report: Report, updates: UpdatesAfterBackward | None = None) -> None:
        """updates: those that come after the backward, where they are not part of the plan."""
        self._module, self._run, self._optimizers, self._updates = module, run, optimizers, updates
        self.report = report

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            raise RuntimeError("a training step under torch.no_grad() would train nothing: call it outside, or the model itself")
        if self._updates is None:
            self._check_alone()
            loss, *others = map(detached, self._run(*inputs, **named))
        else:
            loss, *others = self._then_updated(self._updates, *inputs, **named)
        for optimizer in self._optimizers:
            optimizer.step()  # which has nothing left to do, and tells schedulers that there was a step
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        return (loss, *others) if others else loss

    def _check_alone(self) -> None:
        """Raises UpdateError if ranks have come to share the model since it was planned."""
        if reduced_elsewhere(self._module.parameters()):
            raise UpdateError("step would update each rank by gradients of its own: the model is within DistributedDataParallel, and the step was "
                              "planned for the module without it; give step the wrapped module, lowtide.torch.step(wrapped, ...)")

    def _then_updated(self, updates: UpdatesAfterBackward, *inputs: Any, **named: Any) -> list[Any]:
        updates.check()
        results = loss_and_others(self._run(*inputs, **named))
        results[0].backward()
        results = list(map(detached, results))
        updates.run()
        return results


def step(model: nn.Module, optimizer: Optimizers, inputs: Any,
         loss: LossFunction | None = None, *, budget: int | str | None = None, kwargs: Mapping[str, Any] | None = None, scaler: None = None,
         state_home: StateHome = "device", ranks: Ranks = None, **options: Unpack[StepOptions]) -> Step:
    """The training step of a model as one planned call: `loss = step(*inputs)`.

    optimizer: an optimizer, or a list, such as Muon for matrices and AdamW for the rest.  Each trainable parameter that the loss
        depends on belongs to exactly one.
    inputs, kwargs: arguments of the calls, as for `optimize`: a tuple, one tensor, or a mapping of keyword arguments.  loss: called
        as loss(model, *inputs); returns the loss, or a tuple that begins with it.  None: the model's result is the loss.  budget,
        options: as for `optimize`, without `optimizer` and `update`.
    state_home: the place of the optimizer's state between steps.  "host": the state of a parameter is copied to the device for its
        update, and back; `optimizer.state` then has tensors on the host.  Needs the technique `offload`; on a CPU the host is
        emulated.
    ranks: as of `optimize`.
    scaler: not supported, because a GradScaler reads all gradients before the first update.  Use bf16, which needs none.

    Each gradient is freed as soon as it is used, so the step holds one gradient, and the workspace of one update, at a time.  Where ranks
    share the model (DistributedDataParallel, FSDP2, parameters that are DTensors), gradients are reduced over the ranks first: all of them
    exist, and updates follow the backward one by one (shared_step.py).  Nothing runs before the first call.

    Raises BudgetError if no plan keeps the budget; CaptureError if the step cannot be planned;
    ValueError and TypeError for wrong options; ValueError for a trainable parameter of no or of two optimizers.  A call raises
    UpdateError if gradients exist, if there are hooks that would be skipped, or if the model has been wrapped in DistributedDataParallel
    since.
    """
    if not isinstance(model, nn.Module):
        raise TypeError(f"step takes a torch.nn.Module, not {type(model).__name__}")
    given: list[Any] = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
    for one in given:
        if not isinstance(one, torch.optim.Optimizer):
            raise TypeError("step takes the torch.optim.Optimizer that makes the updates, or a list of them, not "
                            f"{type(one).__name__}")
    if scaler is not None:
        raise ValueError("step takes no GradScaler: it looks at all gradients before the first update. Use bf16, which needs "
                         "no scaler, or optimize with a loop of your own")
    for name in ("update", "optimizer", "fallback"):
        if name in options:
            raise TypeError(f"step says {name!r} by itself")
    process_group = process_group_of(model, ranks)
    if is_shared(model):
        settings = replace(Settings.of({"budget": budget, "optimizer": given, "fallback": "error", **options}), state_home=state_home)
        shared = SharedStep.of(model, loss, settings, inputs, kwargs, process_group)
        return Step(model, shared.run, given, shared.report, shared.updates)
    with planning(process_group) as together:
        settings = replace(Settings.of({"budget": budget, "optimizer": given, "update": "backward", "fallback": "error",
                                        **options}), whole=True, state_home=state_home)
        refuse_shared(model, "step")
        watch_wrappers()
        module = WithLoss(model, loss)
        run = compiled_within(module, settings, inputs, kwargs, Group(ranks=together))
    return Step(module, run, given, reports()[-1])
