"""A captured graph of Dynamo -> a function that runs it by plans within the budget.

If sizes or numbers of the graph are symbolic, existing plans are reused as long as they keep the budget.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import fx

from ...frontend.errors import LowtideWarning, fall_back
from ...frontend.techniques import TRANSFORMS
from ..compat.dynamo import never_traced
from ..settings import Settings
from ..tensors.storages import device_among
from ..tensors.wrapped import wraps_several
from ..tracing.open_sizes import OpenSizes
from ..tracing.origins import labels_of
from ..tracing.scalars import NotOpen, SizeByNumber, floats_of, ints_of, without_items
from .captured_graph import CapturedGraph, one_tracing
from .group import Group

_SHAPES = 256  # sizes or numbers for which plans of one graph are kept
_LOOKS = 8  # plans, the latest, that are looked at for other sizes
_MANY = 5  # sizes of one graph with a plan each, after which it is said

never_traced("lowtide.torch.runtime", "lowtide.torch.device")


def compile_captured(gm: fx.GraphModule, example_inputs: list[Any], settings: Settings, group: Group,
                   number: int | None = None) -> Callable[..., Any]:
    """A function that runs gm on inputs like example_inputs, by plans that keep the budget.

    group: the graphs of the same model.  number: enter this one there under that, and plan nothing.
    """
    device = device_among(value for value in example_inputs if isinstance(value, torch.Tensor))
    settings.check_allocator(device)
    settings.check_cuda_graph(device)
    for value in example_inputs:
        if isinstance(value, torch.Tensor) and wraps_several(value):
            return fall_back(f"an input is a {type(value).__name__}, a subclass of Tensor that wraps several tensors, and "
                             "a plan counts one storage for each", settings.fallback, gm)
    traced_for = (node.meta.get("example_value") for node in gm.graph.find_nodes(op="placeholder"))
    if any(map(_is_symbolic, (*example_inputs, *traced_for))) or floats_of(gm):
        return EachShape(gm, settings, group, number)
    return CapturedGraph(settings, group, number).compile(gm, example_inputs)


def _is_symbolic(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return any(isinstance(n, torch.SymInt) and not n.node.is_constant() for n in (*value.shape, *value.stride()))
    return isinstance(value, (torch.SymInt, torch.SymFloat))


class EachShape:
    """A graph whose sizes Dynamo left open, or numbers: one plan for all sizes at which it keeps the budget, if the graph can
    be traced for all (open_sizes.py), else one for each; and one for all values of a number that is none (scalars.py).
    number: as of compile_captured."""

    def __init__(self, gm: fx.GraphModule, settings: Settings, group: Group, number: int | None = None) -> None:
        self._settings, self._group, self._number = settings, group, number
        labels_of(gm)  # while it is known where inputs come from
        self._floats = floats_of(gm)
        self._numbers = {*self._floats, *ints_of(gm)}
        self._gm = without_items(gm, self._floats) if self._floats else gm
        self._known: dict[Any, list[CapturedGraph]] = {}  # the one that was compiled last is the last
        self._may_open = number is None and settings.update == "step" and settings.layout != "exact" and not settings.cuda_graph \
            and not settings.techniques & TRANSFORMS
        self._opened: list[tuple[Any, CapturedGraph]] = []
        self._sizes: set[Any] = set()  # for which a plan was made

    def __call__(self, *args: Any) -> Any:
        args = self._with_numbers(args)
        return self._captured_for(args)(*args)

    def prepare(self, args: tuple[Any, ...]) -> None:
        """Plan for arguments like these, and run nothing; or enter them to be planned later."""
        self._captured_for(self._with_numbers(args))

    def _with_numbers(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        if not self._floats:
            return args
        values = list(args)
        for i in self._floats:
            values[i] = values[i].item()
        return tuple(values)

    def _captured_for(self, args: tuple[Any, ...]) -> CapturedGraph:
        found = self._known_for(args)
        if found is None:
            with one_tracing:
                found = self._known_for(args)  # by now another thread may have made it
                if found is None:
                    found = self._opened_for(args) or self._compile(args)
                    self._keep(args, found)
        return found

    def _known_for(self, args: tuple[Any, ...]) -> CapturedGraph | None:
        """A graph that has served these sizes."""
        return next((captured for captured in self._known.get(self._key(args), ()) if captured.serves(args)), None)

    def _opened_for(self, args: tuple[Any, ...]) -> CapturedGraph | None:
        """A graph of open sizes, of other sizes so far, that serves these."""
        kinds = _kinds(args)
        return next((captured for of, captured in reversed(self._opened[-_LOOKS:]) if of == kinds and captured.serves(args)), None)

    def _key(self, args: tuple[Any, ...]) -> Any:
        return (tuple((a.shape, a.stride(), a.dtype, a.requires_grad) if isinstance(a, torch.Tensor) else a
                      for i, a in enumerate(args) if i not in self._numbers), torch.is_grad_enabled())

    def _compile(self, args: tuple[Any, ...]) -> CapturedGraph:
        may_open = True  # for these sizes
        while True:
            try:
                captured = self._open_captured(args) if self._may_open and may_open else self._new(args)
                break
            except SizeByNumber as error:
                self._numbers -= error.at
                self._known.clear()
                self._opened.clear()
            except NotOpen as error:
                self._may_open, may_open = self._may_open and not error.always, False
        self._say_sizes(args)
        return captured

    def _new(self, args: tuple[Any, ...], sizes: OpenSizes | None = None) -> CapturedGraph:
        captured = CapturedGraph(self._settings, self._group, self._number, sorted(self._numbers), sizes)
        captured.compile(self._gm, list(args))
        return captured

    def _open_captured(self, args: tuple[Any, ...]) -> CapturedGraph:
        """One for all sizes.  Raises NotOpen."""
        likes = [node.meta.get("example_value") for node in self._gm.graph.find_nodes(op="placeholder")]
        captured = self._new(args, OpenSizes(sorted(self._numbers), likes))
        self._opened.append((_kinds(args), captured))
        return captured

    def _keep(self, args: tuple[Any, ...], captured: CapturedGraph) -> None:
        self._known.setdefault(self._key(args), []).append(captured)
        while sum(map(len, self._known.values())) > _SHAPES:
            oldest = next(iter(self._known))
            gone = self._known[oldest].pop(0) if self._known[oldest] else None
            if not self._known[oldest]:
                del self._known[oldest]
            if gone and not any(gone in captured_graphs for captured_graphs in self._known.values()):
                self._opened = [(of, other) for of, other in self._opened if other is not gone]
                gone.leave()

    def _say_sizes(self, args: tuple[Any, ...]) -> None:
        """A line, once for a model, where each step has other sizes and needs a plan of its own."""
        self._sizes.add(tuple(a.shape for a in args if isinstance(a, torch.Tensor)))
        causes = self._group.watch.causes
        if len(self._sizes) < _MANY or "sizes" in causes:
            return
        causes.add("sizes")
        if self._may_open:
            why = "its plans do not keep the budget at the sizes that come: a larger budget lets one plan serve more of them"
        elif self._settings.techniques & TRANSFORMS:
            why = "plans that may change the graph (techniques) are made for one size"
        else:
            why = "its graph cannot be traced for all sizes at once"
        warnings.warn(f"lowtide: the sizes of what this model computes change from step to step: a graph of it has been traced "
                      f"and planned for {len(self._sizes)} of them, which takes far longer than a step, since {why}. Pad what it is "
                      "given to a few sizes, or keep code whose sizes depend on data out of it (torch.compiler.disable)",
                      LowtideWarning, stacklevel=3)


def _kinds(args: tuple[Any, ...]) -> Any:
    """The properties of arguments that do not depend on sizes."""
    return (tuple((a.dtype, a.device, a.requires_grad, a.dim()) if isinstance(a, torch.Tensor) else type(a) for a in args),
            torch.is_grad_enabled())
