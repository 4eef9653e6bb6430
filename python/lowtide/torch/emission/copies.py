"""The copies to the host and back of one half of a step, as nodes of its FX graph.

Where the plan frees an offloaded tensor, its variable is dropped, and only its copy is known.  Later readers use the result
of a copy back.  A state at home on the host is known to the optimizer only, and the parameter's update waits for it.  Copies
of the forward that the backward needs are saved like any tensor.  runtime/transfers.py has the functions that the nodes call.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import fx

from ..optimizer.graph_updates import move_state
from ..program.emitter import Value
from ..program.program import Program
from ..runtime import transfers
from ..tensors.operators import fake_mode_of


class HalfGraph(Protocol):
    """The half of a step on which copies are made (half_graph.py)."""

    program: Program
    values: dict[Value, fx.Node]

    def value(self, key: Value, node: fx.Node) -> fx.Node: ...

    def take(self, value: fx.Node) -> fx.Node: ...

    def call(self, function: Any, args: tuple[Any, ...], like: fx.Node, value: Any) -> fx.Node: ...

    def add(self, function: Any, args: tuple[Any, ...], value: Any) -> fx.Node: ...


class Copies:
    """parent: those of the forward, for the backward."""

    def __init__(self, half: HalfGraph, parent: Copies | None) -> None:
        self._half, self._parent = half, parent
        self._owners, self._homes = half.program.owners, half.program.homes()
        self._leaving: dict[int, fx.Node] = {}  # tensor -> a copy to the host that has begun
        self._hosts: dict[int, fx.Node] = {}  # tensor -> its copy on the host
        self._likes: dict[int, torch.Tensor] = {}  # tensor -> a fake one of what has left
        self._coming: dict[Any, fx.Node] = {}  # key of a value -> a copy back that has begun

    def step(self, kind: str, tensor: int) -> None:
        """Append a step of a plan: "offload", "prefetch", or the "free" of a tensor that is copied somewhere."""
        if tensor in self._homes:
            way = {"prefetch": "fetch", "offload": "leave", "free": "gone"}[kind]
            self._half.add(move_state, (self._half.program.updates, way, *self._homes[tensor]), None)
            return
        key, node = self._owners[tensor]
        if kind == "offload":
            value = self._half.value(key, node)
            self._likes[tensor] = value.meta["val"]
            self._leaving[tensor] = self._half.call(transfers.leave, (value,), node, None)
        elif kind == "prefetch":
            host, like = self._host(tensor), self._like(tensor)
            args = (host, list(like.shape), list(like.stride()), like.storage_offset(), like.dtype, like.device)
            self._coming[key] = self._half.call(transfers.fetch, args, node, None)
            self._coming[key].meta["like"] = like
        elif tensor in self._leaving or self._is_copied(tensor):
            self.arrive(key)  # or its block could be taken while the copy still writes there
            self.land(tensor, transfers.gone)
            self._half.values.pop(key, None)

    def arrive(self, key: Any) -> None:
        """Wait for the copy back of a value, if one is in flight, before its first reader."""
        coming = self._coming.pop(key, None)
        if coming is not None:
            self._half.values[key] = self._half.add(transfers.arrive, (coming,), coming.meta["like"])

    def land(self, tensor: int, how: Any = None) -> None:
        """Wait for the copy to the host of a tensor, if one is under way."""
        leaving = self._leaving.pop(tensor, None)
        if leaving is not None:
            like = self._likes[tensor]
            with fake_mode_of(like):
                host = torch.empty(like.untyped_storage().nbytes(), dtype=torch.uint8, device="cpu")
            self._hosts[tensor] = self._half.add(how or transfers.landed, (leaving,), host)

    def settle(self) -> None:
        """Wait for all copies that have begun on this half."""
        for tensor in list(self._leaving):
            self.land(tensor)
        for key in list(self._coming):
            self.arrive(key)

    def _is_copied(self, tensor: int) -> bool:
        return tensor in self._hosts or self._parent is not None and self._parent._is_copied(tensor)

    def _host(self, tensor: int) -> fx.Node:
        self.land(tensor)
        if tensor not in self._hosts:
            assert self._parent, "it has left on one of the two halves"
            self._hosts[tensor] = self._half.take(self._parent._host(tensor))
        return self._hosts[tensor]

    def _like(self, tensor: int) -> torch.Tensor:
        return self._likes[tensor] if tensor in self._likes or self._parent is None else self._parent._like(tensor)
