"""The key by which equal clusters are known: a hash of operators, arguments and the layouts of inputs, in the order of the cluster's
graph, without names.  Equal layers of a model have equal keys.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Mapping
from typing import Any

import torch
from torch import fx

from ..compat.higher_order import triton_kernel_of
from ..tensors.operators import leaves
from ..tracing.symbolic_layouts import Lies

_ALIGNED = 16  # bytes, which kernels of a GPU rely on


def key_of(module: fx.GraphModule, *more: Any, lies: Mapping[fx.Node, Any] | None = None) -> str:
    """The key of a cluster's graph; more: of what else it depends on.  lies: of a cluster for all sizes, how its inputs lie."""
    settings = (torch.get_num_threads(), torch.__version__)
    return hashlib.sha256(repr((_parts(module, lies), settings, *more)).encode()).hexdigest()[:20]


def _parts(module: fx.GraphModule, lies: Mapping[fx.Node, Any] | None = None) -> list[Any]:
    places = {node: i for i, node in enumerate(module.graph.nodes)}

    def of(value: Any) -> Any:
        if isinstance(value, fx.Node):
            return "node", places[value]
        if isinstance(value, (list, tuple)):
            return type(value).__name__, tuple(map(of, value))
        if isinstance(value, dict):
            return tuple((key, of(v)) for key, v in value.items())
        return repr(value)

    def read(node: fx.Node) -> Any:
        if node.op == "placeholder" and lies is not None:
            return lies_in_words(lies[node])
        if node.op == "placeholder":
            return _layout(node.meta["val"]) if "val" in node.meta else None
        return _parts(operator.attrgetter(str(node.target))(module)) if node.op == "get_attr" else None

    found = []
    for node in module.graph.nodes:
        kernel = triton_kernel_of(node)
        kwargs = {name: value for name, value in node.kwargs.items() if kernel is None or not name.endswith("_idx")}
        found.append((node.op, str(node.target) if node.op == "call_function" else "", of(node.args), of(kwargs), read(node), kernel))
    return found


def lies_in_words(of: Any) -> str:
    if not isinstance(of, Lies):
        return str(of)
    offset = of.offset * of.dtype.itemsize % _ALIGNED
    return f"{[*map(str, of.shape)]} {[*map(str, of.strides)]} {of.dtype} {of.device} {offset}"


def _layout(t: torch.Tensor) -> Any:
    (tensor,) = leaves(t)
    offset = int(tensor.storage_offset()) * tensor.element_size() % _ALIGNED
    return tuple(map(int, tensor.shape)), tuple(map(int, tensor.stride())), str(tensor.dtype), str(tensor.device), offset
