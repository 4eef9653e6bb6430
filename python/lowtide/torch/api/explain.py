"""`explain`: the overhead of each budget of a model, before a budget is chosen."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import torch

from ...frontend.options import Order, check_order, seconds, whole
from ...frontend.planning.constraints import small_fixed_bytes
from ...frontend.planning.explanation import Explanation, explained
from ...frontend.techniques import Techniques
from ..compat.fake import FakeTensor
from ..optimizer.given import Optimizer
from ..pricing.costs import known_as
from ..program.program import AnyProgram
from ..settings import Settings, state_by_rule
from ..tensors.storages import allocated
from ..tracing.fake_step import Built, LossFunction, Numbers
from ..transforms.plannable import PlannableProgram
from .capture import as_builder, capture_program, name_of, with_optimizer


def explain(model: torch.nn.Module | Callable[[], Built], inputs: Any = (), loss: LossFunction | None = None, *,
            kwargs: Mapping[str, Any] | None = None, costs: str = "auto", dtype: Numbers = "f32",
            optimizer: Optimizer = None, order: Order = "free", points: int = 12,
            time: float | None = 3.0, techniques: Techniques | None = None, link: str | None = None,
            host_budget: int | str | None = None, show: bool = True, fused: bool = False) -> Explanation:
    """The overhead of a training step of `model` for a range of budgets, with the default techniques and with all.

    The budgets range from the smallest possible one (at least a fifth of the baseline peak) to the baseline peak.

    model, inputs, loss, kwargs, dtype, optimizer: as for `capture`.  Nothing runs, except that with costs="auto" and a model on the
        CPU kernels are timed.
    costs: as the option of `optimize`.  "auto" measures for a model on the CPU; otherwise it estimates for the GPU at hand, or an
        A100.
    order, points, time: as for lowtide.curve; time is in seconds, half of it for each curve.
    techniques, link, host_budget: as the options of `optimize`.
    show: also print the explanation.  fused: as for `capture`.

    Raises CaptureError for a model that cannot be captured; ValueError or TypeError for wrong options.
    """
    check_order(order)
    state_by_rule(optimizer, 0)
    time, points = seconds(time), whole("points", points, 2, 10_000)
    device = torch.device("cuda" if _is_on_gpu(model) else "cpu")
    real = isinstance(model, torch.nn.Module) and _is_real(model)
    costs = _costs(costs, model, real)
    captured = capture_program(as_builder(model, inputs, loss, kwargs), costs=costs, dtype=dtype, name=name_of(model), real=real,
                               fused=fused)
    program = PlannableProgram.of(captured).splittable()
    if _is_on_gpu(model):
        program = _in_blocks(program)
    common: dict[str, Any] = {"order": order, "costs": costs, "link": link, "host_budget": host_budget,
                              "inner": "fused" if fused else "eager"}
    settings = Settings(1, techniques=techniques, **common).on(device)
    every = Settings(1, techniques=["all", *settings.techniques & {"offload"}], **common).on(device)
    graph, terms, every_terms = with_optimizer(program, optimizer), settings.planning(True, device), every.planning(True, device)
    if "link" in every_terms:
        resident = graph.resident_bytes + small_fixed_bytes(program)
        graph = graph.edited(resident_bytes=resident)
    curves = [terms] if terms == every_terms else [terms, every_terms]
    share = None if time is None else time / len(curves)
    explanation, *others = (explained(graph, points, "lowtide.torch.Explanation", order=order, time=share, **one) for one in curves)
    allocator = settings.allocator_on(device) if device.type == "cuda" else None if real or costs == "cpu" else ""
    for found in (explanation, *others):
        found.allocator = allocator
    for every_technique in others:
        every_technique.take_better_of(explanation)
        explanation.every_technique = every_technique
    if show:
        print(explanation)
    return explanation


def _is_real(model: torch.nn.Module) -> bool:
    tensors = [*model.parameters(), *model.buffers()]
    return all(t.device.type == "cpu" and not isinstance(t, FakeTensor) for t in tensors)


def _is_on_gpu(model: Any) -> bool:
    return isinstance(model, torch.nn.Module) and any(t.is_cuda for t in model.parameters())


def _in_blocks(program: AnyProgram) -> AnyProgram:
    """The program with bytes as a GPU's allocator counts them, so that a budget is what `optimize` will keep."""
    gpu = torch.device("cuda")
    sizes = {t.index: {"bytes": allocated(t.bytes, gpu)} for t in program.graph.tensors}
    return dataclasses.replace(program, graph=program.graph.edited(tensors=sizes))


def _costs(costs: str, model: Any, real: bool) -> str:
    """"auto" for a model on a GPU is the estimate for that GPU, if it is a known one."""
    if costs != "auto" or real or not _is_on_gpu(model):
        return costs
    return known_as(torch.device("cuda"))
