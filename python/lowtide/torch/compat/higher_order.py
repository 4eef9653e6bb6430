"""Higher-order operators of PyTorch that compute tensors: flex attention, and Triton kernels of a model's own."""

from __future__ import annotations

from typing import Any

from torch import fx

from .versions import needed

with needed("higher-order operators"):
    from torch._higher_order_ops.flex_attention import flex_attention, flex_attention_backward
    from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional

__all__ = ["HIGHER_ORDER", "block_mask_of", "is_flex_attention", "score_buffers_of", "triton_kernel_of"]

HIGHER_ORDER = (flex_attention, flex_attention_backward, triton_kernel_wrapper_functional)
_MASK_AT: dict[Any, int] = {flex_attention: 4, flex_attention_backward: 9}


def is_flex_attention(target: Any) -> bool:
    return target in _MASK_AT


def block_mask_of(node: fx.Node) -> Any:
    """The block mask of a call of flex attention: sizes, and tensors of counts and of indices of blocks, by turns from its third
    element on."""
    return node.args[_MASK_AT[node.target]]


def score_buffers_of(node: fx.Node) -> Any:
    """What the score function of a backward of flex attention reads beside scores; empty for other nodes."""
    return node.args[12] if node.target is flex_attention_backward else ()


def triton_kernel_of(node: fx.Node) -> tuple[str, str] | None:
    """Of a call of a Triton kernel its text, with that of the functions it calls, and what it is given beside the graph's tensors."""
    if node.target is not triton_kernel_wrapper_functional:
        return None
    given: Any = node.kwargs
    kernel: Any = kernel_side_table.get_kernel(given["kernel_idx"])
    constants = kernel_side_table.get_constant_args(given["constant_args_idx"])
    tuned = list(map(str, getattr(kernel, "configs", ())))
    return "\n".join(_texts(kernel, {})), repr((sorted(constants.items(), key=str), tuned))


def _texts(kernel: Any, known: dict[int, str]) -> list[str]:
    while not hasattr(kernel, "src") and hasattr(kernel, "fn"):
        kernel = kernel.fn  # of one that is tuned
    if id(kernel) not in known:
        known[id(kernel)] = str(getattr(kernel, "src", kernel))
        function: Any = getattr(kernel, "fn", None)
        for name in getattr(getattr(function, "__code__", None), "co_names", ()):
            called = function.__globals__.get(name)
            if hasattr(called, "src"):
                _texts(called, known)
    return list(known.values())
