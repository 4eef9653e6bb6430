"""AOTAutograd: the tracer of a forward and its backward, and the partition into both graphs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

from .versions import needed, optional

with needed("tracer AOTAutograd"):
    from torch._dynamo.backends.common import aot_autograd
    from torch._functorch import config
    from torch._functorch._aot_autograd import graph_compile
    from torch._functorch._aot_autograd.descriptors import (
        InputMutationAOTOutput,
        ParamAOTInput,
        PlainAOTOutput,
        SavedForBackwardsAOTOutput,
        SubclassGetAttrAOTInput,
        SubclassGetAttrAOTOutput,
    )
    from torch._functorch.aot_autograd import aot_export_joint_with_descriptors
    from torch._functorch.partitioners import _extract_fwd_bwd_outputs as outputs_of
    from torch._functorch.partitioners import default_partition
    from torch._guards import TracingContext
    from torch._guards import tracing as _tracing
    from torch.fx._lazy_graph_module import _make_graph_module as graph_module

__all__ = ["ParamAOTInput", "PlainAOTOutput", "SavedForBackwardsAOTOutput", "SubclassGetAttrAOTInput",
           "SubclassGetAttrAOTOutput", "TracingContext", "aot_autograd", "aot_export_joint_with_descriptors", "default_partition", "graph_module", "nothing_donated", "numbers_stay",
           "outputs_of", "traced_alone", "with_memory_budget", "written_inputs"]

_here = threading.local()  # .donates, .tensorifies: False within nothing_donated, numbers_stay

# The tracer's own switches are of the process: one is read when a backward runs, the other once.
with optional("backwards of a graph that is kept (retain_graph=True)"):
    _donated = graph_compile.collect_bw_donated_buffer_idxs

    def _donated_unless_kept(*args: Any, **kwargs: Any) -> list[int]:
        return _donated(*args, **kwargs) if getattr(_here, "donates", True) else []

    graph_compile.collect_bw_donated_buffer_idxs = _donated_unless_kept

with optional("one plan for all values of a number"):
    _tensorify = graph_compile._apply_tensorify_python_scalars

    def _tensorify_unless_they_stay(module: torch.fx.GraphModule) -> None:
        if getattr(_here, "tensorifies", True):
            _tensorify(module)

    graph_compile._apply_tensorify_python_scalars = _tensorify_unless_they_stay


@contextlib.contextmanager
def _without(switch: str) -> Iterator[None]:
    before = getattr(_here, switch, True)
    setattr(_here, switch, False)
    try:
        yield
    finally:
        setattr(_here, switch, before)


def nothing_donated() -> contextlib.AbstractContextManager[None]:
    """While AOTAutograd compiles in this thread: it does not take saved tensors for the backward's own, and refuse
    `retain_graph=True` in every step after the first."""
    return _without("donates")


def numbers_stay() -> contextlib.AbstractContextManager[None]:
    """While AOTAutograd traces in this thread: it makes no tensors of floats, which are other kernels, in half
    precision with other results."""
    return _without("tensorifies")


def written_inputs(forward: torch.fx.GraphModule) -> set[int | None]:
    """The places of the arguments that a forward writes to; None among them for one of no known place."""
    (output,) = forward.graph.find_nodes(op="output")
    written = [d.mutated_input for d in output.meta.get("desc") or () if isinstance(d, InputMutationAOTOutput)]
    return {getattr(of, "idx", None) for of in written}


def traced_alone() -> contextlib.AbstractContextManager[Any]:
    """Traces within it are not part of an enclosing trace."""
    return _tracing(None)


def with_memory_budget(share: float) -> contextlib.AbstractContextManager[Any]:
    """PyTorch's own partitioner saves that share of what it would."""
    return config.patch(activation_memory_budget=share)
