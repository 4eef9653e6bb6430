"""The facts that one node of an FX graph has about its operator: tensors, bytes, operations, effects, arguments."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

from ...frontend.errors import CaptureError
from ..compat import counting, pytree
from ..compat.dispatch import OpOverload, auto_functionalized_v2
from ..compat.fake import FakeTensor, FakeTensorMode
from .effects import has_effects, may_communicate
from .storages import storage

aten = torch.ops.aten

DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.float8_e4m3fn: "f8e4m3fn", torch.float8_e5m2: "f8e5m2", torch.float8_e4m3fnuz: "f8e4m3fnuz",
    torch.float8_e5m2fnuz: "f8e5m2fnuz", torch.float8_e8m0fnu: "f8e8m0fnu",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
    torch.uint64: "u64", torch.uint32: "u32", torch.uint16: "u16",
    torch.bool: "bool", torch.complex32: "c32", torch.complex64: "c64", torch.complex128: "c128",
}  # fmt: skip

# the CPU's name for a kernel -> the name under which PyTorch counts its operations
_COUNTED_AS = {
    "_scaled_dot_product_flash_attention_for_cpu": aten._scaled_dot_product_flash_attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": aten._scaled_dot_product_flash_attention_backward,
}


@dataclass(frozen=True)
class Kernel:
    """One call of an operator to be priced: arguments and results as fake tensors, operations counted.

    written: of the results, those that the op it is priced for makes.
    """

    target: OpOverload
    args: Any
    kwargs: dict[str, Any]
    read: list[torch.Tensor]
    written: list[torch.Tensor]
    results: Any
    flops: int = 0

    @property
    def operator(self) -> OpOverload:
        return operator_of(self.target, self.args)


def operator_of(target: Any, args: Any) -> Any:
    """The operator that a call runs; of one that writes to its arguments, and gets copies of them, that one."""
    return args[0] if target is auto_functionalized_v2 else target


def leaves(tree: Any) -> list[torch.Tensor]:
    """The tensors in a tree of results or arguments, in order."""
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def flags_of(t: torch.Tensor) -> tuple[OpOverload, ...]:
    """The operators that flag a view as a conjugate or a negative, which a kernel has yet to compute (often in a copy)."""
    flags = ((t.is_conj(), aten._conj.default), (t.is_neg(), aten._neg_view.default))
    return tuple(operator for is_so, operator in flags if is_so)


def flagged_as(like: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
    """A view of t with the flags of another tensor."""
    for operator in flags_of(like):
        t = operator(t)
    return t


def values(tree: Any) -> Any:
    """A tree of FX nodes -> the same tree of their fake tensors, and of numbers like those that come."""
    return pytree.tree_map_only(torch.fx.Node, lambda n: _concrete(n.meta.get("val")), tree)


def _concrete(value: Any) -> Any:
    return value.node.hint if is_symbol(value) else value


def is_symbol(value: Any) -> bool:
    """Is it a number that is known when the step runs?"""
    return isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool))


def arguments_of(node: torch.fx.Node) -> dict[str, Any]:
    """A node's arguments by the names of its operator's schema, defaults filled in."""
    named = {}
    target: Any = node.target
    for i, a in enumerate(target._schema.arguments):
        named[a.name] = node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
    return named


def operand(node: torch.fx.Node, i: int = 0) -> torch.fx.Node:
    """An argument of a node that is a node itself."""
    given = node.args[i]
    assert isinstance(given, torch.fx.Node)
    return given


def fake_mode_of(t: torch.Tensor) -> FakeTensorMode:
    """The mode of a fake tensor."""
    assert isinstance(t, FakeTensor)
    return t.fake_mode


def device_of(node: torch.fx.Node) -> torch.device:
    """The device of a node's results."""
    return leaves(node.meta["val"])[0].device


def is_tangent(node: torch.fx.Node) -> bool:
    """Is it an input that the backward gets from the caller?"""
    return node.op == "placeholder" and (node.name.startswith("tangents")
                                         or type(node.meta.get("desc")).__name__ == "TangentAOTInput")


def is_backward(node: torch.fx.Node) -> bool:
    return "backward" in node.meta.get("partitioner_tag", "")


def late_nodes(graph: torch.fx.Graph) -> set[torch.fx.Node]:
    """The nodes of a joint graph that belong behind the barrier.  Tracing leaves the backward of a custom autograd function
    without a tag, so what follows from the backward is of the backward."""
    late: set[torch.fx.Node] = set()
    for node in graph.nodes:
        if node.op != "output" and (is_backward(node) or is_tangent(node) or not late.isdisjoint(node.all_input_nodes)):
            late.add(node)
    return late


def touched_bytes(tensors: list[torch.Tensor]) -> int:
    """Bytes a kernel moves: each view once, and of a broadcast (stride 0) only what is stored."""
    total, seen = 0, set()
    for t in tensors:
        key = (storage(t), t.storage_offset(), t.size(), t.stride())
        if key not in seen:
            seen.add(key)
            stored = (size if stride else 1 for size, stride in zip(t.size(), t.stride(), strict=True))
            total += math.prod(stored) * t.element_size() if t.numel() else 0
    return total


def operations(node: torch.fx.Node, arguments: dict[str, Any]) -> int:
    """Floating-point operations by PyTorch's own counter; 0 where it has no formula (what only streams)."""
    try:
        flops = operations_of(node.target, values(node.args), values(node.kwargs), node.meta.get("val"))
    except Exception as error:
        raise CaptureError(f"{node.name}: PyTorch cannot count the operations of {node.target}: {error}") from error
    return flops // 2 if arguments.get("is_causal") else flops  # the counter ignores the skipped triangle


def operations_of(target: Any, args: Any, kwargs: Any, results: Any) -> int:
    """The same of a call on fake tensors, in whole triangles."""
    packet = target.overloadpacket
    return counting.operations_of(_COUNTED_AS.get(packet.__name__, packet), target, args, kwargs, results) or 0


def may_recompute(node: torch.fx.Node) -> bool:
    """Has the user given leave to compute it twice, by a mark of torch.utils.checkpoint?"""
    return node.meta.get("recompute") in (CheckpointPolicy.MUST_RECOMPUTE, CheckpointPolicy.PREFER_RECOMPUTE)


def is_marked(node: torch.fx.Node) -> bool:
    """Was it traced within torch.utils.checkpoint?"""
    return "ac_graph_id" in node.meta or "recompute" in node.meta


def is_effect(node: torch.fx.Node, arguments: dict[str, Any]) -> bool:
    """Must it run exactly once, in order with its like?

    Collectives and the like (effects.py), and random draws.  Dropout and attention are marked as random even
    where they draw nothing; the backward of attention repeats its forward's draw from the saved seed.
    """
    target = operator_of(node.target, node.args)
    if has_effects(target) or target is torch.ops.prims.inductor_seeds.default:
        return True
    if may_communicate(target):
        return not may_recompute(node)
    if torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    if target is aten.native_dropout.default:
        return arguments["p"] != 0 and arguments["train"] is not False
    if "scaled_dot_product" in target.name():
        return arguments["dropout_p"] != 0 and not target.name().endswith("_backward")
    return True


def attributes_of(node: torch.fx.Node, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments that are numbers, strings or lists of them and differ from the operator's defaults."""
    kept = {}
    target: Any = node.target
    for a in target._schema.arguments:
        value = arguments[a.name]
        value = list(value) if isinstance(value, (tuple, list)) else value
        parts = value if isinstance(value, list) else [value]
        plain = parts and all(isinstance(v, (int, str)) or isinstance(v, float) and math.isfinite(v) for v in parts)
        if plain and value != a.default_value and a.name != "pin_memory":
            kept[a.name] = value
    return kept
