"""Memory held by code outside of all captured graphs, as far as the autograd graph shows it.

At a graph break, Python code runs between the graphs, and the tensors that it saves for its backward are live beside the later
graphs' plans.  The autograd graph behind the arguments of a captured graph shows what its nodes saved.  Saved tensors are
inspected without unpacking, so no hook runs.

Not seen: tensors that are only held by variables, tensors packed by hooks, code without gradients, and a loss computed behind
the last graph.  Of that only the returned tangents are seen.  Common losses take up to three times the bytes of their input
(F.cross_entropy twice, the mean of squares three times).
"""

from __future__ import annotations

from typing import Any

import torch

from ..tensors.operators import leaves
from ..tensors.storages import is_dense, storage, storages

LOSS = 3  # times what is handed out, that a loss outside may take
_NODES = 20_000  # at most that one look visits
_names: dict[type, tuple[str, ...]] = {}  # a node's class -> its attributes that hold what was saved


def upstream(args: list[Any]) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
    """Storages with their bytes that code outside of all graphs holds before a graph runs with `args`: those saved by its autograd
    nodes so far; those that the piece right before saved and made; and which of `args` it made.
    """
    made = storages(t for t in leaves(args) if t.grad_fn is not None and not _is_captured(t.grad_fn))
    saved: dict[int, int] = {}
    piece = dict(made)
    not_its_own = {storage(t) for t in leaves(args)} - made.keys()  # arguments, and what graphs and users made
    seen: set[Any] = set()
    stack = [(t.grad_fn, True) for t in leaves(args)]
    while stack and len(seen) < _NODES:
        node, right_before = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            not_its_own.add(storage(node.variable))
        elif not _is_captured(node):
            its_own = storages(_saved_by(node))
            saved |= its_own
            if right_before:
                piece |= its_own
        stack += [(earlier, right_before and not _is_captured(node)) for earlier, _ in node.next_functions]
    def own(found: dict[int, int]) -> dict[int, int]:
        return {key: size for key, size in found.items() if key not in not_its_own}

    return own(saved), own(piece), own(made)


def tangent_bytes(tangents: list[Any]) -> int:
    """Bytes of tangents from outside code: those with more than one element that are not all zeros, as tangents of unused results are."""
    return sum(t.numel() * t.element_size() for t in leaves(tangents) if t.numel() > 1 and bool(t.any()))


def _is_captured(node: Any) -> bool:
    return type(node).__name__ == "CompiledFunctionBackward"


def _saved_by(node: Any) -> list[torch.Tensor]:
    kind = type(node)
    if kind not in _names:
        _names[kind] = tuple(name for name in dir(node) if name.startswith("_raw_saved_"))
    tensors = []
    for name in _names[kind]:
        try:
            values = getattr(node, name)
            for value in values if isinstance(values, (tuple, list)) else (values,):
                if value is not None and value.unpack_hook is None and isinstance(value.data, torch.Tensor):
                    tensors.append(value.data)
        except RuntimeError:  # a graph that was freed holds nothing
            continue
    return [t for t in tensors if is_dense(t)]
