"""The models of table 4 at small size, trained on a CPU by a plan that keeps a budget: are gradients those of eager
execution, to the last bit, and is the measured peak within the budget?"""
from __future__ import annotations

import copy
import time
from typing import Any

import lowtide.torch
import torch
from table4 import Model
from torch import Tensor, nn


def executed(model: Model, budget: str, work: int = 200_000, **options: Any) -> dict[str, Any]:
    """One step, eagerly and within the budget. Times are estimates (`cpu`), so that it asks nothing of the machine."""
    torch.manual_seed(0)
    module, inputs = model.small()
    twin = copy.deepcopy(module)
    began = time.perf_counter()
    planned = lowtide.torch.optimize(twin, inputs, budget=budget, costs="cpu", work=work, fallback="error", **options)
    seconds = time.perf_counter() - began
    equal = all(map(torch.equal, step(module, module, inputs), step(twin, planned, inputs)))
    report = lowtide.torch.reports()[-1]
    eager, peak = (measured(m, run, inputs) for m, run in ((module, module), (twin, planned)))
    return {"equal": equal, "budget": report.budget, "planned": report.peak, "peak": peak, "eager_peak": eager,
            "overhead_percent": round(100 * report.overhead, 2), "seconds": round(seconds, 1)}


def step(module: nn.Module, run: Any, inputs: tuple[Tensor, ...]) -> list[Tensor]:
    """The loss, the gradients and the buffers after one step."""
    torch.manual_seed(1)
    loss = run(*inputs)
    loss.backward()
    return [loss.detach(), *(p.grad for p in module.parameters()), *module.buffers()]


def measured(module: nn.Module, run: Any, inputs: tuple[Tensor, ...]) -> int:
    """Bytes at the peak of a step that makes the gradients anew."""
    module.zero_grad(set_to_none=True)
    held = [*inputs, *module.parameters(), *module.buffers()]
    return lowtide.torch.measure_peak(lambda: run(*inputs).backward(), held=held)
