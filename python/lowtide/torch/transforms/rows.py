"""Whether a part of an op may compute its rows with the same bits as the whole.

No kernel guarantees it, and libraries select kernels by size and processor, so doubtful cases are tested before they are used
(trial.py).  For PyTorch's CPU kernels the following is known from tests on random numbers of many sizes (docs/why/exact.md).
Products, convolutions and attention keep their rows if they are sliced along their first dimension, products in single
precision have at least four rows and more than one column, and products in half precision are not tiny.  Reductions within a
row keep it.  Elementwise ops keep it if each result is one rounding, or if the elements of a thread are a multiple of the vector
length, in the part and in the whole: the remainder uses another implementation of exp and similar functions.  Clusters, which
Inductor compiles for each size, keep their rows if they are sliced along their first dimension, and are always tested.  On other
devices only single roundings are known to be exact.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch

from ..clusters.cluster import CLUSTER
from ..tensors.operators import Kernel

aten = torch.ops.aten
_VECTORS = 128  # bytes of the two widest vectors, which are the step of kernels that work element by element
_GRAIN = 32768  # elements that are worth another thread (ATen's GRAIN_SIZE)
_ROWS = 4  # of a product
_TINY = 4096  # multiplications of a product in half precision that is not worth its kernel's set-up (ATen's use_mkldnn_matmul)
_REDUCTIONS = ("sum", "mean", "var", "std", "norm", "softmax", "logsumexp", "prod")  # and whatever is called after them
_PRODUCTS = (aten.mm.default, aten.addmm.default)
_BY_CHANNEL = ("batch_norm",)
# of one rounding, or none
_EXACT = {"abs", "add", "bitwise_and", "bitwise_not", "bitwise_or", "ceil", "clamp", "clamp_max", "clamp_min", "clone", "copy", "div",
          "eq", "fill", "floor", "ge", "gt", "hardtanh", "hardtanh_backward", "le", "leaky_relu", "leaky_relu_backward",
          "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "maximum", "minimum", "mul", "native_dropout_backward",
          "ne", "neg", "relu", "round", "rsub", "sgn", "sign", "sqrt", "sub", "threshold", "threshold_backward", "to_copy",
          "_to_copy", "where"}


def keeps_rows_bits(kernel: Kernel, entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """kernel: of the part.  entry, whole: what the graph says of the part and of its op."""
    target = kernel.target
    name = target.overloadpacket.__name__
    one_rounding = torch.Tag.pointwise in target.tags and name in _EXACT
    if one_rounding or any(t.device.type != "cpu" for t in kernel.written):
        return one_rounding
    if target is CLUSTER:
        return _adds_up(entry, whole) or _is_cut_first(entry, whole)
    if kernel.flops or any(word in name for word in _BY_CHANNEL):
        return _adds_up(entry, whole) or _is_cut_first(entry, whole) and not _is_small(kernel)
    if torch.Tag.pointwise in target.tags:
        return _is_cut_first(entry, whole) and _in_whole_vectors(kernel, entry, whole)
    if any(word in name for word in _REDUCTIONS):
        return _adds_up(entry, whole) or _is_cut_first(entry, whole)
    return True


def needs_trial(kernel: Kernel, entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Does it hang on the machine whether a part keeps its rows' bits, of which keeps_rows_bits says that it does?"""
    target = kernel.target
    one_rounding = torch.Tag.pointwise in target.tags and target.overloadpacket.__name__ in _EXACT
    return not one_rounding and kernel.written[0].is_floating_point() and _is_cut_first(entry, whole) and not _adds_up(entry, whole)


def _in_whole_vectors(kernel: Kernel, entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Does each thread get whole vectors, of the part and of the whole?"""
    widths = {t.element_size() for t in kernel.written if t.is_floating_point()}

    def of_a_thread(elements: int) -> int:
        threads = max(1, min(torch.get_num_threads(), -(-elements // _GRAIN)))
        return -(-elements // threads)

    counts = [math.prod(result["shape"]) for op in (entry, whole) for result in op.get("results", ())]
    return all(of_a_thread(count) * width % _VECTORS == 0 for count in counts for width in widths)


def lies_otherwise(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Does it read all of what the whole reads, in another order?  A kernel may be chosen by that."""
    return any(of_whole and operand["shape"] == of_whole["shape"] and operand.get("strides") != of_whole.get("strides")
               for operand, of_whole in _beside("operands", entry, whole))


def _adds_up(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Is all that it makes a summand of what the whole makes?"""
    return all(of_whole and result["shape"] == of_whole["shape"] for result, of_whole in _beside("results", entry, whole))


def _is_cut_first(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Are all that it reads and makes the whole's, or some of the whole's along the first dimension?"""
    return all(of_whole and operand["shape"][1:] == of_whole["shape"][1:]
               for kind in ("operands", "results") for operand, of_whole in _beside(kind, entry, whole))


def _beside(kind: str, entry: dict[str, Any], whole: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any] | None]]:
    """The operands or results of a part, each with the whole's in its place, if that has one."""
    there = {(o["argument"], o.get("index")): o for o in whole.get(kind, ())}
    return ((o, there.get((o["argument"], o.get("index")))) for o in entry[kind])


def _is_small(kernel: Kernel) -> bool:
    if kernel.target not in _PRODUCTS:
        return False
    if kernel.written[0].dtype not in (torch.float32, torch.float64):
        return kernel.flops <= 2 * _TINY
    rows, columns = kernel.written[0].shape
    return rows < _ROWS or columns < 2
