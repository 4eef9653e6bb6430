"""The results of a step, and whether two steps have bit-identical results."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..compat.dynamo import reset
from ..tracing.own_kernels import own_kernels
from .measure import Inputs, one_step, wait

_SEED = 1


@dataclass(frozen=True)
class Left:
    """The results of a step, on the host: loss, gradients (None for a missing one), buffers, the generator's state."""

    loss: list[torch.Tensor]
    gradients: list[torch.Tensor | None]
    buffers: list[torch.Tensor]
    generator: list[torch.Tensor]


def on_host(tensors: Any) -> list[torch.Tensor]:
    return [t.detach().to("cpu", copy=True) for t in tensors]


def put_back(module: nn.Module, buffers: list[torch.Tensor]) -> None:
    with torch.no_grad():
        for buffer, old in zip(module.buffers(), buffers):
            buffer.copy_(old)


def step_from(run: Callable[..., torch.Tensor], module: nn.Module, inputs: Inputs, buffers: list[torch.Tensor]) -> Left:
    """The results of a step that begins with these buffers, no gradients and a fixed seed.  Restores the module."""
    put_back(module, buffers)
    module.zero_grad(set_to_none=True)
    torch.manual_seed(_SEED)
    loss = one_step(run, inputs)
    wait()
    generator = torch.cuda.get_rng_state() if loss.device.type == "cuda" else torch.get_rng_state()
    left = Left([loss.cpu()], [None if p.grad is None else p.grad.detach().to("cpu", copy=True) for p in module.parameters()],
                on_host(module.buffers()), [generator.clone()])
    put_back(module, buffers)
    module.zero_grad(set_to_none=True)
    return left


def alike(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    """Are two tensors the same to the last bit, NaN equal to NaN?"""
    if a is None or b is None:
        return a is b
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    return torch.equal(a, b) or bool(((a == b) | ((a != a) & (b != b))).all())


def compare(got: Left, expected: Left) -> dict[str, Any]:
    """Are all equal?  If not, how many of each kind are, and by how much the worst gradient is off, of its largest."""
    kinds = {kind: (getattr(got, kind), getattr(expected, kind)) for kind in ("loss", "gradients", "buffers", "generator")}
    same = {kind: sum(map(alike, a, b)) for kind, (a, b) in kinds.items()}
    equal = all(same[kind] == len(b) == len(a) for kind, (a, b) in kinds.items())
    if equal:
        return {"equal": True}
    off = (_off(a, b) for a, b in zip(got.gradients, expected.gradients) if a is not None and b is not None and b.numel())
    return {"equal": False, "equal_parts": {kind: f"{same[kind]} of {len(b)}" for kind, (_, b) in kinds.items()},
            "worst_gradient": float(f"{max(off, default=0.0):.2g}"),
            "loss_off": float((got.loss[0].double() - expected.loss[0].double()).abs())}


def as_traced(left: Left, module: nn.Module, inputs: Inputs, buffers: list[torch.Tensor]) -> bool:
    """Are these the bits of the step as PyTorch traces it, without a plan, and runs it by eager kernels?  Then it is the
    tracer that changes them."""
    reset()
    with own_kernels():
        run = torch.compile(module, backend="aot_eager")
        return bool(compare(step_from(run, module, inputs, buffers), left)["equal"])


def _off(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((a.double() - b.double()).abs().max() / b.double().abs().max().clamp_min(1e-30))
