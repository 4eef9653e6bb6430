"""A training step for the planner and the emission: its joint FX graph, and the Lowtide graph made of it."""

from __future__ import annotations

import operator
from collections.abc import Container
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import torch

import lowtide

from ..compat.aot import PlainAOTOutput
from ..runtime.assumed_tangent import AssumedTangent
from ..tensors.operators import leaves
from ..tensors.storages import device_among, storage, storages
from ..tracing.origins import label_of
from .emitter import Run

AnyProgram = TypeVar("AnyProgram", bound="Program")


@dataclass
class Program:
    """A joint graph and the Lowtide graph it became.

    graph: of its ops and tensors.  runs[i]: what computes op i.  barrier: that op's index.
    forward_outputs, backward_outputs: nodes of the joint graph or None, with their descriptors.
    views: nodes that are no ops, made again where they are read.
    owners: of a tensor, the node of the joint graph that makes its storage, and the key under which code knows it: the
    node, or (node, index) of several results.
    assumed_tangent: with a hoisted backward (transforms/hoist.py), which runs before the actual tangent is known.
    updates: the key of a GraphUpdates if its backward makes updates, whose gradients are None among backward_outputs.
    labels: inputs' names for people, by their places.
    kept: tensors that the barrier overwrites in the graph alone, so that no plan reads them after it.  needed: arguments
    that the backward reads whatever the plan.
    """

    joint: torch.fx.GraphModule
    graph: lowtide.Graph
    runs: list[Run]
    barrier: int
    forward_outputs: list[Any]
    backward_outputs: list[Any]
    forward_descriptors: list[Any]
    backward_descriptors: list[Any]
    views: set[torch.fx.Node] = field(default_factory=set)
    owners: dict[int, tuple[Any, torch.fx.Node]] = field(default_factory=dict)
    assumed_tangent: AssumedTangent | None = None
    updates: int | None = None
    labels: dict[int, str] = field(default_factory=dict)
    kept: tuple[int, ...] = ()
    needed: frozenset[int] = frozenset()

    def without_kept(self: AnyProgram) -> AnyProgram:
        """The same for plans that may read what is kept from them."""
        mutates = [t for t in self.graph.op(self.barrier).mutates if t not in self.kept]
        return replace(self, graph=self.graph.edited(ops={self.barrier: {"mutates": mutates}}), kept=())

    def label_of(self, descriptor: Any) -> str:
        """The name of an input for people."""
        return self.labels.get(getattr(descriptor, "idx", -1)) or label_of(descriptor)

    @property
    def in_one_call(self) -> bool:
        """Does its forward make the updates?"""
        return self.assumed_tangent is not None and self.updates is not None

    def states(self) -> dict[int, tuple[int, str]]:
        """The tensors of an optimizer's state: the input that is their parameter, and their name."""
        emitters: list[Any] = [run.emitter for run in self.runs]
        updates = [(op, emitter) for op, emitter in enumerate(emitters) if getattr(emitter, "states", ())]
        return {tensor: (update.slot, name) for op, update in updates
                for tensor, name in zip(self.graph.op(op).inputs[-len(update.states):], update.states, strict=True)}

    def homes(self) -> dict[int, tuple[int, str]]:
        """Those whose home is the host."""
        return {tensor: state for tensor, state in self.states().items() if self.graph.tensor(tensor).home == "host"}

    def movable(self) -> set[int]:
        """The tensors that code can send to the host: a state whose home is there, and what one node alone makes, under one
        key, and the caller never sees between forward and backward; not what has still to arrive."""
        barrier = self.graph.op(self.barrier)
        seen = {*barrier.inputs, *barrier.outputs}
        seen |= {self.graph.op(op).inputs[0] for op, run in enumerate(self.runs) if run.emitter.returns_operand}
        keys: dict[int, int] = {}  # storage -> how many keys of nodes it has
        for node in self.joint.graph.nodes:
            if node not in self.views and node.target is not operator.getitem:
                for t in leaves(node.meta.get("val")):
                    keys[storage(t)] = keys.get(storage(t), 0) + 1
        found = set(self.homes())
        for tensor, (key, node) in self.owners.items():
            fake = owned(key, node)
            alone = fake is not None and keys.get(storage(fake)) == 1 or isinstance(key, tuple) and key[0] in ("tensor", "state")
            if alone and tensor not in seen and node.op == "call_function" and self.graph.tensor(tensor).producer is not None:
                found.add(tensor)
        return found

    @property
    def device(self) -> torch.device:
        """The device that runs it: the first device of its inputs other than the host, if there is one."""
        inputs = self.joint.graph.find_nodes(op="placeholder")
        return device_among(t for n in inputs for t in leaves(n.meta.get("val")))


def owned(key: Any, node: torch.fx.Node) -> torch.Tensor | None:
    """The fake tensor that `node` of a joint graph makes under this key; None for a generator's state."""
    if key is node:
        return node.meta.get("val")
    return node.meta["val"][key[1]] if key[0] is node else None


def results_of(outputs: list[Any], descriptors: list[Any]) -> list[tuple[int, torch.fx.Node]]:
    """The nodes among a forward's outputs that are the graph's results as they are, with their places among these."""
    return [(desc.idx, node) for node, desc in zip(outputs, descriptors, strict=True)
            if isinstance(desc, PlainAOTOutput) and isinstance(node, torch.fx.Node)]


def with_gradient(program: Program, trained: Container[int]) -> list[int]:
    """Which arguments, of the leaves among them, get a gradient."""
    return [desc.grad_of.idx for node, desc in zip(program.backward_outputs, program.backward_descriptors, strict=True)
            if isinstance(node, torch.fx.Node) and getattr(getattr(desc, "grad_of", None), "idx", None) in trained]


def updated_inputs(program: Program) -> list[int]:
    """Which arguments its backward updates."""
    slots: list[int | None] = [getattr(run.emitter, "slot", None) for run in program.runs]
    return [slot for slot in slots if slot is not None]


def made_gradient_bytes(program: Program, trained: Container[int]) -> int:
    """Bytes of the gradients that leaves hold when the backward has ended; trained: which arguments are leaves.

    Gradients of what another graph made are gone as soon as that one's backward has taken them.
    """
    results = zip(program.backward_outputs, program.backward_descriptors, strict=True)
    made = [node for node, desc in results
            if isinstance(node, torch.fx.Node) and getattr(getattr(desc, "grad_of", None), "idx", None) in trained]
    return sum(storages(t for node in made for t in leaves(node.meta["val"])).values())
