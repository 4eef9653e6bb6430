"""Joint FX graph of a training step -> Lowtide graph (a dict in the key order of the file format).

A tensor is one storage; a node whose results all live in storages that exist already is a view and no
op.  The order of the nodes is the order given.  Between forward and backward stands the barrier: it
takes the forward's results and makes the tangents, as control goes to the user and back.

What is not one node, one op:

* Dropout becomes `lowtide.dropout_mask` (draws, no inputs, runs once) and `lowtide.dropout_apply`
  (input and mask -> output, may run again).
* Batch norm in training reads and moves its running statistics, but its result does not depend on
  them.  It becomes `aten.native_batch_norm` (input, weight, bias -> output, mean, inverse deviation;
  may run again) and `lowtide.batch_norm_stats`, which has no output and moves both statistics in place,
  once: from the batch's mean and inverse deviation, as they follow from these two and the batch's size.
  Its backward reads no running statistics in training, so that they are no inputs of it either.
  Where the step itself uses the moved statistics again (a module that runs twice), the functional form
  with five outputs stays: it changes nothing in place.
* Tracing turns an update in place (a counter, a moving average) into a new value that the caller writes
  back when the forward has ended.  Here that is an `aten.copy_` without outputs before the barrier; a
  pointwise op whose only use it is becomes the update in place that the user wrote (`aten.add_`).
* Random draws follow one another by `after`; the barrier comes after the forward's draws and updates.
"""

from __future__ import annotations

import math
import operator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

from fake_step import ORIGIN, CaptureError
from roofline import Device, kernel_ns

aten = torch.ops.aten
_FUNCTIONAL_BN = aten._native_batch_norm_legit_functional.default
_CONVOLUTIONS = (aten.convolution, aten.convolution_backward)
# the CPU's name for a kernel -> the name under which operations are counted
_COUNTED_AS = {
    "_scaled_dot_product_flash_attention_for_cpu": aten._scaled_dot_product_flash_attention,
    "_scaled_dot_product_flash_attention_for_cpu_backward": aten._scaled_dot_product_flash_attention_backward,
}
_DTYPES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8", torch.uint8: "u8",
    torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
}


def _leaves(tree: Any) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(tree) if isinstance(t, torch.Tensor)]


def _values(tree: Any) -> Any:
    """A tree of FX nodes -> the same tree of fake tensors."""
    return pytree.tree_map_only(torch.fx.Node, lambda n: n.meta.get("val"), tree)


def _arguments(node: torch.fx.Node) -> dict[str, Any]:
    """Arguments by the names of the operator's schema, defaults filled in."""
    named = {}
    for i, a in enumerate(node.target._schema.arguments):
        named[a.name] = node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
    return named


def _touched_bytes(tensors: list[torch.Tensor]) -> int:
    """Bytes a kernel moves: each view once, a broadcast (stride 0) as often as it is stored."""
    total, seen = 0, set()
    for t in tensors:
        key = (t.untyped_storage()._cdata, t.storage_offset(), t.size(), t.stride())
        if key not in seen:
            seen.add(key)
            stored = 1
            for size, stride in zip(t.size(), t.stride()):
                stored *= size if stride else 1
            total += stored * t.element_size()
    return total


@dataclass
class _Op:
    """An op under construction.  `after` holds ops, not indices: the order is not final yet."""

    name: str
    kind: str
    inputs: list[int]
    outputs: list[int]
    time: int
    phase: str | None
    origin: str | None
    recomputable: bool = True
    after: list[_Op] = field(default_factory=list)
    mutates: list[int] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    pointwise: bool = False


class _Lowering:
    def __init__(self, module: torch.fx.GraphModule, device: Device) -> None:
        self.module, self.device = module, device
        self.tensors: list[dict[str, Any]] = []
        self.ops: list[_Op] = []
        self.home: dict[int, int] = {}  # storage -> tensor
        self.producer: dict[int, _Op] = {}
        self.drawn: _Op | None = None  # the last random draw or other effect
        self.barrier: _Op | None = None
        *self.nodes, output = module.graph.nodes
        self.results = list(zip(pytree.tree_leaves(output.args, is_leaf=lambda x: x is None), output.meta["desc"]))

    # ---- tensors

    def tensor(self, t: torch.Tensor, name: str, role: str | None = None) -> int:
        """The tensor of t's storage; made, and named, when the storage is new."""
        storage = t.untyped_storage()
        if storage._cdata not in self.home:
            if t.dtype not in _DTYPES:
                raise CaptureError(f"{name}: the format has no name for number type {t.dtype}")
            self.home[storage._cdata] = len(self.tensors)
            self.tensors.append({"name": name, "bytes": storage.nbytes(), "role": role,
                                 "shape": list(t.shape), "dtype": _DTYPES[t.dtype]})
        return self.home[storage._cdata]

    def known(self, tensors: list[torch.Tensor]) -> list[int]:
        return list(dict.fromkeys(self.home[t.untyped_storage()._cdata] for t in tensors))

    def fresh(self, node: torch.fx.Node) -> list[torch.Tensor]:
        """The results of a node that own storages nobody had before, each storage once."""
        new = {t.untyped_storage()._cdata: t for t in reversed(_leaves(node.meta.get("val")))
               if t.untyped_storage()._cdata not in self.home}
        return list(reversed(new.values()))

    # ---- ops

    def add(self, op: _Op, effect: bool = False) -> _Op:
        """Append an op; an effect (a random draw, a collective) follows the one before it."""
        if effect:
            op.recomputable = False
            op.after += [self.drawn] if self.drawn else []
            if self.barrier and self.barrier not in op.after:
                op.after.append(self.barrier)
            self.drawn = op
        self.ops.append(op)
        self.producer.update(dict.fromkeys(op.outputs, op))
        return op

    def lower(self, node: torch.fx.Node) -> None:
        if node.op == "get_attr":
            value = operator.attrgetter(node.target)(self.module)
            node.meta["val"] = value
            for t in _leaves(value):
                self.tensor(t, node.name, "constant")
            return
        if node.op != "call_function":
            raise CaptureError(f"{node.name}: a node of kind {node.op} cannot be captured")
        fresh = self.fresh(node)
        if node.target is operator.getitem or (isinstance(node.target, torch._ops.OpOverload) and not fresh
                                               and _leaves(node.meta.get("val"))):
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise CaptureError(f"{node.name}: {node.target} is a higher-order operator or a plain function; only "
                               "operators on tensors can be captured (call the model without torch.compile, "
                               "flex_attention or control-flow operators)")
        if node.target._schema.is_mutable:
            raise CaptureError(f"{node.name}: {node.target} writes to its arguments and was not made functional")
        arguments = _arguments(node)
        if node.target is aten.native_dropout.default and arguments["p"] and arguments["train"] is not False:
            self.dropout(node, arguments)
        elif node.target is _FUNCTIONAL_BN and self.statistics_unused(node):
            self.batch_norm(node, arguments)
        else:
            self.plain(node, arguments, fresh)

    def base(self, node: torch.fx.Node, kind: str, read: list[torch.Tensor], written: list[torch.Tensor],
             name: str = "", flops: int = 0) -> _Op:
        """An op of `kind` that reads and writes these fake tensors; the written ones get their storages."""
        name = name or node.name
        floats = [t.dtype for t in (*read, *written) if t.dtype.is_floating_point or t.dtype.is_complex]
        dtype = _DTYPES.get(floats[0], "f32") if floats else "f32"
        if dtype == "f32" and node.target.overloadpacket in _CONVOLUTIONS:
            dtype = "tf32"
        inputs = self.known(read)
        outputs = [self.tensor(t, name if i == 0 else f"{name}.{i}") for i, t in enumerate(written)]
        return _Op(name, kind, inputs, outputs,
                   kernel_ns(self.device, flops, dtype, _touched_bytes(read) + _touched_bytes(written)),
                   "backward" if "backward" in node.meta.get("partitioner_tag", "") else "forward",
                   self.origin(node, inputs), attributes={"flops": flops} if flops else {})

    def origin(self, node: torch.fx.Node, inputs: list[int]) -> str | None:
        path = node.meta.get("custom", {}).get(ORIGIN)
        if path is None:  # a sum of two gradients: with whoever made the second
            path = next((self.producer[t].origin for t in reversed(inputs) if t in self.producer), None)
        return path.removeprefix("model.") or None if path else None

    def plain(self, node: torch.fx.Node, arguments: dict[str, Any], fresh: list[torch.Tensor]) -> None:
        dropped = ()
        if node.target is aten.native_batch_norm_backward.default and arguments["train"]:
            dropped = ("running_mean", "running_var")
        read = _leaves(_values([value for key, value in arguments.items() if key not in dropped]))
        op = self.base(node, str(node.target.overloadpacket), read, fresh, flops=_flops(node, arguments))
        op.pointwise = torch.Tag.pointwise in node.target.tags
        op.attributes = _attributes(node, arguments) | op.attributes
        self.add(op, effect=_is_effect(node, arguments))

    def dropout(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mask = node.meta["val"]
        (source,) = _leaves(_values([arguments["input"]]))
        op = self.base(node, "lowtide.dropout_mask", [], [mask], f"{node.name}.mask")
        op.attributes = {"p": arguments["p"]}
        op.origin = self.origin(node, self.known([source]))
        self.add(op, effect=True)
        op = self.base(node, "lowtide.dropout_apply", [source, mask], [out])
        op.attributes = {"p": arguments["p"]}
        self.add(op)

    def statistics_unused(self, node: torch.fx.Node) -> bool:
        """Are the moved running statistics read by nothing but their write-back (and a blind backward)?"""
        back = {desc.mutated_input: value for value, desc in self.results if hasattr(desc, "mutated_input")}
        for item in node.users:
            if item.args[1] < 3:
                continue
            old = node.args[item.args[1]]  # arguments 3 and 4 are the statistics, and so are results 3 and 4
            if old.op != "placeholder" or back.get(old.meta["desc"]) is not item:
                return False
            for user in item.users:
                if user.op != "output" and not (user.target is aten.native_batch_norm_backward.default and user.args[7]):
                    return False
        return True

    def batch_norm(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mean, invstd, new_mean, new_var = node.meta["val"]
        pure = _leaves(_values([arguments[key] for key in ("input", "weight", "bias")]))
        old = _leaves(_values([arguments[key] for key in ("running_mean", "running_var")]))
        name = node.name.replace("_native_batch_norm_legit_functional", "native_batch_norm")
        op = self.base(node, "aten.native_batch_norm", pure, [out, mean, invstd], name)
        op.attributes = {"eps": arguments["eps"]}
        self.add(op)
        moved = self.known(old)
        stats = self.base(node, "lowtide.batch_norm_stats", [*old, mean, invstd], [], f"{name}.stats")
        stats.recomputable, stats.mutates = False, moved
        stats.attributes = {"momentum": arguments["momentum"]}
        self.add(stats)
        for t, tensor in zip((new_mean, new_var), moved):
            self.home[t.untyped_storage()._cdata] = tensor

    # ---- the end of the forward

    def write_back(self) -> list[_Op]:
        """Updates of inputs in place, at the forward's end; returns the ops that make them."""
        wanted = {id(node) for node, desc in self.results if not hasattr(desc, "mutated_input")}
        writers = [op for op in self.ops if op.mutates]
        for source, desc in self.results:
            if not hasattr(desc, "mutated_input"):
                continue
            target = next(n for n in self.nodes if n.op == "placeholder" and n.meta["desc"] == desc.mutated_input)
            (new,), (old,) = self.known(_leaves(source.meta["val"])), self.known(_leaves(target.meta["val"]))
            if new == old:
                continue  # batch norm's statistics, or nothing changed
            op = self.producer.get(new)
            alone = op and op.outputs == [new] and len(source.users) == 1 and id(source) not in wanted
            if alone and self.updates(op, source, target, new, old):
                op.kind, op.outputs, op.mutates, op.recomputable = op.kind + "_", [], [old], False
                op.inputs = list(dict.fromkeys([*op.inputs, old]))
                self.tensors[new] = {}  # nobody ever holds it
            else:
                name = f"copy_{target.name}"
                pair = [*_leaves(target.meta["val"]), *_leaves(source.meta["val"])]
                moved = _touched_bytes(pair)
                op = _Op(name, "aten.copy_", [old, new], [], kernel_ns(self.device, 0, "f32", moved), "forward",
                         _owner(desc.mutated_input), recomputable=False, mutates=[old])
                self.add(op)
            writers.append(op)
        return writers

    def updates(self, op: _Op, source: torch.fx.Node, target: torch.fx.Node, new: int, old: int) -> bool:
        """Can `op` write straight into `old`: element by element, read by nobody later?"""
        after = self.ops[self.ops.index(op) + 1:]
        same = source.meta["val"].stride() == target.meta["val"].stride() and source.op == "call_function"
        plain = same and self.tensors[new]["bytes"] == self.tensors[old]["bytes"] \
            and self.tensors[new]["dtype"] == self.tensors[old]["dtype"]
        direct = old not in op.inputs or target in source.all_input_nodes
        views = any(a is not target and old in self.known(_leaves(a.meta.get("val"))) for a in source.all_input_nodes)
        read = any(old in later.inputs or new in later.inputs for later in after)
        return op.pointwise and plain and direct and not views and not read

    def cross(self, tangents: list[torch.fx.Node]) -> None:
        """The barrier: everything the forward hands out goes in, the tangents come out."""
        writers = self.write_back()
        given = [n for n, desc in self.results if n is not None and type(desc).__name__ == "PlainAOTOutput"]
        inputs = self.known(_leaves(_values(given)))
        outputs = [self.tensor(t, n.name) for n in tangents for t in _leaves(n.meta["val"])]
        first = [*writers, *([self.drawn] if self.drawn else [])]
        self.barrier = self.add(_Op("barrier", "lowtide.barrier", inputs, outputs, 0, None, None, False, first))

    # ---- all of it

    def run(self, name: str) -> dict[str, Any]:
        tangents, body = [], []
        for node in self.nodes:
            if node.op != "placeholder":
                body.append(node)
            elif type(node.meta["desc"]).__name__ == "TangentAOTInput":
                tangents.append(node)
            else:
                label, role = _describe(node)
                for t in _leaves(node.meta.get("val")):
                    self.tensor(t, label, role)
        is_backward = [("backward" in n.meta.get("partitioner_tag", "")) for n in body]
        for node in (n for n, late in zip(body, is_backward) if not late):
            self.lower(node)
        self.cross(tangents)
        for node in (n for n, late in zip(body, is_backward) if late):
            self.lower(node)
        outputs: list[int] = []
        grads: dict[int, list[str]] = {}
        for node, desc in self.results:
            if node is None or hasattr(desc, "mutated_input"):
                continue
            for tensor in self.known(_leaves(node.meta["val"])):
                if tensor in self.producer:  # an input handed out again is there anyway
                    outputs.append(tensor)
                if hasattr(desc, "grad_of"):
                    grads.setdefault(tensor, []).append(_label(desc.grad_of))
        for tensor, names in grads.items():
            if tensor in self.producer:
                self.tensors[tensor] |= {"name": " ".join(f"{n}.grad" for n in names), "role": "gradient"}
        self.check_reads()
        return self.finish(name, list(dict.fromkeys(outputs)))

    def check_reads(self) -> None:
        """No op may read what an earlier one changed in place: eager PyTorch refuses that too."""
        changed: dict[int, _Op] = {}
        for op in self.ops:
            for t in op.inputs:
                if t in changed:
                    raise CaptureError(f"{op.name} ({op.origin or 'no module'}) reads {self.tensors[t]['name']} as it was "
                                       f"before {changed[t].name} changed it in place; clone it before the change")
            changed.update(dict.fromkeys(op.mutates, op))

    def finish(self, name: str, outputs: list[int]) -> dict[str, Any]:
        """Indices without gaps, defaults left to the writer, keys in the order of the format."""
        new = {old: i for i, old in enumerate(i for i, t in enumerate(self.tensors) if t)}
        place = {id(op): i for i, op in enumerate(self.ops)}
        ops = [{"name": op.name, "kind": op.kind, "inputs": [new[t] for t in op.inputs],
                "outputs": [new[t] for t in op.outputs], "time": op.time, "recomputable": op.recomputable,
                "after": sorted(place[id(o)] for o in op.after), "mutates": [new[t] for t in op.mutates],
                "phase": op.phase, "origin": op.origin, "attributes": op.attributes} for op in self.ops]
        return {"format": "lowtide-graph", "version": 1, "name": name, "tick": "ns", "resident_bytes": 0,
                "tensors": [t for t in self.tensors if t], "ops": ops, "outputs": [new[t] for t in outputs]}


def _label(descriptor: Any) -> str:
    """An input's name for people: the path of a parameter or buffer, or which argument it is."""
    if hasattr(descriptor, "target"):
        return descriptor.target.removeprefix("model.")
    return f"input{descriptor.idx}" if hasattr(descriptor, "idx") else type(descriptor).__name__


def _owner(descriptor: Any) -> str | None:
    return _label(descriptor).rpartition(".")[0] or None


def _describe(node: torch.fx.Node) -> tuple[str, str]:
    descriptor = node.meta["desc"]
    kind = type(descriptor).__name__
    role = {"ParamAOTInput": "parameter", "BufferAOTInput": "state"}.get(kind, "input")
    return _label(descriptor), role


def _is_effect(node: torch.fx.Node, arguments: dict[str, Any]) -> bool:
    """Must it run exactly once, in order with its like?  Attention is random only with dropout."""
    if "c10d" in node.target.namespace:
        return True
    if torch.Tag.nondeterministic_seeded not in node.target.tags:
        return False
    if "scaled_dot_product" in node.target.name() or node.target is aten.native_dropout.default:
        p = arguments.get("dropout_p", arguments.get("p", 0.0))
        return p != 0 and arguments.get("train") is not False
    return True


def _flops(node: torch.fx.Node, arguments: dict[str, Any]) -> int:
    """Operations by PyTorch's own counter; 0 where it has no formula (what streams, not computes)."""
    packet = node.target.overloadpacket
    count = flop_registry.get(_COUNTED_AS.get(packet.__name__, packet))
    if count is None:
        return 0
    flops = int(count(*_values(node.args), **_values(node.kwargs), out_val=node.meta["val"]))
    return flops // 2 if arguments.get("is_causal") else flops  # the counter ignores the skipped triangle


def _attributes(node: torch.fx.Node, arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that are no tensors and differ from the operator's defaults; paths of views stay out."""
    kept = {}
    for a in node.target._schema.arguments:
        value = arguments[a.name]
        value = list(value) if isinstance(value, (tuple, list)) else value
        parts = value if isinstance(value, list) else [value]
        plain = parts and all(isinstance(v, (int, str)) or isinstance(v, float) and math.isfinite(v) for v in parts)
        if plain and value != a.default_value and a.name != "pin_memory":
            kept[a.name] = value
    return kept


def lower(module: torch.fx.GraphModule, device: Device, name: str) -> dict[str, Any]:
    """The joint graph of fake_step.trace_step as a Lowtide graph, priced on `device`.

    Raises CaptureError for an operator that a plan could not run or for a read after an update.
    """
    return _Lowering(module, device).run(name)
