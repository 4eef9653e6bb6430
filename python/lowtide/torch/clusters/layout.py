"""Convolutions read tensors that lie channels last, where Inductor would have it so.

Their kernels are faster then, and the clusters in between write that layout at no cost.  So each tensor that a convolution reads
gets a copy in that layout right behind what makes it, which all readers read: as a fusible op the copy becomes a part of the cluster
that makes the tensor.  Layouts are then propagated through the graph.  What cannot read the new layout, or must hand out the old
one, reads a copy as the tensor lay before: kernels of libraries other than convolutions, views that the new strides do not allow,
and the graph's results.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import fx

from ..compat.fake import FakeTensorMode
from ..compat.inductor import wants_channels_last
from ..tensors.operators import leaves, operand, values
from ..tracing.gradient_layout import copied
from .kinds import why_apart

aten = torch.ops.aten

_LAST = {4: torch.channels_last, 5: torch.channels_last_3d}
_READ = {aten.convolution.default: (0,), aten.convolution_backward.default: (0, 1)}


def lay_out_convolutions(joint: fx.GraphModule, mode: FakeTensorMode) -> None:
    """joint is changed, if its convolutions are faster so.  mode: of its fake tensors, which say where tensors lie."""
    if wants_channels_last(joint):
        _Layouts(joint.graph, mode).run()


class _Layouts:
    def __init__(self, graph: fx.Graph, mode: FakeTensorMode) -> None:
        self._graph, self._mode = graph, mode
        self._before = {node: node.meta["val"] for node in graph.nodes if "val" in node.meta}
        self._restored: dict[fx.Node, fx.Node] = {}
        self._copied: dict[fx.Node, torch.memory_format] = {}  # copies of what convolutions read, each with its layout

    def run(self) -> None:
        self._copy_operands()
        for node in list(self._graph.nodes):
            if node.op == "output":
                self._restore_inputs(node)
            elif node in self._copied:
                self._propagate_copy(node, self._copied[node])
            elif node.op == "call_function":
                self._propagate(node)

    def _copy_operands(self) -> None:
        known: set[fx.Node] = set()
        for node in list(self._graph.nodes):
            for source in (operand(node, i) for i in _READ.get(node.target, ())):
                layout = _LAST.get(source.meta["val"].dim())
                if source in known or layout is None:
                    continue
                known.add(source)
                with self._graph.inserting_after(source):
                    copy = self._graph.call_function(aten.clone.default, (source,), {"memory_format": layout})
                copy.meta = dict(source.meta)
                self._before[copy] = self._before[source]
                for user in list(source.users):
                    if user is not copy and user.op != "output":
                        user.replace_input_with(source, copy)
                self._copied[copy] = layout

    def _propagate_copy(self, copy: fx.Node, layout: torch.memory_format) -> None:
        source = operand(copy)
        if source.meta["val"].is_contiguous(memory_format=layout):
            copy.replace_all_uses_with(source)
            self._graph.erase_node(copy)
        else:
            self._compute(copy)

    def _propagate(self, node: fx.Node) -> None:
        if not any(map(self._is_new, node.all_input_nodes)):
            return
        if node.target not in _READ and self._is_apart(node):
            self._restore_inputs(node)
            return
        if node.target is aten.as_strided.default:
            self._restore_inputs(node)
        try:
            self._compute(node)
        except (RuntimeError, ValueError):  # a view
            self._restore_inputs(node)
            self._compute(node)

    def _is_apart(self, node: fx.Node) -> bool:
        return node.target is not operator.getitem and bool(why_apart(node))

    def _compute(self, node: fx.Node) -> None:
        target: Any = node.target
        with self._mode:
            node.meta["val"] = target(*values(node.args), **values(node.kwargs))

    def _is_new(self, node: fx.Node) -> bool:
        """Has it another fake tensor, of another storage?"""
        return self._before.get(node) is not node.meta.get("val")

    def _has_moved(self, node: fx.Node) -> bool:
        """Does it lie otherwise than it was traced?"""
        return self._is_new(node) and _strides(self._before.get(node)) != _strides(node.meta.get("val"))

    def _restore_inputs(self, node: fx.Node) -> None:
        for source in node.all_input_nodes:
            if self._has_moved(source):
                node.replace_input_with(source, self._as_before(source))

    def _as_before(self, node: fx.Node) -> fx.Node:
        """It as it was traced, or a copy that lies so."""
        if node in self._copied:
            source = operand(node)
            return self._as_before(source) if self._has_moved(source) else source
        if node not in self._restored:
            strides = self._before[node].stride()
            self._restored[node] = copied(self._graph, node, sorted(range(len(strides)), key=lambda d: -strides[d]))
        return self._restored[node]


def _strides(value: Any) -> list[Any]:
    return [t.stride() for t in leaves(value)]
