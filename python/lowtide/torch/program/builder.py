"""A program under construction: the tensor of each storage, and ops made of FX nodes."""

from __future__ import annotations

from typing import Any

import torch

from ...frontend.draft import GraphBuilder, Op
from ...frontend.errors import CaptureError
from ..tensors.operators import DTYPES, Kernel, late_nodes, leaves, values
from ..tensors.storages import bytes_of, storage
from ..tracing.origins import module_path, source_line
from .emitter import Emitter, Run


class ProgramBuilder:
    """The program under construction, to which lowerings append.

    graph: the ops and tensors so far.  views: nodes that are no ops.  late: nodes that run behind the barrier.
    state_bytes: those of a generator's state, None for that of each draw's device.  replays: may what runs the graph
    draw again from a state?  gathers_again: may a plan run an all-gather twice, because all ranks do?
    draws_again: may plans draw again from a state, which is read and set on the host?
    one_kernel: pairs of ops that are one kernel the first time, so that the time of the first has that of the second
    in it.  ready_after: tensors that are as they should be only when another op than their producer has run.
    """

    def __init__(self, joint: torch.fx.GraphModule, state_bytes: int | None, replays: bool,
                 gathers_again: bool = False, draws_again: bool = True) -> None:
        self.graph = GraphBuilder()
        self.views: set[torch.fx.Node] = set()
        self.late = late_nodes(joint.graph)
        self.state_bytes, self.replays, self.gathers_again, self.draws_again = state_bytes, replays, gathers_again, draws_again
        self.one_kernel: list[tuple[Op, Op]] = []
        self.ready_after: dict[int, Op] = {}
        self._tensor_of: dict[int, int] = {}  # storage -> tensor

    def tensor(self, t: torch.Tensor, name: str, role: str | None = None) -> int:
        """The tensor of t's storage; made, and named, when the storage is new."""
        if storage(t) not in self._tensor_of:
            if t.dtype not in DTYPES:
                raise CaptureError(f"{name}: numbers of type {t.dtype} cannot be captured")
            shape = [int(n) for n in t.shape]
            self._tensor_of[storage(t)] = self.graph.tensor(name, bytes_of(t), role, shape, DTYPES[t.dtype],
                                                            stays=role is not None)
        return self._tensor_of[storage(t)]

    def state(self, t: torch.Tensor, name: str, home: str) -> int:
        """A tensor of an optimizer's state, which the caller holds on the device or keeps on the host."""
        shape = [int(n) for n in t.shape]
        made = self.graph.tensor(name, bytes_of(t), "state", shape, DTYPES[t.dtype], stays=home == "device")
        if home == "host":
            self.graph.tensors[made]["home"] = home
        return made

    def find(self, t: Any) -> int | None:
        """The tensor of t's storage; None if it has none, or t is no tensor."""
        return self._tensor_of.get(storage(t)) if isinstance(t, torch.Tensor) else None

    def alias(self, t: torch.Tensor, of: torch.Tensor) -> None:
        """What lies in t's storage, as the tracer sees it, lies in that of `of`."""
        self._tensor_of[storage(t)] = self._tensor_of[storage(of)]

    def known(self, tensors: list[torch.Tensor]) -> list[int]:
        """The tensors of storages that all have one, each once."""
        return list(dict.fromkeys(self._tensor_of[storage(t)] for t in tensors))

    def new(self, node: torch.fx.Node) -> list[torch.Tensor]:
        """The node's results in storages without a tensor so far: the first of each storage."""
        results = reversed(leaves(node.meta.get("val")))
        return list(reversed({storage(t): t for t in results if storage(t) not in self._tensor_of}.values()))

    def op(self, node: torch.fx.Node, emitter: Emitter, read: list[torch.Tensor], written: list[torch.Tensor],
           *, name: str = "", word: str = "", flops: int = 0, attributes: dict[str, Any] | None = None) -> Op:
        """An op that reads and writes these fake tensors; the written ones get tensors of their own.  It is still to
        be appended to `graph`."""
        name = name or node.name
        inputs = self.known(read)
        outputs = list(dict.fromkeys(self.tensor(t, name if i == 0 else f"{name}.{i}")
                                     for i, t in enumerate(written)))
        target: Any = node.target
        kernel = Kernel(target, values(node.args), values(node.kwargs), read, written, node.meta.get("val"), flops)
        line = source_line(node)
        attributes = (attributes or {}) | ({"flops": flops} if flops else {}) | ({"source": line} if line else {})
        return Op(name, word or str(kernel.operator.overloadpacket), inputs, outputs, 0,
                  "backward" if node in self.late else "forward", self._origin(node, inputs),
                  after=[self.ready_after[t] for t in inputs if t in self.ready_after],
                  attributes=attributes, kernel=kernel, runs=Run(emitter, node))

    def _origin(self, node: torch.fx.Node, inputs: list[int]) -> str | None:
        path = module_path(node)
        if path is None and (node.meta.get("is_gradient_acc") or source_line(node) is None):
            # a sum of two gradients belongs with whoever made the second
            path = next((self.graph.producer[t].origin for t in reversed(inputs) if t in self.graph.producer), None)
        return path or None
