"""Checks each backward before it runs: are updates within it equal to those of a step after it?

Violations that follow from the autograd graph are errors before anything is written: a parameter with gradients from more than
one place (two graphs, two calls of a graph, a regularizer in the user's loop), a retained graph, requested gradients that
would not exist, and a scaled loss.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Iterable
from typing import Any, Protocol

import torch

from ..compat.autograd import compiled_autograd_runs
from ..runtime.backward_looks import forward_of, graph_of, has_node, is_leaf, look_at_backwards, node_of
from ..step_errors import UpdateError
from .accumulating import accumulates
from .batch import Batch
from .updater import STEP_INSTEAD, Updater, check_hooks

_REGION = "lowtide_updates"


class Updates(Protocol):
    """The updates that one backward makes (graph_updates.GraphUpdates)."""

    slots: dict[int, torch.Tensor]
    looked: bool

    def by_updater(self) -> list[tuple[Updater, Batch]]: ...


def watch_backwards() -> None:
    """From now on look at each backward of the process."""
    look_at_backwards(check_backward)


def mark(forward: Any, updates: Updates) -> None:
    """Note that `forward` is what AOTAutograd calls for the forward of a graph with these updates."""
    setattr(forward, _REGION, updates)


def check_backward(outputs: Iterable[Any], keeps: bool, inputs: Any, fills: bool) -> None:
    """Raises UpdateError unless updates in a backward from these outputs are those of an ordinary step.

    keeps: is the graph for another backward as well?  inputs: the tensors whose gradients are asked for, none for all
    leaves.  fills: do these go to `.grad`?
    """
    if not Updater.are_any():
        return
    edges = graph_of(outputs)
    captured_graphs = {node: captured for node in edges if not is_leaf(node) and (captured := _captured(node))}
    if captured_graphs and inputs:
        running = _running(edges, {node_of(i) for i in inputs if has_node(i)})
        captured_graphs = {node: captured for node, captured in captured_graphs.items() if node in running}
    found = list(captured_graphs.values())
    if not found:
        return
    if compiled_autograd_runs():
        raise UpdateError("compiled autograd puts the graph's backward into a graph of its own, of which nothing says when "
                          "it updates parameters: turn it off, or use update='step'")
    leaves = {id(p): p for captured in found for p in captured.slots.values()}
    places = Counter(id(n.variable) for following in edges.values() for n in following if is_leaf(n))
    asked = {id(i) for i in inputs or ()}
    if inputs and (not fills or not asked.issuperset(leaves)):
        raise UpdateError("torch.autograd.grad, or backward(inputs=...), asks for some gradients, and with "
                          "update='backward' parameters are updated by theirs, which are not handed out: call "
                          f"loss.backward(), {STEP_INSTEAD}")
    if _is_scaled(edges):
        raise UpdateError("the loss is scaled by a GradScaler, and gradients are unscaled, and looked at for infinities, "
                          "only when all are there: after updates in the backward. Use bf16, which needs no scaler, "
                          f"{STEP_INSTEAD}")
    for key, p in leaves.items():
        if places[key] > 1:
            raise UpdateError(f"a parameter of shape {list(p.shape)} gets a gradient from {places[key]} places of one "
                              "backward: from two graphs, two calls of one, or code outside of the compiled model such as "
                              "a regularizer, and its update would be by one of them. Compute all that reads it, and the "
                              f"loss, within one graph of the model, without a graph break, {STEP_INSTEAD}")
    updated: dict[Updater, list[torch.Tensor]] = {}
    for captured in found:
        for updater, batch in captured.by_updater():
            updated.setdefault(updater, []).extend(batch.parameters)
    for updater, parameters in updated.items():
        _check_step(updater, parameters, keeps)
    for captured in found:
        captured.looked = True


def _check_step(updater: Updater, parameters: list[torch.Tensor], keeps: bool) -> None:
    """Raises UpdateError unless these parameters of one optimizer can be updated, or added to, now."""
    holds = {accumulates(p) for p in parameters}
    if len(holds) > 1:
        raise UpdateError("some parameters of this backward are within lowtide.torch.accumulate and some are not: give it "
                          "the model that was compiled")
    check_hooks(updater.optimizer, parameters)
    updater.check_gradients(parameters)
    if True in holds:
        return
    if keeps:
        raise UpdateError("retain_graph=True keeps this forward for another backward, which would find its parameters "
                          "updated. Run all backwards but the last within lowtide.torch.accumulate(model), and the last "
                          f"without retain_graph, {STEP_INSTEAD}")
    if updater.any_waits_twice(parameters):
        raise UpdateError("another forward with the same parameters waits for its backward, and would find them updated. "
                          "Run each backward before the next forward, within lowtide.torch.accumulate(model) for all but "
                          f"the last, and forwards without a backward under torch.no_grad(); {STEP_INSTEAD}")


# ---- the graph

def _captured(node: Any) -> Updates | None:
    """The graph whose backward the node is, if it makes updates."""
    captured = getattr(forward_of(node), _REGION, None)
    return captured if captured and captured.slots else None


def _running(edges: dict[Any, list[Any]], wanted: set[Any]) -> set[Any]:
    """The nodes that run where the gradients of `wanted` alone are asked for: on the way to them."""
    givers: dict[Any, list[Any]] = {}
    for node, following in edges.items():
        for n in following:
            givers.setdefault(n, []).append(node)
    running: set[Any] = set()
    left = [node for n in wanted for node in givers.get(n, ())]
    while left:
        node = left.pop()
        if node not in running:
            running.add(node)
            left += givers.get(node, ())
    return running


def _is_scaled(nodes: Iterable[Any]) -> bool:
    """Is there a product with the scale of a GradScaler among them?"""
    factors = []
    for node in nodes:
        if type(node).__name__ == "MulBackward0":
            try:
                other = node._saved_other
            except RuntimeError:  # freed: the backward will say so
                continue
            if isinstance(other, torch.Tensor) and other.numel() == 1 and not other.requires_grad:
                factors.append(other)
    if not factors:
        return False
    scalers = [s for s in gc.get_objects() if issubclass(type(s), torch.amp.GradScaler)]  # no isinstance: proxies answer it
    scales = {s.get_scale() for s in scalers if s.is_enabled() and s._scale is not None}  # a scaler hands out copies too
    return bool(scales) and any(float(factor) in scales for factor in factors)
