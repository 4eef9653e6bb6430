"""Backwards that overwrite tensors saved by their forward, and the code that runs if others may see these tensors.

In a plan the last reader of a saved tensor may overwrite it.  Eager PyTorch leaves saved tensors unchanged, and others may
read them later: the next backward of the same graph (`retain_graph=True`), a hook on saved tensors that keeps what it packed,
or a user of `grad_fn.saved_tensors`.  This is not known when the code is generated.  So a backward checks each saved tensor at
its start, and overwrites them only if

- each is where the forward of the same code left it, in a storage with that forward's mark.  A hook may return a fresh tensor
  over other memory (`torch.from_numpy`).  If hooks exist while the forward runs, it sets no marks;
- nobody else can reach it: there is one reference to the tensor and one to its storage.

Otherwise code runs that makes new tensors.  The saved tensors then stay live anyway, so no plan could have freed them.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

from torch import fx

from ..compat.autograd import saved_tensor_hooks
from ..compat.tensors import holders
from ..device.host import finish_copy
from ..runtime import transfers
from .execute import boxed, compile_graph, overwriting
from .parted import Part

_LEFT = "lowtide_left"
_MARK = "_lowtide_left"  # of a storage's own object, which lives as long as the storage

# references to a tensor that only the list of arguments holds: the list's and that of the call which counts them; to its
# storage: the tensor's and that of the storage's own object; to that object: the storage's, a name's, and the call's
_REFERENCES = 2
_OF_STORAGE = 2
_OF_OBJECT = 3


def note_left(node: fx.Node) -> None:
    """Record that the backward overwrites the result of a node of the forward."""
    node.meta[_LEFT] = True


def compile_forward(module: fx.GraphModule, name: str, code: object, *, fixed: bool = False) -> Callable[[list[Any]], Any]:
    """A boxed function that computes module.graph, and marks the tensors that the backward of the same `code` overwrites.  Where hooks
    on saved tensors may read copies on the host, these have ended when it returns.

    fixed: as of compile_graph.
    """
    run = compile_graph(module, name, fixed=fixed)
    (output,) = module.graph.find_nodes(op="output")
    nodes = [(i, n) for i, n in enumerate(output.args[0]) if isinstance(n, fx.Node)]
    places = [i for i, n in nodes if _LEFT in n.meta]
    on_host = [i for i, n in nodes if n.target in (transfers.landed, transfers.gone)]
    if not places and not on_host:
        return run

    def forward(args: list[Any]) -> Any:
        results = run(args)
        if saved_tensor_hooks(True):
            for i in on_host:
                finish_copy(results[i])
        else:
            for i in places:
                storage = results[i].untyped_storage()
                setattr(storage, _MARK, (code, storage.data_ptr()))
        return results

    return boxed(forward)


def compile_backward(module: fx.GraphModule, name: str, code: object, *, fixed: bool = False,
                     parts: Sequence[Part] = ()) -> Callable[[list[Any]], Any]:
    """A boxed function that computes module.graph, and overwrites saved tensors that are still where the forward of the same `code`
    left them, and that nobody else can reach.  fixed, parts: as of compile_graph.
    """
    run = compile_graph(module, name, fixed=fixed, parts=parts)
    written = {over.saved for over in map(overwriting, module.graph.nodes) if over and over.saved}
    places = [i for i, node in enumerate(module.graph.find_nodes(op="placeholder")) if node.name in written]
    assert len(places) == len(written), "each saved tensor that is overwritten is an argument"
    if not places:
        return run

    @functools.cache
    def run_elsewhere() -> Callable[[list[Any]], Any]:
        return compile_graph(module, f"{name}, of kept tensors", spares_saved=True, parts=parts)

    def backward(args: list[Any]) -> Any:
        if not all(_is_ours_alone(args, i, code) for i in places):
            return run_elsewhere()(args)
        for i in places:
            delattr(args[i].untyped_storage(), _MARK)
        return run(args)

    return boxed(backward)


def _is_ours_alone(args: list[Any], i: int, code: object) -> bool:
    """Is an argument where the forward of this code left it, without other references?"""
    storage = args[i].untyped_storage()
    return (getattr(storage, _MARK, None) == (code, storage.data_ptr())
            and sys.getrefcount(args[i]) <= _REFERENCES and args[i]._use_count() <= 1
            and sys.getrefcount(storage) <= _OF_OBJECT
            and holders(storage) <= _OF_STORAGE)
