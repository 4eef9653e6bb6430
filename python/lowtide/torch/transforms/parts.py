"""A part of an op: the node's operator, called with slices.

The transformed graph states what each part reads and makes (shapes, strides, offsets), and which arguments differ (sizes; a sum
instead of a mean).  Slices are views of whole storages, by `as_strided`.  Before anything runs, each call is made with fake
tensors, once for all parts that differ only in their offsets.  PyTorch's shape rules must agree with the graph; otherwise the
transforms are rejected, and the message names the node.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import fx

from ...frontend.errors import CaptureError
from ..clusters.cluster import Cluster, known_cluster
from ..compat import pytree
from ..compat.dispatch import without_torch_dispatch
from ..compat.fake import FakeTensor
from ..compat.tensors import suggest_memory_format
from ..program.emitter import Code, Emitter
from ..program.in_place import is_laid_out_as, out_variant_of
from ..program.lowerings.cluster import call_of
from ..tensors.operators import Kernel, flags_of, leaves, operations_of, values
from ..tensors.storages import storage
from ..tracing.real_types import as_really_made

Key = Any  # under which a side knows a value

aten = torch.ops.aten
# Operands whose kernels on a CPU take them to be contiguous, whatever their strides are.  The whole's are; a slice that is
# not is copied for the call.
PACKED = {
    aten.adaptive_max_pool3d_backward.default: {"indices"},
    aten.native_group_norm.default: {"input"},
    aten.native_group_norm_backward.default: {"grad_out", "input", "mean", "rstd"},
    aten.native_layer_norm_backward.default: {"mean", "rstd"},
}


@dataclass(frozen=True)
class Slice:
    """A view of a tensor's storage, by the key under which sides know the tensor.  node: of the joint graph, that makes
    it or a part of it.  views: flags of the view, which are applied one after the other.  packed: it is copied, so that its
    elements lie side by side."""

    key: Key
    node: fx.Node
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    dtype: torch.dtype
    views: tuple[Any, ...] = ()
    packed: bool = False

    def of(self, t: torch.Tensor) -> torch.Tensor:
        """The view of a tensor in that storage."""
        view = t if self.is_all_of(t) else view_of(t, self.shape, self.strides, self.offset, self.dtype,
                                                   began=int(t.storage_offset()))
        for flag in self.views:
            view = flag(view)
        return packed(view) if self.packed else view

    def seen_as(self, node: Any) -> Slice:
        """The slice with the flags that the whole has there: of an argument that is a node."""
        like = node.meta["val"] if isinstance(node, fx.Node) else None
        if not isinstance(like, torch.Tensor):
            return self
        return replace(self, views=flags_of(like))

    def for_call(self, t: torch.Tensor, target: Any, argument: str) -> Slice:
        """The slice of t as that argument of a call: packed where it has to be."""
        if argument not in PACKED.get(target, ()) or is_packed(self.of(t)):
            return self
        return replace(self, packed=True)

    def is_all_of(self, t: torch.Tensor) -> bool:
        return (tuple(t.shape), tuple(t.stride()), t.storage_offset(), t.dtype) == (
            self.shape, self.strides, self.offset, self.dtype)

    def on(self, code: Code) -> fx.Node:
        """The same on one side of a step."""
        value = code.get(self.node) if self.node.op == "get_attr" else code.value(self.key, self.node)
        t = value.meta["val"]
        view = t
        if not self.is_all_of(t):
            view = fake_like(t, self.shape, self.strides, self.dtype)
            args = (value, self.shape, self.strides, self.offset, self.dtype, tuple(t.stride()), t.storage_offset())
            value = code.call(view_of, args, self.node, view)
        for flag in self.views:
            view = flag(view)
            value = code.call(flag, (value,), self.node, view)
        return code.call(packed, (value,), self.node, self.of(t)) if self.packed else value


def view_of(t: torch.Tensor, shape: tuple[int, ...], strides: tuple[int, ...], offset: int,
            dtype: torch.dtype, lies: tuple[int, ...] | None = None, began: int = 0) -> torch.Tensor:
    """The view of t's storage that has these extents, strides and that offset, in elements of `dtype`.

    lies: the strides that t had when the slice was taken.  began: the place of t in its storage then, in its own elements.
    An input may lie elsewhere in its storage in each step, and the view moves with it.
    """
    if lies is not None:
        t = laid_out(t, lies)
    moved = (t.storage_offset() - began) * t.element_size() // dtype.itemsize
    if t.dtype != dtype:
        whole = t.untyped_storage().nbytes() // t.element_size()
        t = t.as_strided((whole,), (1,), 0).view(dtype)
    return t.as_strided(shape, strides, offset + moved)


def laid_out(t: torch.Tensor, strides: tuple[int, ...]) -> torch.Tensor:
    """t with these strides: a copy, if a kernel has given its result others than its fake kernel said.

    Slices are found by their places, so without it they would be of other elements.  What real_types.py corrects needs no
    copy; this holds for what it does not.
    """
    if t.stride() == strides or all(n == 1 or a == b for n, a, b in zip(t.shape, t.stride(), strides, strict=True)):
        return t
    return torch.empty_strided(t.shape, strides, dtype=t.dtype, device=t.device).copy_(t)


def is_packed(t: torch.Tensor) -> bool:
    return t.is_contiguous(memory_format=suggest_memory_format(t))


def packed(t: torch.Tensor) -> torch.Tensor:
    """A copy whose elements lie side by side, in the order of the strides that t has."""
    return t.contiguous(memory_format=suggest_memory_format(t))


@dataclass(frozen=True)
class PartCall:
    """The call of a part.

    arguments: by the names in the schema of `target`; a Slice in the place of each tensor, in lists too.  results: of
    each tensor that is made its key, and which of several results it is (None: the only one).  share: by what the
    results are multiplied.  total: by what they are divided.  shapes: of results that are seen in other shapes than
    the call makes them, by their keys.
    """

    target: Any
    arguments: dict[str, Any]
    results: list[tuple[Key, int | None]]
    share: float | None = None
    total: Slice | None = None
    shapes: dict[Key, tuple[int, ...]] = field(default_factory=dict)

    def kernel(self, fakes: dict[Key, torch.Tensor]) -> Kernel:
        """The call of fake tensors, and what it makes of them."""
        keys = list(dict.fromkeys(part.key for part in pytree.tree_leaves(list(self.arguments.values())) if isinstance(part, Slice)))
        mine = dict(zip(keys, apart([fakes[key] for key in keys]), strict=True))
        args, kwargs = self.bind(lambda part: part.of(mine[part.key]), values)
        made = self.target(*args, **kwargs)
        really = as_really_made(self.target, args, kwargs, made)
        made = made if really is None else really
        flops = operations_of(self.target, args, kwargs, made)
        return Kernel(self.target, args, kwargs, leaves([args, kwargs]), self.written(made), made,
                      flops // 2 if self.arguments.get("is_causal") else flops)

    def written(self, made: Any) -> list[torch.Tensor]:
        """The needed results among all that the call makes."""
        return [made if index is None else made[index] for _, index in self.results]

    def kind(self, fakes: dict[Key, torch.Tensor]) -> Any:
        """The key of calls that differ only in the positions of their slices."""
        places: dict[Key, int] = {}

        def fixed(value: Any) -> Any:
            if isinstance(value, Slice):
                place = places.setdefault(value.key, len(places))  # a product of a tensor with itself reads one
                return place, value.shape, value.strides, value.dtype, value.views, value.packed, fakes[value.key].device
            if isinstance(value, (list, tuple)):
                return tuple(map(fixed, value))
            return type(value), value

        return self.target, tuple(indices for _, indices in self.results), *map(fixed, self.arguments.items())

    def copied_bytes(self, fakes: dict[Key, torch.Tensor]) -> int:
        """Bytes of the copies that live while it runs."""
        copies = (part.of(fakes[part.key]) for part in self.arguments.values() if isinstance(part, Slice) and part.packed)
        return sum(t.numel() * t.element_size() for t in copies)

    def bind(self, of_slice: Any, of_node: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        def bound(value: Any) -> Any:
            if isinstance(value, Slice):
                return of_slice(value)
            if isinstance(value, fx.Node):
                return of_node(value)
            if isinstance(value, (list, tuple)):
                return [bound(v) for v in value]
            return value

        args, kwargs = [], {}
        for a in self.target._schema.arguments:
            if a.kwarg_only:
                kwargs[a.name] = bound(self.arguments[a.name])
            else:
                args.append(bound(self.arguments[a.name]))
        return tuple(args), kwargs


def apart(fakes: list[torch.Tensor]) -> list[torch.Tensor]:
    """The same, with a fake tensor of its own for each: equal parts share what they make, but what one call reads is several."""
    found: dict[int, torch.Tensor] = {}
    for fake in fakes:
        mine = fake_like(fake, fake.shape, fake.stride(), fake.dtype) if storage(fake) in found else fake
        found[storage(mine)] = mine
    return list(found.values())


def fake_like(t: torch.Tensor, shape: Any, strides: Any, dtype: torch.dtype) -> FakeTensor:
    """A fake tensor of its own, on the device of t, which is one."""
    assert isinstance(t, FakeTensor)
    with without_torch_dispatch():
        return FakeTensor(t.fake_mode, torch.empty_strided(shape, strides, dtype=dtype, device="meta"), t.fake_device)


class PartEmitter(Emitter):
    """The call of a part; made: what it makes of fake tensors."""

    def __init__(self, call: PartCall, made: Any) -> None:
        self._call, self._made = call, made
        fakes = leaves(made)
        self._out_variant = out_variant_of(call.target, fakes[0].device.type) if fakes else None

    def may_overwrite(self, argument: str, fakes: dict[Key, torch.Tensor]) -> bool:
        """May it write its only result over that argument, by what both are like?"""
        given = self._call.arguments[argument]
        if self._out_variant is None or argument not in self._out_variant.over or not isinstance(given, Slice) or given.packed or given.views \
                or not isinstance(self._made, torch.Tensor):
            return False
        return given.is_all_of(fakes[given.key]) and is_laid_out_as(fakes[given.key], self._made)

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        node, over_of, call = code.runs[op].own_node, code.runs[op].over, self._call
        args, kwargs = call.bind(lambda part: part.on(code), code.get)
        if over:
            assert self._out_variant is not None, "it may write over none without one"
            written = call.arguments[over_of[over[0]]].on(code)
            made = code.call_over(written, self._out_variant, call.target, args, node, self._made, kwargs)
        else:
            made = self.call(code, args, node, kwargs)
        for key, index in call.results:
            value = made if index is None else code.call(operator.getitem, (made, index), node, self._made[index])
            if call.share is not None:
                value = code.call(weighted, (value, call.share), node, value.meta["val"])
            if call.total is not None:
                value = code.call(divided, (value, call.total.on(code)), node, value.meta["val"])
            if key in call.shapes:
                seen = value.meta["val"].view(call.shapes[key])
                value = code.call(aten.view.default, (value, list(call.shapes[key])), node, seen)
            code.values[key] = value
        return False

    def call(self, code: Code, args: tuple[Any, ...], node: fx.Node, kwargs: dict[str, Any]) -> fx.Node:
        """The node of the call."""
        return code.call(self._call.target, args, node, self._made, kwargs)


class ClusterPartEmitter(PartEmitter):
    """The same of a part of a cluster, which is one itself."""

    @property
    def cluster(self) -> Cluster:
        return known_cluster(self._call.arguments["key"])

    def call(self, code: Code, args: tuple[Any, ...], node: fx.Node, kwargs: dict[str, Any]) -> fx.Node:
        return code.call(call_of(self.cluster), tuple(args[1]), node, self._made)


def weighted(t: torch.Tensor, share: float) -> torch.Tensor:
    """A part's mean -> its share of the whole mean, over it."""
    return t.mul_(share)


def divided(t: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
    """A part's sum -> its share of the mean over `total`, over it."""
    return t.div_(total)


def check(node: fx.Node, entries: list[dict[str, Any]], made: list[torch.Tensor]) -> None:
    """Raises CaptureError, with the node, unless the results of a part are as the graph says they are."""
    for entry, t in zip(entries, made, strict=True):
        said = entry["shape"], [s for s, n in zip(entry["strides"], entry["shape"], strict=True) if n > 1]
        is_ = list(t.shape), [s for s, n in zip(t.stride(), t.shape, strict=True) if n > 1]
        if said != is_:
            raise CaptureError(f"{node.name}: a part of {node.target} makes {is_[0]} with strides {list(t.stride())}, "
                               f"where the split expects {said[0]} with strides {entry['strides']}")
