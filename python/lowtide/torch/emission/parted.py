"""A backward in parts: gradients are handed out in groups, each as soon as its last one is computed.

DistributedDataParallel reduces a bucket when autograd has its gradients.  A backward that returns all gradients at once leaves
nothing to overlap the reduction with.  So the code of a backward within DDP is a generator, which yields the gradients of one group
after another (runtime/parted_backward.py hands them to autograd).  Groups are as large as DDP's buckets, in the order in which the
plan computes gradients: the order in which DDP itself sorts its buckets after the first step.

A gradient is handed out after the last node that reads its storage, since others may write to it from then on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import fx

from ..tensors.operators import leaves
from ..tensors.storages import is_dense, storage


@dataclass(frozen=True)
class Part:
    """after: the node after which gradients are handed out, None at the end of the backward.  places: of these among the results."""

    after: fx.Node | None
    places: tuple[int, ...]


def parts_of(graph: fx.Graph, of_parameters: Iterable[int], limits: tuple[int, int]) -> list[Part]:
    """The parts of a backward's graph, in their order; the last one has all results that are no gradients of parameters.

    of_parameters: places of gradients of parameters among the results.  limits: bytes after which the first part, and any other, ends.
    Views by which gradients are handed out move to the nodes that make what they are views of.
    """
    results = _results(graph)
    sizes = {place: size for place in of_parameters if (size := _bytes_of(results[place])) is not None}
    ready = _ready(graph, {results[place] for place in sizes})
    at = {node: i for i, node in enumerate(graph.nodes)}
    when = {place: at[ready[results[place]]] for place in sizes}
    parts: list[Part] = []
    held: list[int] = []
    following = sorted(sizes, key=lambda place: (when[place], place))
    for place, later in zip(following, [*following[1:], None]):
        held.append(place)
        if sum(map(sizes.__getitem__, held)) >= limits[bool(parts)] and (later is None or when[later] != when[place]):
            parts.append(Part(ready[results[place]], tuple(held)))
            held = []
    known = {place for part in parts for place in part.places}
    rest = tuple(place for place, node in enumerate(results) if place not in known and isinstance(node, fx.Node))
    if rest or not parts:
        return [*parts, Part(None, rest)]
    return [*parts[:-1], Part(None, parts[-1].places)]


def located(graph: fx.Graph, parts: Sequence[Part]) -> list[Part]:
    """The same parts of another graph that makes the same results, with its nodes."""
    results = _results(graph)
    ready = _ready(graph, {results[place] for part in parts if part.after is not None for place in part.places})
    at = {node: i for i, node in enumerate(graph.nodes)}
    return [part if part.after is None else Part(max((ready[results[place]] for place in part.places), key=at.__getitem__), part.places)
            for part in parts]


def _results(graph: fx.Graph) -> list[fx.Node]:
    (output,) = graph.find_nodes(op="output")
    return list(output.args[0])


def _ready(graph: fx.Graph, gradients: set[fx.Node]) -> dict[fx.Node, fx.Node]:
    """For each gradient the last node that makes it or reads its storage."""
    touching: dict[int, list[fx.Node]] = {}
    for node in graph.nodes:
        if node.op != "output":
            for key in {storage(t) for n in (node, *node.all_input_nodes) for t in leaves(n.meta.get("val")) if is_dense(t)}:
                touching.setdefault(key, []).append(node)
    ready = {}
    for gradient in gradients:
        chain = _views_of(gradient)
        last = [node for node in touching[storage(gradient.meta["val"])] if node not in chain][-1]
        for node in reversed(chain):
            last.append(node)
            last = node
        ready[gradient] = last
    return ready


def _views_of(gradient: fx.Node) -> list[fx.Node]:
    """A gradient and what it is a view of, as far as nobody reads these but for it, the last first."""
    chain: list[fx.Node] = []
    node = gradient
    while node.op == "call_function" and len(node.all_input_nodes) == 1 and all(u.op == "output" or u in chain for u in node.users):
        (source,) = node.all_input_nodes
        found = [n.meta.get("val") for n in (node, source)]
        if not all(map(is_dense, found)) or len({storage(t) for t in found if t is not None}) > 1 or source.op != "call_function":
            break
        chain.append(node)
        node = source
    return chain


def _bytes_of(node: object) -> int | None:
    """Bytes of a gradient of known sizes; None for what cannot be handed out on its own."""
    value = node.meta.get("val") if isinstance(node, fx.Node) and node.op == "call_function" else None
    if not isinstance(value, torch.Tensor) or not is_dense(value) or not all(isinstance(n, int) for n in value.shape):
        return None
    return value.numel() * value.element_size()
