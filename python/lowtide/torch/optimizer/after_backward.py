"""Updates after the backward, one parameter at a time, where ranks share the model.

Under DistributedDataParallel, FSDP2 and tensor parallelism a gradient is whole, or this rank's part of it, only when other ranks have
added theirs, by hooks and collectives.  So all gradients exist before the first update.  One update at a time then takes the
workspace of one parameter, while `optimizer.step()` with `foreach` takes the workspaces of all parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from ...frontend.errors import BudgetError, size_text, some
from ..compat.fake import FakeTensorMode
from ..step_errors import UnknownParameter, UpdateError
from ..tensors.wrapped import unwrapped
from .accumulating import accumulates
from .rules import Rule, Watcher, check_apart, check_optimizer
from .updater import check_hooks, step_of_some


class UpdatesAfterBackward:
    """The updates of a model's parameters, each by one of these optimizers.

    reduces: will the next backward reduce gradients over the ranks?
    """

    def __init__(self, model: torch.nn.Module, optimizers: Sequence[torch.optim.Optimizer], reduces: Callable[[], bool]) -> None:
        """Raises TypeError, ValueError and UpdateError for optimizers that do not update each parameter by itself, and
        UnknownParameter."""
        for optimizer in optimizers:
            check_optimizer(optimizer)
        check_apart(optimizers)
        self._optimizers, self._reduces = optimizers, reduces
        known = {id(p) for _, _, p in self._parameters()}
        missing = [name for name, p in model.named_parameters() if p.requires_grad and id(p) not in known]
        if missing:
            raise UnknownParameter(f"step: no optimizer knows {some(missing)}. Give step a list of optimizers that know all of them, "
                                   "step(model, [first, second], ...), or freeze what is not to be trained (requires_grad_(False))")

    @property
    def workspace(self) -> int:
        """Bytes that one update takes at most beside parameter, gradient and state, on the device of the model."""
        trained = [(Rule.of(optimizer, group), unwrapped(p)) for optimizer, group, p in self._parameters() if p.requires_grad]
        on_gpu = any(p.is_cuda for _, p in trained)
        watch = Watcher(FakeTensorMode(), on_gpu)
        return max((watch(rule, p).temporaries for rule, p in trained if p.is_cuda == on_gpu), default=0)

    def check(self) -> None:
        """A step begins.  Raises UpdateError if it would not be one."""
        for optimizer in self._optimizers:
            check_hooks(optimizer, ())
        if any(p.grad is not None or accumulates(p) for _, _, p in self._parameters()):
            raise UpdateError("step makes its own gradients, and some exist already: set them to None first (optimizer.zero_grad()); "
                              "what is to add up over microbatches needs lowtide.torch.optimize")
        if not self._reduces():
            raise UpdateError("step would update each rank by gradients of its own: they are not to be reduced now (no_sync, "
                              "set_requires_gradient_sync(False)); what is to add up over microbatches needs lowtide.torch.optimize")

    def run(self) -> None:
        """Update each parameter that has a gradient, and drop the gradient."""
        for optimizer, group, p in self._parameters():
            if p.grad is not None:
                step_of_some(optimizer, [(group, [p])])
                p.grad = None

    def _parameters(self) -> Iterator[tuple[torch.optim.Optimizer, dict[str, Any], torch.Tensor]]:
        for optimizer in self._optimizers:
            for group in optimizer.param_groups:
                for p in group["params"]:
                    yield optimizer, group, p


def check_room(taken: int, budget: int) -> None:
    """Raises BudgetError if the updates after a backward take more."""
    if taken > budget:
        raise BudgetError(f"no plan keeps this step within {size_text(budget)} ({budget} bytes): when the backward is over, parameters, "
                          f"gradients, the optimizer's state and one update take {size_text(taken)} ({taken} bytes)", taken, None, budget)
