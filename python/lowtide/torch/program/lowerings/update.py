"""The update of a parameter, which uses its gradient as soon as it is computed.

It `mutates` the parameter and the optimizer's state, so no plan reads the parameter afterwards, not even for recomputation.  It
follows the barrier, because before it is not known whether a backward will run.  Updates are independent of each other, so
each may run at any time after that.  Its code calls graph_updates.apply_updates if the graph has its parameters; a graph that
was captured without them is for planning only.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from ....frontend.draft import Op
from ....frontend.errors import CaptureError
from ....frontend.price import Price
from ...optimizer.graph_updates import apply_updates
from ...optimizer.rules import Rules, Watcher
from ...tensors.operators import DTYPES, leaves
from ...tensors.storages import bytes_of, storage
from ...tracing.origins import label_of
from ..builder import ProgramBuilder
from ..emitter import Code, Emitter, Run

_SMALL = 64  # bytes; a count of steps stays where it is


@dataclass(frozen=True)
class Updates:
    """rules: of the parameters that are updated.  on_gpu: do they run on a GPU, which chooses implementations?  graph:
    the key of the GraphUpdates that runs them; None for a graph that is only planned."""

    rules: Rules
    on_gpu: bool
    captured: int | None = None


@dataclass
class _UpdateEmitter(Emitter):
    """graph: of Updates.  slot: the graph's input that is the parameter.  states: the names of its state, the op's last
    inputs.  owned: does nobody else hold the gradient?"""

    captured: int | None
    slot: int | None
    states: tuple[str, ...]
    gradient: fx.Node
    owned: bool

    def emit(self, code: Code, op: int, again: bool, following: int | None, over: tuple[int, ...]) -> bool:
        assert self.captured is not None, "no code is made of updates in a graph that is only planned"
        updates = [update for at in code.updates_at(op) if isinstance(update := code.runs[at].emitter, _UpdateEmitter)]
        if not updates:
            return False
        slots, owned = tuple(update.slot for update in updates), tuple(update.owned for update in updates)
        gradients = tuple(code.get(update.gradient) for update in updates)
        code.call(apply_updates, (self.captured, slots, gradients, owned), self.gradient, None)
        return False


def lower_updates(builder: ProgramBuilder, gradients: list[tuple[str, fx.Node, fx.Node]], updates: Updates,
                  price: Price, handed_out: list[fx.Node]) -> None:
    """Insert an update for each parameter that has a rule, as early in the order as may be.

    gradients: names in the model, and the nodes of parameter and gradient.  handed_out: what else forward and backward
    give to the caller.  Raises CaptureError for a parameter that the forward writes to.
    """
    rules = updates.rules
    nodes = {name: gradient for name, _, gradient in gradients}
    slots = {name: getattr(parameter.meta["desc"], "idx", None) for name, parameter, _ in gradients}
    others = {storage(t) for node in handed_out for t in leaves(node.meta.get("val"))}
    updated = [(name, parameter.meta["val"], gradient.meta["val"]) for name, parameter, gradient in gradients
               if name in rules.of]
    if not updated:
        return
    watch = Watcher(updated[0][1].fake_mode, updates.on_gpu)
    read = {tensor for op in builder.graph.ops for tensor in op.inputs}  # by an op that may write over it
    taken = Counter(storage(gradient) for _, _, gradient in updated)
    watched = [watch(rules.of[name], parameter) for name, parameter, _ in updated]
    price.prepare([kernel for update in watched for kernel in update.kernels])
    for (name, parameter, gradient), update in zip(updated, watched, strict=True):
        prices = [price(kernel) for kernel in update.kernels]
        given = {"grad": builder.known([gradient])[0], "param": builder.known([parameter])[0]}
        if given["param"] in builder.graph.crossed.mutates:
            raise CaptureError(f"update: the forward writes to {name}, as that of an embedding with max_norm does, and no plan updates such a "
                               "parameter: use the optimizer's own step after the backward")
        made_by = builder.graph.producer.get(given["grad"])
        owned = made_by is not None and made_by is not builder.graph.barrier and taken[storage(gradient)] == 1 \
            and storage(gradient) not in others and given["grad"] not in read \
            and bytes_of(gradient) == gradient.numel() * gradient.element_size()
        slot = slots.get(name)
        states = {}
        for key, t in update.state.items():
            home = rules.home if t.numel() * t.element_size() > _SMALL else "device"
            states[key] = builder.state(t, f"{name}.{key}", home)
        op = Op(f"update {name}", "lowtide.update", [*dict.fromkeys(given.values()), *states.values()], [],
                sum(time for time, _, _ in prices), "update", name.rpartition(".")[0] or None, recomputable=False,
                after=[builder.graph.crossed],
                workspace=update.temporaries + max((workspace for _, workspace, _ in prices), default=0),
                attributes={"optimizer": rules.of[name].name, "implementation": update.implementation,
                            "temporaries": update.temporaries},
                runs=Run(_UpdateEmitter(updates.captured, slot, tuple(states), nodes[name], owned)))
        op.mutates = [given["param"], *states.values(), *([given["grad"]] if update.mutates_gradient else [])]
        shown = {"grad": gradient, "param": parameter, **update.state}
        op.operands = [_operand(key, (given | states)[key], t) for key, t in shown.items()]
        builder.graph.insert(op)


def _operand(argument: str, tensor: int, t: torch.Tensor) -> dict[str, Any]:
    return {"argument": argument, "tensor": tensor, "shape": [int(n) for n in t.shape],
            "strides": [int(n) for n in t.stride()], "offset": int(t.storage_offset()), "dtype": DTYPES[t.dtype]}


def names_of_gradients(inputs: list[fx.Node], outputs: list[Any], descriptors: list[Any]) \
        -> list[tuple[str, fx.Node, fx.Node]]:
    """Inputs with a gradient: name in the model, or which argument it is, and the nodes of both.

    inputs: those of the joint graph.  outputs, descriptors: the backward's.
    """
    parameters = {n.meta["desc"]: n for n in inputs if label_of(n.meta.get("desc"))}
    found = []
    for node, desc in zip(outputs, descriptors, strict=True):
        of = getattr(desc, "grad_of", None)
        if isinstance(node, fx.Node) and of in parameters and leaves(node.meta["val"]):
            found.append((label_of(of), parameters[of], node))
    return found
