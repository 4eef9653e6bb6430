"""A graph whose planned halves are compiled by Inductor (inner="inductor").

Inductor traces with its own decompositions and asks for the partition of the joint graph, which is the plan's.  Its random
numbers come from seeds that are tensors, so a repeated draw from the same seed is equal.  Inductor may fuse kernels and reuse
buffers, which takes less memory than planned, never more; it keeps the order of ops that it does not fuse.  This module checks
that Inductor has not merged recomputations: every large kernel of the plan's graph (products, convolutions, attention) must be
called in its code.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

from torch import fx
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from ..compat.dispatch import OpOverload
from ..compat.fake import detect_fake_mode
from ..compat.inductor import CustomPartitionerFn, compile_graph

_LARGE = ("mm", "addmm", "bmm", "baddbmm", "convolution", "convolution_backward")
_CALL = re.compile(r"(?:extern_kernels\.|torch\.ops\.(?:aten|mkldnn)\.)(\w+)[\w.]*\(")


class LostPlan(UserWarning):
    """Inductor has merged recomputations of a plan; the text names them."""


class _Partitioner(CustomPartitionerFn):
    def __init__(self, partition: Callable[..., Any]) -> None:
        self._partition = partition

    def __call__(self, gm: fx.GraphModule, joint_inputs: Any, **kwargs: Any) -> tuple[fx.GraphModule, fx.GraphModule]:
        kwargs.pop("compiler", None)
        _propagate(gm)
        return self._partition(gm, joint_inputs, **kwargs)

    def __deepcopy__(self, _: Any) -> _Partitioner:
        return self  # Inductor copies its settings for its logs

    def uuid(self) -> None:
        """A plan is no part of Inductor's cache."""


def _propagate(gm: fx.GraphModule) -> None:
    """Fake results that share storages as the real ones do: Inductor's passes do not keep that."""
    values = [node.meta["val"] for node in gm.graph.find_nodes(op="placeholder")]
    mode = detect_fake_mode(values)
    FakeTensorProp(gm, mode).propagate_dont_convert_inputs(*values)


def compile_with_inductor(gm: fx.GraphModule, example_inputs: list[Any],
                          partition: Callable[..., Any]) -> Callable[..., Any]:
    """gm compiled by Inductor, its joint graph parted by `partition` (as AOTAutograd's partition_fn)."""
    def checked(compile_one: Callable[..., Any], module: fx.GraphModule, inputs: Any, **kwargs: Any) -> Any:
        planned = large_kernels(module)
        compiled = compile_one(module, inputs, **kwargs)
        _check(planned, getattr(compiled, "source_code", None))
        return compiled

    return compile_graph(gm, example_inputs, _Partitioner(partition), checked)


def large_kernels(module: fx.GraphModule) -> int:
    """How many large kernels a graph calls."""
    return sum(isinstance(node.target, OpOverload) and _is_large(node.target.overloadpacket.__name__)
               for node in module.graph.nodes)


def _is_large(name: str) -> bool:
    return name.strip("_") in _LARGE or "scaled_dot_product" in name


def _check(planned: int, source: str | None) -> None:
    if source is None:
        return
    called = sum(_is_large(name) or name.endswith("_pointwise") for name in _CALL.findall(source))
    if called < planned:
        warnings.warn(f"lowtide: the plan calls {planned} large kernels and Inductor's code {called}: it "
                      "may hold more memory than planned", LostPlan, stacklevel=2)
