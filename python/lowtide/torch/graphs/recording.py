"""The option `cuda_graph` for one captured graph: which of its arguments stay where they are, and what is said where it is not recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx

from ...frontend.errors import LowtideWarning
from ..optimizer.graph_updates import GraphUpdates
from ..program.program import Program
from ..runtime.arranged import ArrangedBlock
from ..runtime.recorded import Recorded
from ..settings import Settings
from ..tensors.operators import leaves
from ..tensors.storages import storages

aten = torch.ops.aten


class Recording:
    """Both sides of the graph that is traced now.  updates: those that it makes.  said: causes of warnings that came already."""

    def __init__(self, settings: Settings, inputs: list[Any], updates: GraphUpdates | None, said: set[str]) -> None:
        self._is_on, self._updates, self._said = settings.cuda_graph, updates, said
        self._staying = {i for i, t in enumerate(inputs) if stays(t)}
        self._recorded: Recorded | None = None

    def forward(self, module: fx.GraphModule, run: Callable[..., Any], handed_out: int,
                block: ArrangedBlock | None = None) -> Callable[..., Any]:
        """`run`, or what records and replays it.  block: in which it is arranged."""
        if not self._is_on:
            return run
        updates = self._updates
        self._recorded = Recorded(self._places(module), handed_out, self._say, updates.read_on_host if updates else lambda: None,
                                  _generators(module), block)
        return self._recorded.forward(run)

    def backward(self, run: Callable[..., Any], tangents: int) -> Callable[..., Any]:
        return run if self._recorded is None else self._recorded.backward(run, tangents)

    def _places(self, module: fx.GraphModule) -> set[int]:
        """The arguments of a forward that lie where they lay, and those that it writes to."""
        placeholders = module.graph.find_nodes(op="placeholder")
        written = {node.args[0] for node in module.graph.find_nodes(op="call_function", target=aten.copy_.default)}
        return {i for i, node in enumerate(placeholders)
                if node in written or getattr(node.meta.get("desc"), "idx", None) in self._staying}

    def _say(self, why: str) -> None:
        if "cuda_graph" not in self._said:
            self._said.add("cuda_graph")
            warnings.warn(f"lowtide: cuda_graph=True: the step is not recorded and runs as without it: {why}", LowtideWarning, stacklevel=3)


def stays(value: Any) -> bool:
    """Is it a parameter or, as the tracer has marked it, a buffer?"""
    return isinstance(value, torch.nn.Parameter) or getattr(value, "_dynamo_static_input_type", None) is not None


def bytes_beside_record(program: Program, inputs: Sequence[Any]) -> int:
    """Bytes that a step takes as a CUDA graph, beside its plan: copies of its inputs, its results and its gradients."""
    given = storages(t for t in inputs if isinstance(t, torch.Tensor) and not stays(t))
    made = storages(t for node in (*program.forward_outputs, *program.backward_outputs) if isinstance(node, fx.Node)
                    for t in leaves(node.meta.get("val")))
    return sum(given.values()) + sum(made.values())


def _generators(module: fx.GraphModule) -> list[torch.Generator]:
    """Those that its nodes name."""
    found = (value for node in module.graph.nodes for value in (*node.args, *node.kwargs.values()) if isinstance(value, torch.Generator))
    return list({id(generator): generator for generator in found}.values())
