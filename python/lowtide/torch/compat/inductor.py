"""Inductor, imported only on request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import fx

from .versions import needed

with needed("partitioners of Inductor"):
    from torch._inductor.custom_graph_pass import CustomPartitionerFn

__all__ = ["CustomPartitionerFn", "compile_graph"]


def compile_graph(gm: fx.GraphModule, inputs: list[Any], partitioner: CustomPartitionerFn,
                  around: Callable[..., Any]) -> Callable[..., Any]:
    """gm as Inductor compiles it; around(compile, module, inputs, **rest) compiles each of its graphs by compile(module,
    inputs, **rest)."""
    with needed("compiler of Inductor"):
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner

    def inner(module: fx.GraphModule, given: Any, **rest: Any) -> Any:
        return around(compile_fx_inner, module, given, **rest)

    patches = {"custom_partitioner_fn": partitioner, "force_disable_caches": True}
    return cast(Callable[..., Any], compile_fx(gm, inputs, inner_compile=inner, config_patches=patches))
