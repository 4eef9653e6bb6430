"""`step` of a model that ranks share: the backward reduces gradients over the ranks, and updates follow one by one.

The parts of a step are those of an ordinary loop, so its hooks and collectives are those of DistributedDataParallel and FSDP2.  Forward
and backward are planned as by `optimize`, beside the optimizer's state; what the updates take is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from ...frontend.errors import CaptureError
from ...frontend.planning.report import Report, reports
from ..compat import sharding
from ..compat.distributed import reduces_gradients
from ..device.meter import bytes_held
from ..graphs.group import Group
from ..optimizer.after_backward import UpdatesAfterBackward, check_room
from ..ranks.agreement import Agreement
from ..ranks.buckets import bucket_bytes, check_parallel
from ..ranks.shared import has_parts, refuse_shared
from ..ranks.together import agreeing, planning
from ..settings import Settings, state_by_rule
from ..tensors.storages import bytes_of
from ..tensors.wrapped import unwrapped
from ..tracing.fake_step import LossFunction
from .entry import compiled_within
from .sharded import is_sharded, optimize_sharded
from .with_loss import WithLoss


def is_shared(model: nn.Module) -> bool:
    """Are gradients of this model whole only after its backward, by hooks or collectives?"""
    return isinstance(model, DistributedDataParallel) or is_sharded(model) or has_parts(model)


@dataclass(frozen=True)
class SharedStep:
    """The step of a shared model.  run: its forward; updates: what follows the backward.  report: of the graph planned last."""

    run: Callable[..., Any]
    updates: UpdatesAfterBackward
    report: Report

    @classmethod
    def of(cls, model: nn.Module, loss: LossFunction | None, settings: Settings, inputs: Any, kwargs: Mapping[str, Any] | None,
           process_group: Any) -> SharedStep:
        """Plans.  The arguments and the exceptions are those of `step`."""
        if settings.state_home != "device":
            raise CaptureError("state_home='host' of a model that ranks share: the state would be copied during the backward, and its updates "
                               "come after that")
        if is_sharded(model):
            with agreeing(process_group) as ranks:
                return cls._of_sharded(model, loss, settings, inputs, kwargs, ranks)
        with planning(process_group) as together:
            if isinstance(model, DistributedDataParallel):
                return cls._of_parallel(model, loss, settings, inputs, kwargs, Group(ranks=together))
            refuse_shared(model, "step", takes_parts=True)
            updates = UpdatesAfterBackward(model, settings.optimizers, lambda: True)  # gradients are reduced in the graph
            run = compiled_within(WithLoss(model, loss), settings, inputs, kwargs, Group(ranks=together))
            report = reports()[-1]
            check_room(_standing(model, inputs, kwargs, settings) + _trained_bytes(model) + updates.workspace, report.budget)
        return cls(run, updates, report)

    @classmethod
    def _of_parallel(cls, model: DistributedDataParallel, loss: LossFunction | None, settings: Settings, inputs: Any,
                     kwargs: Mapping[str, Any] | None, group: Group) -> SharedStep:
        check_parallel(model)
        refuse_shared(model.module, "step")
        updates = UpdatesAfterBackward(model, settings.optimizers, lambda: reduces_gradients(model))
        group.buckets.meet(model)
        within = WithLoss(model.module, loss)
        compiled_within(within, settings, inputs, kwargs, group, in_place=True)
        report = reports()[-1]
        gradients = 0 if model.gradient_as_bucket_view else _trained_bytes(model)
        check_room(_standing(model, inputs, kwargs, settings) + bucket_bytes(model) + gradients + updates.workspace, report.budget)
        return cls(_in_place_of_module(model, within), updates, report)

    @classmethod
    def _of_sharded(cls, model: nn.Module, loss: LossFunction | None, settings: Settings, inputs: Any, kwargs: Mapping[str, Any] | None,
                    ranks: Agreement) -> SharedStep:
        if loss is not None:
            raise CaptureError("step takes a model under FSDP2 without a loss function, whose code would run beside the root's hooks: compute "
                               "the loss within the module, step(model, optimizer, inputs)")
        states = sharding.states_of(model)
        updates = UpdatesAfterBackward(model, settings.optimizers, lambda: all(reduces for reduces, _ in sharding.ways_of(states)))
        optimize_sharded(model, settings, inputs, kwargs, ranks, update=updates.workspace)
        return cls(model, updates, reports()[-1])


def _standing(model: nn.Module, inputs: Any, kwargs: Mapping[str, Any] | None, settings: Settings) -> int:
    """Bytes that stand all the time."""
    return bytes_held(model, inputs, kwargs) + state_by_rule(settings.optimizer, 0) + (settings.reserved or 0)


def _trained_bytes(model: nn.Module) -> int:
    return sum(bytes_of(unwrapped(p)) for p in model.parameters() if p.requires_grad)


def _in_place_of_module(parallel: DistributedDataParallel, module: nn.Module) -> Callable[..., Any]:
    """A call of a DDP module that runs this one in the place of its own, so that the loss is part of its forward."""
    def run(*inputs: Any, **named: Any) -> Any:
        own = parallel.module
        parallel.module = module
        try:
            return parallel(*inputs, **named)
        finally:
            parallel.module = own

    return run
