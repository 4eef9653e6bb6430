"""`step`: forward, backward and the optimizer's step as one planned call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ...frontend.planning.report import Report, reports
from ..optimizer.given import Optimizers, StateHome
from ..ranks.shared import refuse_shared
from ..settings import Settings, StepOptions
from ..tracing.fake_step import LossFunction, loss_and_others
from .entry import compiled_within

if TYPE_CHECKING:
    from typing_extensions import Unpack


class Step:
    """A training step: called with inputs, it makes forward, backward and updates, and returns the loss, detached.

    Where the loss function returns more than the loss, a tuple of that and of the rest, detached too.  Gradients are None
    before and after.  The optimizers are the user's own: their state, their groups and what schedulers do to them are as
    after their own steps.
    """

    def __init__(self, module: _WithLoss, run: Callable[..., Any], optimizers: Sequence[torch.optim.Optimizer],
                 report: Report) -> None:
        self._module, self._run, self._optimizers = module, run, optimizers
        self.report = report

    def __call__(self, *inputs: Any, **named: Any) -> Any:
        if not torch.is_grad_enabled():
            raise RuntimeError("a training step under torch.no_grad() would train nothing: call it outside, or the model itself")
        loss, *others = (t.detach() if isinstance(t, torch.Tensor) else t for t in self._run(*inputs, **named))
        for optimizer in self._optimizers:
            optimizer.step()  # which has nothing left to do, and tells schedulers that there was a step
        for optimizer in self._optimizers:
            optimizer.zero_grad()
        return (loss, *others) if others else loss


class _WithLoss(nn.Module):
    """A model and its loss: inputs -> the loss and what else there is, detached."""

    def __init__(self, model: nn.Module, loss: LossFunction | None) -> None:
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *inputs: Any, **named: Any) -> tuple[Any, ...]:
        result = self.loss(self.model, *inputs, **named) if self.loss is not None else self.model(*inputs, **named)
        loss, *others = loss_and_others(result)
        return (loss, *(t.detach() if isinstance(t, torch.Tensor) else t for t in others))


def step(model: nn.Module, optimizer: Optimizers, inputs: Any,
         loss: LossFunction | None = None, *, budget: int | str, kwargs: Mapping[str, Any] | None = None, scaler: None = None,
         state_home: StateHome = "device", **options: Unpack[StepOptions]) -> Step:
    """The training step of a model as one planned call: `loss = step(*inputs)`.

    optimizer: what makes the updates, or a list of what does, such as Muon for matrices and AdamW for the rest.  Each
        parameter that the loss depends on and that is not frozen is one optimizer's.
    inputs, kwargs: arguments such as each call gets, as of `optimize`: a tuple, one tensor, or a mapping of keyword
        arguments.  loss: called as loss(model, *inputs), it returns the loss or a tuple that begins with it; None: the
        model's own result is that.  budget, options: as of `optimize`; `optimizer` and `update` are said here.
    state_home: where the optimizer's state is between steps.  "host": what it keeps for a parameter comes to the device for
        the parameter's update, and goes back; `optimizer.state` has tensors on the host then.  It takes the technique
        `offload`; on a CPU the host is emulated.
    scaler: not supported: a GradScaler looks at all gradients before the first update.  Use bf16, which needs none.

    Each gradient dies in its update, so the step holds no more than one of them, and what the optimizer needs for one
    parameter.  Nothing of it runs before the first call.  Raises BudgetError if no plan keeps the budget, CaptureError
    for what cannot be planned, ValueError and TypeError for wrong options, and ValueError for a parameter that would be
    trained and that no optimizer knows, or two; a call raises UpdateError where gradients
    stand, or hooks would be passed by.
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
    settings = replace(Settings.of({"budget": budget, "optimizer": given, "update": "backward", "fallback": "error",
                                    **options}), whole=True, state_home=state_home)
    refuse_shared(model, "step")
    module = _WithLoss(model, loss)
    run = compiled_within(module, settings, inputs, kwargs)
    return Step(module, run, given, reports()[-1])
