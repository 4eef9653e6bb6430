"""Backwards that write over what their forward has saved, and what runs where somebody else may see that.

With a plan the last reader of a saved tensor may write over it.  Eager PyTorch changes none, so whoever can see one
has to see it as it was: the next backward of the same graph (`retain_graph=True`), a hook on saved tensors that has
kept what it packed, a user who has read `grad_fn.saved_tensors`.  Nobody knows of these when the code is made.  So a
backward that overwrites saved tensors looks at each of them when it begins, and writes over them only if

- each lies where the forward of the same code has left it, in a storage that carries that forward's mark.  What a hook
  hands back in its place may be a fresh tensor over memory that is not the backward's own (`torch.from_numpy`).  Where
  hooks stand when the forward runs it leaves no marks;
- nobody else can reach it: one reference to the tensor, one to its storage.

Otherwise code runs that makes new tensors in their place; what is saved stays then anyway, so no plan could have freed
it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import fx

from .execute import compile_graph, overwriting

try:
    from torch._functorch._aot_autograd import graph_compile
except ImportError:  # another PyTorch has another place for it
    graph_compile = None

_here = threading.local()  # .donates: False within nothing_donated
_donated = getattr(graph_compile, "collect_bw_donated_buffer_idxs", None)


def _donated_unless_kept(*args: Any, **kwargs: Any) -> list[int]:
    return _donated(*args, **kwargs) if getattr(_here, "donates", True) else []


# The tracer's own switch for this is read when a backward runs, and for all backwards of the process.
if _donated:  # or this PyTorch has another name for it: its backwards may refuse a graph that is kept
    graph_compile.collect_bw_donated_buffer_idxs = _donated_unless_kept


@contextlib.contextmanager
def nothing_donated() -> Iterator[None]:
    """While AOTAutograd compiles in this thread: it does not take saved tensors for the backward's own, and refuse
    `retain_graph=True` in every step after the first."""
    before, _here.donates = getattr(_here, "donates", True), False
    try:
        yield
    finally:
        _here.donates = before


_LEFT = "lowtide_left"
_MARK = "_lowtide_left"  # of a storage's own object, which lives as long as the storage

# references to a tensor that only the list of arguments holds: the list's and that of the call which counts them; to its
# storage: the tensor's and that of the storage's own object; to that object: the storage's, a name's, and the call's
_REFERENCES = 2
_OF_STORAGE = 2
_OF_OBJECT = 3

_hooks_on_top = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", lambda _: None)


def note_left(node: fx.Node) -> None:
    """Note that the backward writes over what a node of the forward computes."""
    node.meta[_LEFT] = True


def compile_forward(module: fx.GraphModule, name: str, code: object) -> Callable[[list[Any]], Any]:
    """A boxed function that computes module.graph, and marks what the backward of the same `code` overwrites."""
    run = compile_graph(module, name)
    (output,) = module.graph.find_nodes(op="output")
    places = [i for i, n in enumerate(output.args[0]) if isinstance(n, fx.Node) and _LEFT in n.meta]
    if not places:
        return run

    def forward(args: list[Any]) -> Any:
        results = run(args)
        if not _hooks_on_top(True):
            for i in places:
                storage = results[i].untyped_storage()
                setattr(storage, _MARK, (code, storage.data_ptr()))
        return results

    forward._boxed_call = True
    return forward


def compile_backward(module: fx.GraphModule, name: str, code: object) -> Callable[[list[Any]], Any]:
    """A boxed function that computes module.graph, and overwrites saved tensors where the forward of the same `code` has
    left them and nobody else holds one."""
    run = compile_graph(module, name)
    written = {over.saved for over in map(overwriting, module.graph.nodes) if over and over.saved}
    places = [i for i, node in enumerate(module.graph.find_nodes(op="placeholder")) if node.name in written]
    assert len(places) == len(written), "each saved tensor that is overwritten is an argument"
    if not places:
        return run

    @functools.cache
    def run_elsewhere() -> Callable[[list[Any]], Any]:
        return compile_graph(module, f"{name}, of kept tensors", spares_saved=True)

    def backward(args: list[Any]) -> Any:
        if not all(_is_ours_alone(args, i, code) for i in places):
            return run_elsewhere()(args)
        for i in places:
            delattr(args[i].untyped_storage(), _MARK)
        return run(args)

    backward._boxed_call = True
    return backward


def _is_ours_alone(args: list[Any], i: int, code: object) -> bool:
    """Is an argument what the forward of this code has left, where it left it, and has nobody else a hold of it?"""
    storage = args[i].untyped_storage()
    return (getattr(storage, _MARK, None) == (code, storage.data_ptr())
            and sys.getrefcount(args[i]) <= _REFERENCES and args[i]._use_count() <= 1
            and sys.getrefcount(storage) <= _OF_OBJECT
            and torch._C._storage_Use_Count(storage._cdata) <= _OF_STORAGE)
