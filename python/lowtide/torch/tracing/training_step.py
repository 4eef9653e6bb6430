"""Finds the training step of a forward without a backward.

A budget that is a share refers to the training step's peak, also for an evaluation; the evaluation's own peak would make the
result depend on which runs first.  If the step has not been planned yet, its graph is traced here, without running it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ..compat.aot import aot_autograd, numbers_stay, traced_alone
from ..compat.fake import without_fake
from .open_sizes import OpenSizes
from .own_kernels import own_kernels

Found = tuple[fx.GraphModule, int] | None


class _Traced(BaseException):
    """Ends the tracing when the joint graph is there."""

    def __init__(self, joint: fx.GraphModule, num_forward_outputs: int) -> None:
        super().__init__()
        self.joint, self.num_forward_outputs = joint, num_forward_outputs


def forward_graph(gm: fx.GraphModule, inputs: list[Any]) -> Found:
    """gm as it is traced without a backward, and how many results it has; None if it cannot be traced."""
    def alone(module: fx.GraphModule, _: Any) -> Any:
        (output,) = module.graph.find_nodes(op="output")
        raise _Traced(module, len(output.args[0]))

    try:
        with traced_alone(), torch.no_grad(), own_kernels():
            aot_autograd(fw_compiler=alone, inference_compiler=alone)(gm, inputs)
    except _Traced as traced:
        return traced.joint, traced.num_forward_outputs
    except Exception:
        return None
    return None


def joint_graph(gm: fx.GraphModule, inputs: list[Any]) -> Found:
    """Forward and backward of gm and how many of the results are the forward's; None if it has no backward."""
    if not any(isinstance(t, torch.Tensor) and t.requires_grad for t in inputs):
        return None

    def part(joint: fx.GraphModule, _: Any, *, num_fwd_outputs: int, **rest: Any) -> Any:
        raise _Traced(joint, num_fwd_outputs)

    def alone(module: fx.GraphModule, _: Any) -> Any:
        raise _Traced(module, 0)

    try:
        with traced_alone(), torch.inference_mode(False), torch.enable_grad(), own_kernels():
            aot_autograd(fw_compiler=alone, partition_fn=part)(gm, inputs)
    except _Traced as traced:
        return (traced.joint, traced.num_forward_outputs) if traced.num_forward_outputs else None
    except Exception:  # inputs of an inference cannot be saved, or code switches gradients off by itself
        return None
    return None


def with_open_sizes(trace: Callable[[fx.GraphModule, list[Any]], Found], gm: fx.GraphModule, inputs: list[Any], sizes: OpenSizes) -> Found:
    """What one of these functions finds for a graph that was traced with these open sizes, made concrete."""
    sizes = sizes.again()
    with numbers_stay(), without_fake():
        found = trace(gm, sizes.arguments(inputs))
    if found is not None:
        sizes.check(found[0])
        sizes.concrete(found[0], inputs)
    return found
