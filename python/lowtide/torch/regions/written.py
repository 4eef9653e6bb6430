"""Writes to what a region was given, between its forward and its backward, by whoever runs in between.

Eager execution saves what its backward needs, and refuses to go on where that was written to.  A plan may read more: a
buffer, say, of which the model has made a clone that the plan drops and makes again.  No plan does that with what is no
parameter if there is one that does not (region_planning.py).  Where none is, and with parameters, which an optimizer that
steps in between writes to, autograd finds the write, by the version of the tensor, but has no name for it and no remedy.
So versions are noted when the forward has run, and looked at right before its backward.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container, Iterable
from typing import Any

import torch
from torch import fx

from ..errors import WrittenError, some
from ..program import Program


def read_again(forward: fx.GraphModule, handed_out: int) -> list[int]:
    """The arguments that a forward saves for its backward as they are."""
    (output,) = forward.graph.find_nodes(op="output")
    saved = [n for n in output.args[0][handed_out:] if isinstance(n, fx.Node) and n.op == "placeholder"]
    return sorted({idx for n in saved for idx in [getattr(n.meta.get("desc"), "idx", None)] if idx is not None})


class Reads:
    """What one region's backward reads of its arguments, as of the latest plan.

    found: called with the arguments that were written to, before that is refused.
    """

    def __init__(self, found: Callable[[list[int]], None]) -> None:
        self._found = found
        self._arguments: list[int] = []
        self._program: Program | None = None
        self._kept_from: Container[int] = ()
        self._kept_within: int | None = None

    def learn(self, arguments: list[int], program: Program | None, kept_from: Container[int], kept_within: int | None) -> None:
        """arguments: those that are read.  program: what was planned.  kept_from: which of them no plan was to read, had
        one within the budget been found; kept_within: the smallest budget for which one was."""
        self._arguments, self._program, self._kept_from, self._kept_within = arguments, program, kept_from, kept_within

    def note(self, args: tuple[Any, ...], results: Any) -> None:
        """A forward has run with these arguments."""
        node = _backward_of(results) if self._arguments and torch.is_grad_enabled() else None
        if node is None:
            return
        seen = [(i, weakref.ref(args[i]), args[i]._version) for i in self._arguments
                if isinstance(args[i], torch.Tensor) and not args[i].is_inference()]
        node.register_prehook(lambda _: self._look(seen))

    def _look(self, seen: Iterable[tuple[int, Any, int]]) -> None:
        if torch.compiler.is_compiling():
            return
        written = [i for i, ref, version in seen for t in [ref()] if t is not None and t._version != version]
        if written:
            words = self._words(written, {i: ref() for i, ref, _ in seen})
            self._found(written)
            raise WrittenError(words)

    def _words(self, written: list[int], tensors: dict[int, torch.Tensor]) -> str:
        program = self._program
        names = some([f"the {_kind(tensors[i])} {program.labels.get(i) or i} of shape {list(tensors[i].shape)}" for i in written])
        words = f"{names} {'has' if len(written) == 1 else 'have'} been modified by an inplace operation between the forward " \
                f"of {program.graph['name']} and its backward, which reads {'it' if len(written) == 1 else 'them'}"
        if all(i in program.needed for i in written):
            return f"{words}, as it does in eager execution, which refuses that too: write after the backward, or let the " \
                   "model read a clone"
        if all(i in self._kept_from for i in written if i not in program.needed):
            larger = f"a budget of {self._kept_within} bytes, of whose plan it does not" if self._kept_within else "a larger budget"
            return f"{words}: no plan within the budget was found that does not. Write after the backward, or give {larger}"
        return f"{words}. Write after the backward; or run this step again: from its next call on the region has a plan that " \
               "does not, if one keeps the budget"


def _backward_of(results: Any) -> Any:
    """The node of the graph that runs the region's backward."""
    for t in results if isinstance(results, (list, tuple)) else (results,):
        node = t.grad_fn if isinstance(t, torch.Tensor) else None
        while node is not None:
            if hasattr(type(node), "_forward_cls"):
                return node
            node = next((following for following, _ in node.next_functions if following is not None), None)
    return None


def _kind(t: torch.Tensor) -> str:
    if isinstance(t, torch.nn.Parameter):
        return "parameter"
    return "buffer" if getattr(t, "_dynamo_static_input_type", None) is not None else "input"
