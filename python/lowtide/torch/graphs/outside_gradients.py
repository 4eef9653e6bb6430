"""Gradients that no captured graph's backward computes: of a custom `autograd.Function`, or of frames that the tracer skipped.

The tracer may skip a model's forward and compile a function that it calls, without gradients.  The plan is then kept but does
not cover the step.  So the first backwards of a model are inspected before they run, for parameters whose gradients come from
code in no graph.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd.function import BackwardCFunction

from ...frontend.errors import LowtideWarning, fall_back, some
from ..compat.autograd import compiled_autograd_runs
from ..runtime.backward_looks import forward_of, graph_of, is_leaf, look_at_backwards, reached
from ..settings import Settings
from .records import GraphRecord

_REGION = "lowtide_graph"
_LOOKS = 8  # backwards of one model that are looked at, after each graph that is compiled
_models: weakref.WeakSet[OutsideGradients] = weakref.WeakSet()


def no_backward(names: list[str]) -> str:
    """Why a model has no plan of which no graph has a backward that gives a gradient to any of these parameters."""
    return (f"no graph has a backward for {some(names)}: the tracer leaves the code alone in which the model trains, such as "
            "a custom autograd.Function with a backward of its own (TORCH_LOGS=graph_breaks shows what). Write that with "
            "operators of PyTorch, and let the plan choose what is computed again")


def mark_captured(forward: Any, number: int) -> None:
    """Note that `forward` is what AOTAutograd calls for the forward of the graph of that number."""
    setattr(forward, _REGION, number)


def captured_of(node: Any) -> int | None:
    """The number of the graph whose backward the node is, if it is one's."""
    return getattr(forward_of(node), _REGION, None)


class OutsideGradients:
    """The outside gradients of one model.  graphs: the records of its graphs.  count: of parameters whose gradients are made outside."""

    def __init__(self, captured_graphs: list[GraphRecord]) -> None:
        self._captured_graphs = captured_graphs
        self._looks = 0
        self._is_said = self._has_run = False
        self._fallback = "warn"
        self._leaves: dict[int, weakref.ref[torch.Tensor]] = {}
        self._modules: list[tuple[weakref.ref[torch.nn.Module], bool]] = []
        self.count = 0

    def belongs_to(self, module: torch.nn.Module, whole: bool = True) -> None:
        """The graphs are that module's; whole: are all of its parameters theirs?"""
        self._modules.append((weakref.ref(module), whole))

    def meet(self, inputs: Iterable[Any], settings: Settings) -> None:
        """A graph with these inputs is compiled."""
        self._leaves |= {id(t): weakref.ref(t) for t in inputs
                         if isinstance(t, torch.nn.Parameter) and t.requires_grad and t.is_leaf}
        self._fallback, self._looks = settings.fallback, 0  # settings hold the optimizer, which is not to outlive the model
        if not self._is_said:
            _models.add(self)
            look_at_backwards(_look)

    def runs(self) -> None:
        """A graph runs.  In evaluation that says nothing of a backward that comes later, of the model as it is, say."""
        if self in _models:
            modules = [module for ref, _ in self._modules if (module := ref()) is not None]
            self._has_run = any(module.training for module in modules) or not modules

    @property
    def fallback(self) -> str:
        """As the settings say."""
        return self._fallback

    def said(self, count: int = 0) -> None:
        """The warning about unplanned gradients, of `count` parameters, was given."""
        self._is_said, self.count = True, count
        _models.discard(self)

    def names_among(self, tensors: Iterable[torch.Tensor]) -> list[str]:
        """Names, for people, of the model's trained parameters among these tensors."""
        wanted = {id(t): t for t in tensors}
        known = {key for key, ref in self._leaves.items() if ref() is not None}
        names: dict[int, str] = {}
        for ref, whole in self._modules:
            module = ref()
            if module is not None:
                names |= {id(p): name for name, p in module.named_parameters()}
                known |= {id(p) for p in module.parameters() if whole and p.requires_grad}
        named = [name for key, name in names.items() if key in known and key in wanted]
        return named + [f"a parameter of shape {list(t.shape)}" for key, t in wanted.items() if key in known - names.keys()]

    def look(self, inside: list[torch.Tensor], outside: list[torch.Tensor]) -> None:
        """A backward begins that gives gradients to these leaves, from within graphs and from elsewhere."""
        if not self._has_run:
            return
        names, within = self.names_among(outside), self.names_among(inside)
        trains = any(captured.trains for captured in self._captured_graphs)
        if not within and (trains or not names):  # of other code, such as the model as it is beside its compiled step
            return
        self._has_run = False
        self._looks += 1
        if not names:
            if self._looks >= _LOOKS:
                _models.discard(self)
            return
        self.said(len(names))
        for captured in self._captured_graphs:
            if captured.report:
                captured.report.outside = len(names)
        if not trains:
            fall_back(no_backward(names), self.fallback, None)
            return
        warnings.warn(f"lowtide: the gradients of {some(names)} are made outside of every graph, by code that the tracer "
                      "leaves alone, such as a custom autograd.Function with a backward of its own: no plan counts what that "
                      "takes. Set that aside with reserve=, or see what breaks the graph (TORCH_LOGS=graph_breaks)",
                      LowtideWarning, stacklevel=6)


def of_results(results: Iterable[Any]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """The leaves to which a backward from these gives gradients from within graphs, and those to which it gives them from
    elsewhere: no graph's node is on the way, or a custom function is the last there."""
    graph = graph_of(results)
    within = reached(node for node in graph if captured_of(node) is not None)
    custom = {following for node, after in graph.items() for following in after
              if isinstance(node, BackwardCFunction) and not _is_known(node)}
    leaves = {node: node.variable for node in graph if is_leaf(node)}
    outside = {node for node in leaves if node not in within or node in custom}
    return ([t for node, t in leaves.items() if node not in outside], [t for node, t in leaves.items() if node in outside])


def _is_known(node: Any) -> bool:
    """Is it the node of one of PyTorch's own functions, such as those of compiled graphs, or of Lowtide's?"""
    return getattr(type(node)._forward_cls, "__module__", "").startswith(("torch.", "lowtide."))


def _look(outputs: Any, _: bool, __: Any, ___: bool) -> None:
    if not _models or compiled_autograd_runs():
        return
    inside, outside = of_results(outputs)
    for model in list(_models):
        model.look(inside, outside)
