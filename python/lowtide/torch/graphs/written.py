"""Detects writes to inputs of a graph between its forward and its backward.

Eager execution saves what its backward needs, and fails if that was changed.  A plan may read more: for example a buffer whose
clone the plan drops and recomputes.  For inputs other than parameters, plans avoid this if they can (planning.py).  If they
cannot, and for parameters, which an optimizer may change in between, autograd detects the write by the tensor's version, but
names neither the tensor nor a remedy.  So versions are recorded after the forward, and compared right before its backward.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Container
from typing import Any, NamedTuple

import torch
from torch import fx

from ...frontend.errors import some
from ..program.program import Program, results_of
from ..step_errors import WrittenError
from ..tensors.operators import leaves
from ..tensors.storages import storage
from .outside_gradients import captured_of


class Place(NamedTuple):
    """An argument or a result of a graph."""

    is_result: bool
    at: int


class Reads:
    """The arguments and results that one graph's backward reads, by its latest plan.

    graph: the number with which its nodes are marked.  found: called with the arguments and the results that were written
    to, before that is refused.
    """

    def __init__(self, captured: int, found: Callable[[set[int], set[int]], None]) -> None:
        self._captured, self._found = captured, found
        self.forget()

    def forget(self) -> None:
        """There is no plan."""
        self._expect([], [])
        self._program: Program | None = None
        self._kept_from: tuple[Container[int], Container[int]] = (), ()
        self._kept_within: int | None = None

    def learn(self, program: Program, forward: fx.GraphModule, kept_from: tuple[Container[int], Container[int]],
              kept_within: int | None) -> None:
        """program: what was planned; forward: its code.  kept_from: the arguments and the results that no plan was to read,
        had one within the budget been found; kept_within: the smallest budget for which one was."""
        self._program, self._kept_from, self._kept_within = program, kept_from, kept_within
        (output,) = forward.graph.find_nodes(op="output")
        count = len(program.forward_outputs)
        saved = [n for n in output.args[0][count:] if isinstance(n, fx.Node)]
        given = {n.meta["desc"].idx for n in saved if n.op == "placeholder" and hasattr(n.meta.get("desc"), "idx")}
        kept = {storage(t) for n in saved if n.op != "placeholder" for t in leaves(n.meta.get("val"))}
        handed_out = {i for i, n in results_of(list(output.args[0][:count]), program.forward_descriptors)
                      if any(storage(t) in kept for t in leaves(n.meta.get("val")))}
        self._expect(sorted(given), sorted(handed_out))

    def _expect(self, arguments: list[int], results: list[int]) -> None:
        self._arguments, self._results = arguments, results
        self._places = [*(Place(False, i) for i in arguments), *(Place(True, i) for i in results)]

    def note(self, args: tuple[Any, ...], results: Any) -> None:
        """A forward has run with these arguments."""
        if not self._places or not torch.is_grad_enabled():
            return
        results = results if isinstance(results, (list, tuple)) else (results,)
        node = self._backward_of(results)
        if node is None:
            return
        places, tensors = self._places, [*[args[i] for i in self._arguments], *[results[i] for i in self._results]]
        try:
            refs, versions = _refs_and_versions(tensors)
        except (TypeError, AttributeError, RuntimeError):  # one of them is a number, a mesh of ranks, or a tensor of inference mode
            there = [(place, t) for place, t in zip(places, tensors, strict=True)
                     if isinstance(t, torch.Tensor) and not t.is_inference()]
            places = [place for place, _ in there]
            refs, versions = _refs_and_versions([t for _, t in there])
        node.register_prehook(lambda _: self._look(places, refs, versions))

    def _look(self, places: list[Place], refs: list[weakref.ref[torch.Tensor]], versions: list[int]) -> None:
        if torch.compiler.is_compiling() or self._program is None:
            return
        tensors = [ref() for ref in refs]
        if [t if t is None else t._version for t in tensors] == versions:
            return
        written = {place: t for place, t, version in zip(places, tensors, versions, strict=True)
                   if t is not None and t._version != version}
        if written:
            words = self._words(written)
            self._found({p.at for p in written if not p.is_result}, {p.at for p in written if p.is_result})
            raise WrittenError(words)

    def _words(self, written: dict[Place, torch.Tensor]) -> str:
        program = self._program
        assert program is not None, "somebody was looked for"
        needed = {place: t for place, t in written.items() if not place.is_result and place.at in program.needed}
        written = needed or written
        names = some([f"{_name(program, place, t)} of shape {list(t.shape)}" for place, t in written.items()])
        one = len(written) == 1
        words = f"{names} {'has' if one else 'have'} been modified by an inplace operation between the forward of " \
                f"{program.graph.name} and its backward, which reads {'it' if one else 'them'}"
        if needed:
            return f"{words}, as it does in eager execution, which refuses that too: write after the backward, or let the " \
                   "model read a clone"
        if all(place.at in self._kept_from[place.is_result] for place in written):
            larger = f"a budget of {self._kept_within} bytes, of whose plan it does not" if self._kept_within else "a larger budget"
            return f"{words}: no plan within the budget was found that does not. Write after the backward, or give {larger}"
        return f"{words}. Write after the backward; or run this step again: from its next call on the graph has a plan that " \
               "does not, if one keeps the budget"

    def _backward_of(self, results: Any) -> Any:
        """The node of the graph that runs the graph's backward.  A result may be a view of an argument that another graph
        has made."""
        for t in results:
            node = t.grad_fn if isinstance(t, torch.Tensor) else None
            while node is not None:
                if captured_of(node) == self._captured:
                    return node
                if hasattr(type(node), "_forward_cls"):
                    break
                node = next((following for following, _ in node.next_functions if following is not None), None)
        return None


def _refs_and_versions(tensors: list[Any]) -> tuple[list[weakref.ref[torch.Tensor]], list[int]]:
    """Weak references to tensors, and their versions: taken in each step of all that the backward reads.  Raises TypeError,
    AttributeError or RuntimeError for what has no version."""
    return list(map(weakref.ref, tensors)), [t._version for t in tensors]


def _name(program: Program, place: Place, t: torch.Tensor) -> str:
    if place.is_result:
        return f"result {place.at}"
    kind = "parameter" if isinstance(t, torch.nn.Parameter) else \
        "buffer" if getattr(t, "_dynamo_static_input_type", None) is not None else "input"
    return f"the {kind} {program.labels.get(place.at) or place.at}"
