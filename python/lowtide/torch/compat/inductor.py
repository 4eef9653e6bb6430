"""Inductor, imported only on request."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import torch
from torch import fx

from .cpp_kernels import CppKernel, load_together
from .fake import FakeTensorMode
from .versions import needed

__all__ = ["all_at_once", "compile_kernels", "decompositions", "has_kernel_of_inductor", "joint_passes", "wants_channels_last"]

Boxed = Callable[[list[Any]], Any]

_patching = threading.RLock()  # held while AsyncCompile has methods of ours: each thread has to find those that it puts back


def decompositions() -> dict[Any, Callable[..., Any]]:
    """What Inductor's tracing makes of operators."""
    with needed("decompositions of Inductor"):
        import torch._inductor.lowering  # noqa: F401  # which that of max_pool2d expects to be there
        from torch._inductor.decomposition import select_decomp_table
    return select_decomp_table()


def joint_passes(joint: fx.GraphModule, mode: FakeTensorMode) -> fx.GraphModule:
    """Inductor's passes on a joint graph, which they change."""
    with needed("passes of Inductor"):
        import torch._inductor.lowering  # noqa: F401  # which the passes expect to be there
        from torch._inductor.fx_passes.joint_graph import joint_graph_passes
        from torch._inductor.virtualized import V
    with V.set_fake_mode(mode):
        return joint_graph_passes(joint) or joint


def has_kernel_of_inductor(target: Any) -> bool:
    """Does Inductor generate code for an operator, or call the kernel that eager execution calls?"""
    with needed("table of operators of Inductor"):
        from torch._inductor.lowering import fallbacks, lowerings
    packet = target.overloadpacket
    if target in fallbacks or packet in fallbacks:
        return False
    return target in lowerings or packet in lowerings


def wants_channels_last(joint: fx.GraphModule) -> bool:
    """Does Inductor have the convolutions of a graph read tensors that lie channels last?"""
    with needed("rule for layouts of Inductor"):
        from torch._inductor.graph import GraphLowering
    return GraphLowering.decide_layout_opt(joint, is_inference=False)


class _Donation:
    """What Inductor asks of the forward's meta data while it compiles a backward: which inputs die in it."""

    def __init__(self, dying: list[int]) -> None:
        self.bw_donated_idxs = dying
        self.static_input_indices: list[int] = []


def compile_kernels(module: fx.GraphModule, inputs: list[torch.Tensor], mode: FakeTensorMode, dying: int | None = None) -> Boxed:
    """The function of a graph without matrix products, as Inductor compiles it: of a list of tensors, which it empties.  inputs:
    fakes of `mode` like those that come, whose strides nobody checks when it runs.  Results have the strides that the graph says.
    dying: an input that nobody reads afterwards, over which it may write a result."""
    with needed("compiler of Inductor"):
        import torch._inductor.lowering  # noqa: F401
        from torch._guards import TracingContext, tracing
        from torch._inductor import config
        from torch._inductor.compile_fx import compile_fx_inner
        from torch._inductor.utils import BoxedBool
    output = module.graph.output_node()
    output.meta["user_visible_output_idxs"] = list(range(len(cast("tuple[Any, ...]", output.args[0]))))
    context, settings = TracingContext(mode), {"size_asserts": False, "nan_asserts": False}
    if dying is not None:
        context.fw_metadata = _Donation([dying])  # type: ignore[assignment]  # which has more than is asked of it here
        settings["force_disable_caches"] = True  # by whose keys it would be the same graph
    with tracing(context), config.patch(settings):
        compiled: Any = compile_fx_inner(module, inputs, cudagraphs=BoxedBool(False), is_inference=False,
                                         is_backward=dying is not None)
    return cast(Boxed, getattr(compiled, "current_callable", None) or compiled)


@contextlib.contextmanager
def all_at_once() -> Iterator[None]:
    """The compilers of kernels that this thread begins within it run beside one another, each for several kernels; at its end all have
    ended.  Other threads that enter it wait until its body has run."""
    with needed("compiler of Inductor"):
        from torch._inductor.async_compile import AsyncCompile
    mine = threading.get_ident()
    _patching.acquire()
    wait, bind = AsyncCompile.wait, AsyncCompile.cpp_pybinding
    waiting: list[tuple[Any, dict[str, Any]]] = []

    def later(self: Any, scope: dict[str, Any]) -> None:
        if threading.get_ident() == mine:
            waiting.append((self, scope))
        else:
            wait(self, scope)

    def gathered(self: Any, argtypes: list[str], source_code: str) -> Any:
        return CppKernel(argtypes, source_code) if threading.get_ident() == mine else bind(self, argtypes, source_code)

    AsyncCompile.wait = later  # type: ignore[method-assign]
    AsyncCompile.cpp_pybinding = gathered  # type: ignore[method-assign]
    try:
        yield
    finally:
        AsyncCompile.wait = wait  # type: ignore[method-assign]
        AsyncCompile.cpp_pybinding = bind  # type: ignore[method-assign]
        _patching.release()
        with contextlib.suppress(Exception):  # then each is compiled by itself
            load_together([value for _, scope in waiting for value in scope.values() if isinstance(value, CppKernel)])
        errors: list[Exception] = []
        for one, scope in waiting:  # whatever failed before: Inductor may use the code of this scope again
            try:
                for name, value in scope.items():
                    if isinstance(value, CppKernel):
                        scope[name] = value.function or bind(one, value.argtypes, value.source)
                wait(one, scope)
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]
