"""Joint FX graph of a training step -> Lowtide graph.

A tensor is one storage; a node whose results all live in storages that exist already is a view and no
op.  The order of the nodes is the order given.  Between forward and backward stands the barrier: it
takes the forward's results and makes the tangents, as control goes to the user and back.

What is not one node, one op:

* Dropout becomes `lowtide.dropout_mask` (draws, no inputs, runs once) and `lowtide.dropout_apply`
  (input and mask -> output, may run again).
* Batch norm in training reads and moves its running statistics, but its result does not depend on
  them.  It becomes `aten.native_batch_norm` (input, weight, bias -> output, mean, inverse deviation;
  may run again) and `lowtide.batch_norm_stats`, which has no output and moves both statistics in place,
  once: what it needs follows from the batch's mean and inverse deviation and its size.  The backward
  reads no running statistics in training, so they are no inputs of it either.  Where the step itself
  uses the moved statistics again (a module that runs twice), the functional form with five outputs
  stays: it changes nothing in place, and its new statistics are written back like any other buffer.
* Tracing turns an update in place (a counter, a moving average) into a new value that the caller writes
  back when the forward has ended.  Here that is an `aten.copy_` without outputs before the barrier; a
  pointwise op whose only use it is becomes the update in place that the user wrote (`aten.add_`).
* Random draws follow one another by `after`; the barrier comes after the forward's draws and updates,
  because the user sees the generator and the buffers there.
"""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from .fake_step import ORIGIN, CaptureError
from .graph_builder import BrokenOrder, GraphBuilder, Op
from .operators import (
    DTYPES,
    arguments_of,
    attributes_of,
    is_backward,
    is_effect,
    leaves,
    operations,
    storage,
    touched_bytes,
    values,
)
from .roofline import Device, kernel_ns

aten = torch.ops.aten
_FUNCTIONAL_BN = aten._native_batch_norm_legit_functional.default
_BN_BACKWARD = aten.native_batch_norm_backward.default
_CONVOLUTIONS = (aten.convolution, aten.convolution_backward)


def lower(module: torch.fx.GraphModule, device: Device, name: str) -> dict[str, Any]:
    """The joint graph of fake_step.trace_step as the file format's dict, priced on `device`.

    Raises CaptureError for an operator that no plan could run, and for a read after an update in place.
    """
    try:
        return _Lowering(module, device).run(name)
    except BrokenOrder as error:
        raise CaptureError(str(error)) from error


class _Lowering:
    def __init__(self, module: torch.fx.GraphModule, device: Device) -> None:
        self._module, self._device = module, device
        self._graph = GraphBuilder()
        self._home: dict[int, int] = {}  # storage -> tensor
        *self._nodes, output = module.graph.nodes
        results = list(zip(pytree.tree_leaves(output.args), output.meta["desc"], strict=True))
        self._written_back = [(n, desc.mutated_input) for n, desc in results if hasattr(desc, "mutated_input")]
        self._given = [(n, desc) for n, desc in results if n is not None and not hasattr(desc, "mutated_input")]
        self._inputs = {n.meta["desc"]: n for n in self._nodes if n.op == "placeholder"}

    def run(self, name: str) -> dict[str, Any]:
        tangents = []
        for descriptor, node in self._inputs.items():
            kind = type(descriptor).__name__
            if kind == "TangentAOTInput":
                tangents.append(node)
                continue
            role = {"ParamAOTInput": "parameter", "BufferAOTInput": "state"}.get(kind, "input")
            for t in leaves(node.meta.get("val")):
                self._tensor(t, _label(descriptor), role)
        body = [n for n in self._nodes if n.op != "placeholder"]
        for node in body:
            if not is_backward(node):
                self._lower(node)
        self._write_back()
        handed_out = [node for node, desc in self._given if not hasattr(desc, "grad_of")]
        self._graph.cross(self._known(leaves(values(handed_out))),
                          [self._tensor(t, n.name) for n in tangents for t in leaves(n.meta["val"])])
        for node in body:
            if is_backward(node):
                self._lower(node)
        return self._graph.finish(name, self._outputs())

    # ---- tensors

    def _tensor(self, t: torch.Tensor, name: str, role: str | None = None) -> int:
        """The tensor of t's storage; made, and named, when the storage is new."""
        if storage(t) not in self._home:
            if t.dtype not in DTYPES:
                raise CaptureError(f"{name}: numbers of type {t.dtype} cannot be captured")
            size = t.untyped_storage().nbytes()
            self._home[storage(t)] = self._graph.tensor(name, size, role, list(t.shape), DTYPES[t.dtype])
        return self._home[storage(t)]

    def _known(self, tensors: list[torch.Tensor]) -> list[int]:
        return list(dict.fromkeys(self._home[storage(t)] for t in tensors))

    def _outputs(self) -> list[int]:
        """What the step hands out, gradients named; inputs handed out again are there anyway."""
        outputs: list[int] = []
        gradients: dict[int, list[str]] = {}
        for node, descriptor in self._given:
            for tensor in self._known(leaves(node.meta["val"])):
                if tensor in self._graph.producer:
                    outputs.append(tensor)
                    if hasattr(descriptor, "grad_of"):
                        gradients.setdefault(tensor, []).append(f"{_label(descriptor.grad_of)}.grad")
        for tensor, names in gradients.items():
            self._graph.tensors[tensor] |= {"name": ", ".join(names), "role": "gradient"}
        return outputs

    # ---- ops

    def _lower(self, node: torch.fx.Node) -> None:
        if node.op == "get_attr":
            node.meta["val"] = operator.attrgetter(node.target)(self._module)
            for t in leaves(node.meta["val"]):
                self._tensor(t, node.name, "constant")
            return
        if node.target is operator.getitem:
            return
        if not isinstance(node.target, torch._ops.OpOverload):
            raise CaptureError(f"{node.name}: {node.target} is no operator on tensors; capture the model without "
                               "torch.compile, flex attention, control-flow operators and the like")
        results = leaves(node.meta.get("val"))
        fresh = {storage(t): t for t in reversed(results) if storage(t) not in self._home}
        if results and not fresh:
            return  # a view
        if node.target._schema.is_mutable:
            raise CaptureError(f"{node.name}: {node.target} writes to its arguments, and tracing left it so")
        arguments = arguments_of(node)
        if node.target is aten.native_dropout.default and is_effect(node, arguments):
            self._dropout(node, arguments)
        elif node.target is _FUNCTIONAL_BN and self._statistics_unused(node):
            self._batch_norm(node, arguments)
        else:
            self._plain(node, arguments, list(reversed(fresh.values())))

    def _op(self, node: torch.fx.Node, kind: str, read: list[torch.Tensor], written: list[torch.Tensor],
            *, name: str = "", flops: int = 0, attributes: dict[str, Any] | None = None) -> Op:
        """An op that reads and writes these fake tensors; the written ones get tensors of their own."""
        name = name or node.name
        floats = [t.dtype for t in (*read, *written) if t.dtype.is_floating_point or t.dtype.is_complex]
        dtype = DTYPES.get(floats[0], "f32") if floats else "f32"
        if dtype == "f32" and node.target.overloadpacket in _CONVOLUTIONS:
            dtype = "tf32"
        inputs = self._known(read)
        outputs = [self._tensor(t, name if i == 0 else f"{name}.{i}") for i, t in enumerate(written)]
        time = kernel_ns(self._device, flops, dtype, touched_bytes(read) + touched_bytes(written))
        attributes = (attributes or {}) | ({"flops": flops} if flops else {})
        return Op(name, kind, inputs, outputs, time, "backward" if is_backward(node) else "forward",
                  self._origin(node, inputs), attributes=attributes)

    def _origin(self, node: torch.fx.Node, inputs: list[int]) -> str | None:
        path = node.meta.get("custom", {}).get(ORIGIN)
        if path is None:  # a sum of two gradients belongs with whoever made the second
            path = next((self._graph.producer[t].origin for t in reversed(inputs) if t in self._graph.producer), None)
        return path or None

    def _plain(self, node: torch.fx.Node, arguments: dict[str, Any], fresh: list[torch.Tensor]) -> None:
        unread = ("running_mean", "running_var") if node.target is _BN_BACKWARD and arguments["train"] else ()
        read = leaves(values([value for key, value in arguments.items() if key not in unread]))
        op = self._op(node, str(node.target.overloadpacket), read, fresh, flops=operations(node, arguments),
                      attributes=attributes_of(node, arguments))
        self._graph.op(op, effect=is_effect(node, arguments))

    def _dropout(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mask = node.meta["val"]
        source = arguments["input"].meta["val"]
        chance = {"p": arguments["p"]}
        draw = self._op(node, "lowtide.dropout_mask", [], [mask], name=f"{node.name}.mask", attributes=chance)
        draw.origin = self._origin(node, self._known([source]))
        self._graph.op(draw, effect=True)
        self._graph.op(self._op(node, "lowtide.dropout_apply", [source, mask], [out], attributes=chance))

    def _statistics_unused(self, node: torch.fx.Node) -> bool:
        """Are the moved running statistics only written back (and given to a backward that ignores them)?"""
        back = {self._inputs[target]: source for source, target in self._written_back}
        for item in node.users:
            if item.args[1] < 3:
                continue
            old = node.args[item.args[1]]  # arguments 3 and 4 are the statistics, and so are results 3 and 4
            if back.get(old) is not item:
                return False
            if any(user.op != "output" and not (user.target is _BN_BACKWARD and user.args[7]) for user in item.users):
                return False
        return True

    def _batch_norm(self, node: torch.fx.Node, arguments: dict[str, Any]) -> None:
        out, mean, invstd, new_mean, new_var = node.meta["val"]
        pure = leaves(values([arguments[key] for key in ("input", "weight", "bias")]))
        running = leaves(values([arguments[key] for key in ("running_mean", "running_var")]))
        name = node.name.replace("_native_batch_norm_legit_functional", "native_batch_norm")
        self._graph.op(self._op(node, "aten.native_batch_norm", pure, [out, mean, invstd], name=name,
                                attributes={"eps": arguments["eps"]}))
        stats = self._op(node, "lowtide.batch_norm_stats", [*running, mean, invstd], [], name=f"{name}.stats",
                         attributes={"momentum": arguments["momentum"]})
        stats.recomputable, stats.mutates = False, self._known(running)
        self._graph.op(stats)
        for t, tensor in zip((new_mean, new_var), stats.mutates, strict=True):
            self._home[storage(t)] = tensor

    # ---- the end of the forward

    def _write_back(self) -> None:
        """What the caller does when the forward has ended: new values into the inputs that changed."""
        for source, target in self._written_back:
            old, new = self._inputs[target].meta["val"], source.meta["val"]
            (old_tensor,), (new_tensor,) = self._known([old]), self._known([new])
            if new_tensor == old_tensor:
                continue  # batch norm's statistics have moved already
            if self._could_write_into(source, self._inputs[target]):
                self._graph.write_into(self._graph.producer[new_tensor], old_tensor)
                continue
            time = kernel_ns(self._device, 0, "f32", touched_bytes([old, new]))
            self._graph.op(Op(f"copy_{_label(target)}", "aten.copy_", [old_tensor, new_tensor], [], time, "forward",
                              _label(target).rpartition(".")[0] or None, recomputable=False, mutates=[old_tensor]))

    def _could_write_into(self, source: torch.fx.Node, target: torch.fx.Node) -> bool:
        """Can the op `source` write straight into `target`: pointwise, alike, and neither read later?"""
        old, new = target.meta["val"], source.meta["val"]
        op = self._graph.producer.get(self._home[storage(new)])
        if not op or op.name != source.name or torch.Tag.pointwise not in source.target.tags:
            return False
        alike = (old.dtype, old.size(), old.stride()) == (new.dtype, new.size(), new.stride())
        through_view = any(a is not target and any(storage(t) == storage(old) for t in leaves(a.meta.get("val")))
                           for a in source.all_input_nodes)
        results = [node for node, _ in (*self._written_back, *self._given)]
        later = self._graph.readers_after(op, {self._home[storage(old)], self._home[storage(new)]})
        return alike and not through_view and not later and results.count(source) == 1 and len(source.users) == 1


def _label(descriptor: Any) -> str:
    """An input's name for people: the path of a parameter or buffer, or which argument it is."""
    if hasattr(descriptor, "target"):
        return descriptor.target.removeprefix("model.")
    return f"input{descriptor.idx}" if hasattr(descriptor, "idx") else type(descriptor).__name__
