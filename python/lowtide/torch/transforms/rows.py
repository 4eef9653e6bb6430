"""Whether a part of an op gives its rows the bits that they have in the whole.

No kernel promises it.  What is known of PyTorch's on a CPU, by trying them on random numbers of many sizes
(docs/why/exact.md): products, convolutions and attention do if they are cut along their first dimension, as long as
products in single precision keep four rows and have more than one column; what is reduced within a row does; and
what works element by element does where each of its results is one rounding, or where a part is a whole number of the
vectors in which kernels work, since what is left over goes through another implementation of exp and the like.
"""

from __future__ import annotations

from typing import Any

import torch

from ..operators import Kernel

aten = torch.ops.aten
_VECTORS = 128  # bytes of the two widest vectors, which are the step of kernels that work element by element
_ROWS = 4  # of a product
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
    if kernel.flops or any(word in name for word in _BY_CHANNEL):
        return _adds_up(entry, whole) or _is_cut_first(entry, whole) and not _is_small(kernel)
    if torch.Tag.pointwise in target.tags and name not in _EXACT:
        step = _VECTORS * torch.get_num_threads()
        return all(t.numel() * t.element_size() % step == 0 for t in kernel.written if t.is_floating_point())
    return True


def lies_otherwise(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Does it read all of what the whole reads, in another order?  A kernel may be chosen by that."""
    lies = {(o["argument"], o.get("index")): (o["shape"], o.get("strides")) for o in whole.get("operands", ())}
    for operand in entry["operands"]:
        shape, strides = lies.get((operand["argument"], operand.get("index")), (None, None))
        if operand["shape"] == shape and operand.get("strides") != strides:
            return True
    return False


def _adds_up(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Is all that it makes a summand of what the whole makes?"""
    shapes = {(o["argument"], o.get("index")): o["shape"] for o in whole.get("results", ())}
    return all(shapes.get((r["argument"], r.get("index"))) == r["shape"] for r in entry["results"])


def _is_cut_first(entry: dict[str, Any], whole: dict[str, Any]) -> bool:
    """Are all that it reads and makes the whole's, or some of the whole's along the first dimension?"""
    for kind in ("operands", "results"):
        shapes = {(o["argument"], o.get("index")): o["shape"] for o in whole.get(kind, ())}
        for operand in entry[kind]:
            of_whole = shapes.get((operand["argument"], operand.get("index")))
            if of_whole is None or operand["shape"][1:] != of_whole[1:]:
                return False
    return True


def _is_small(kernel: Kernel) -> bool:
    if kernel.target not in _PRODUCTS or kernel.written[0].dtype not in (torch.float32, torch.float64):
        return False
    rows, columns = kernel.written[0].shape
    return rows < _ROWS or columns < 2
