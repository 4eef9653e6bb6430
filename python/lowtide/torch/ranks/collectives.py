"""What a functional collective sends over the link, and what it holds meanwhile; nothing is run.

A functional collective (`_c10d_functional`) returns at once what it will have made; `wait_tensor` returns the same tensor when it
is there.  Ring algorithms send and receive the share (n - 1) / n of the whole tensor on each of n ranks, an all-reduce twice.
"""

from __future__ import annotations

import functools
import operator
from typing import Any

from torch import fx

from ..compat.dispatch import OpOverload
from ..compat.distributed import group_named
from ..tensors.effects import communicates
from ..tensors.operators import Kernel, arguments_of, operand, touched_bytes

_NAMESPACE = "_c10d_functional"
_GATHERS = ("all_gather_into_tensor", "all_gather_into_tensor_coalesced")
_SCATTERS = ("reduce_scatter_tensor", "reduce_scatter_tensor_coalesced")
_REDUCTIONS = ("all_reduce", "all_reduce_coalesced")
_FACTOR = 12  # bytes of the number by which a sum is divided, before and after its cast
_ASYNCHRONOUS = (*_GATHERS, *_SCATTERS, *_REDUCTIONS, "all_to_all_single", "broadcast")


@functools.cache
def is_wait(target: Any) -> bool:
    """Does it wait for a collective?"""
    return isinstance(target, OpOverload) and target.namespace == _NAMESPACE and _name(target) == "wait_tensor"


@functools.cache
def is_asynchronous(target: Any) -> bool:
    """Is it a collective with results of its own, which are there when `wait_tensor` has returned them?"""
    return isinstance(target, OpOverload) and target.namespace == _NAMESPACE and _name(target) in _ASYNCHRONOUS


def has_collectives(module: fx.GraphModule) -> bool:
    """Does a graph talk to other ranks?"""
    return any(isinstance(node.target, OpOverload) and communicates(node.target) for node in module.graph.nodes)


@functools.cache
def gathers(target: Any) -> bool:
    """Does it bring together the parts of all ranks, and compute nothing?"""
    return is_asynchronous(target) and _name(target) in _GATHERS


def is_awaited(node: fx.Node) -> bool:
    """Is it a collective whose results are read by waits alone?"""
    readers = waits_for(node) if is_asynchronous(node.target) else []
    return bool(readers) and all(is_wait(reader.target) for reader in readers)


def waits_for(node: fx.Node) -> list[fx.Node]:
    """The readers of an awaited collective's results."""
    return [reader for user in node.users for reader in (user.users if user.target is operator.getitem else (user,))]


def collective_of(wait: fx.Node) -> fx.Node | None:
    """The collective that a node waits for, if the graph has both, and nobody reads its results before a wait."""
    source = operand(wait) if is_wait(wait.target) else wait
    made_by = operand(source) if source.target is operator.getitem else source
    return made_by if is_awaited(made_by) else None


def bytes_sent(kernel: Kernel) -> int:
    """The bytes that a collective sends from a rank, and receives."""
    name = _name(kernel.operator)
    read, written = touched_bytes(kernel.read), touched_bytes(kernel.written)
    ranks = group_size(kernel)
    if name.rstrip("_") in _REDUCTIONS or "allreduce" in name:
        return _share(2 * read, ranks)
    if name in ("broadcast", "broadcast_"):
        return read if ranks != 1 else 0
    return _share(max(read, written), ranks)


def held_meanwhile(kernel: Kernel) -> int:
    """Bytes that the group holds from a collective's call until the end of the wait for it, beside what it reads and makes.

    gloo copies what it gathers, into a buffer of its own and out of it, scatters a sum of copies of all that it reads, and flattens
    several tensors into one.  NCCL's buffers are none of PyTorch's.
    """
    arguments = _arguments(kernel)
    group = group_named(arguments.get("group_name"))
    if group is None or group.backend != "gloo" or group.size == 1:
        return 0
    name, read, written = _name(kernel.operator), touched_bytes(kernel.read), touched_bytes(kernel.written)
    several = name.endswith("_coalesced")
    mean = _FACTOR if arguments.get("reduce_op") == "avg" else 0
    if name in _GATHERS:
        return written + read
    if name in _SCATTERS:
        return mean + read
    return mean + several * read if name in _REDUCTIONS else 0


def lets_go_late(node: fx.Node) -> bool:
    """May the group hold the tensors of this collective after the wait for it?"""
    group = group_named(arguments_of(node).get("group_name"))
    return group is not None and group.backend == "gloo"


def _share(whole: int, ranks: int | None) -> int:
    return whole if ranks is None else -(-whole * (ranks - 1) // ranks)


def _name(target: OpOverload) -> str:
    return target.overloadpacket.__name__


def _arguments(kernel: Kernel) -> dict[str, Any]:
    return dict(zip((a.name for a in kernel.operator._schema.arguments), kernel.args, strict=False)) | kernel.kwargs


def group_size(kernel: Kernel) -> int | None:
    """How many ranks the group has; None if nobody knows."""
    arguments = _arguments(kernel)
    group = group_named(arguments.get("group_name"))
    return arguments.get("group_size") if group is None else group.size
