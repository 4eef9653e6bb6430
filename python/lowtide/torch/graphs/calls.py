"""The order in which a model's captured graphs run, and the memory that others hold at each of their passes.

A *pass* is one run of a graph's forward or backward.  A forward *waits* until its backward runs.  A *step* begins with a
forward while no other forward waits, and ends before the next such forward: a training step, or the forwards of an
evaluation.  Steps are stored as a tree of prefixes, with a node for each pass:

    root - forward 0 - forward 1 - backward 1 - backward 0      a step of training
                     - backward 0                               a step without the second graph

so a known step costs one look-up per pass, and a look at the existing gradients.  A new node records the memory held beyond
the graph's own inputs: inputs of other graphs, gradients, waiting forwards.  From these records planning/sharing.py computes
the memory of the step at each pass, for any plans of its graphs.  A forward that waits across other steps is kept by the
caller; it neither ends nor begins a step.

Only inputs of graphs, their gradients, and tensors saved by forwards are recorded.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import torch

from ..tensors.storages import Sizes, storages
from .known_storages import KnownStorages
from .records import GraphRecord, ObservedPass
from .waiting import WaitingForwards

_NODES = 2_000  # most nodes of the tree; further passes are not recorded
_LENGTH = 512  # most passes of a step of forwards without backwards
_LOOKS = 3  # records of the held memory per node: in the first step there are no gradients of an earlier one


class _Node:
    """pass_: None at the root."""

    def __init__(self, pass_: ObservedPass | None) -> None:
        self.pass_ = pass_
        self.next: dict[Any, _Node] = {}
        self.looks = 1


class Calls:
    """The record of one model's calls.

    news: has a pass or a parameter come that no plan was made for?  fresh: the steps in which it came; None: it
    concerns all of them.  trained: the sets of parameters that steps with a backward have trained.
    known: the storages that graphs were given.  step: the passes of the present one so far.
    """

    def __init__(self) -> None:
        self.news = False
        self.fresh: list[list[ObservedPass]] | None = []
        self.trained: set[frozenset[int]] = set()
        self._turned = False  # by a backward, since the last forward
        self.known = KnownStorages()
        self._waiting = WaitingForwards()
        self._root = self._at = _Node(None)
        self._nodes = self._depth = 0
        self._entries: set[GraphRecord] = set()
        self.step: list[ObservedPass] = []
        self._begun_with: Sizes = {}  # gradients that stood then

    # ---- what graphs tell

    def begins(self, captured: GraphRecord) -> bool:
        """Is this forward, which is about to run, the first of a step?"""
        if self._turned:
            self._waiting.turn()
        self._turned = False
        if self._is_over() or self._at.pass_ and not self._waiting.is_any() and captured in self._entries:
            self._end()
        return self._at is self._root

    def _is_over(self) -> bool:
        """Does nothing wait, and is no evaluation on its way?"""
        self._waiting.prune()
        pass_ = self._at.pass_
        return pass_ is not None and (self._depth >= _LENGTH or not self._waiting.is_any() and pass_.captured.trains)

    def _end(self) -> None:
        self._at = self._root
        if not self.news or not self.step:
            return
        if self.fresh is not None:
            self.fresh.append(self.step)
        if any(pass_.backward for pass_ in self.step):
            self.trained.add(frozenset(key for pass_ in self.step for key in pass_.captured.leaves))

    def planned(self) -> None:
        """Marks all news so far as planned."""
        self.news, self.fresh = False, []

    def forward(self, captured: GraphRecord, args: Iterable[Any]) -> ObservedPass | None:
        """It runs now.  The pass, if it is a new one."""
        if self._at is self._root:
            self._depth, self.step = 0, []
            self._begun_with = self.known.gradients()
            self._entries.add(captured)
        return self._step(captured, False, args)

    def backward(self, captured: GraphRecord, args: list[Any]) -> ObservedPass | None:
        """A backward of it runs now.  The pass, if it is a new one."""
        self._waiting.prune()
        self._turned = True
        taken = self._waiting.take(captured, args)
        try:
            return self._step(captured, True, None)
        finally:
            if taken and taken.alone:  # it may be kept for another backward
                self._waiting.put_back(taken)

    def leave(self, captured: GraphRecord, kept: torch.Tensor, alone: bool, size: int,
              handed_out: Iterable[Any]) -> None:
        """A forward of it has left `size` bytes; kept: a tensor of WaitingForward.ref."""
        self._waiting.add(captured, kept, alone, size, handed_out)

    def know(self, tensors: Iterable[Any], stay: Iterable[Any] = ()) -> None:
        """These tensors are there; those in `stay` for as long as the model is."""
        if self.known.add(tensors, stay) and self._nodes > 0:
            self.news, self.fresh = True, None

    # ---- what stands

    @property
    def bursts_begun(self) -> int:
        return len(self._root.next)

    def waiting_bytes(self) -> int:
        """Bytes that forwards have left for backwards that are still to come."""
        return self._waiting.bytes()

    def beside_backwards(self) -> int:
        """The most bytes beside the backward of a waiting forward: saved by earlier forwards, and gradients that later backwards have made."""
        self._waiting.prune()
        waiting, most, made = self._waiting.all(), 0, 0
        if len(waiting) < 2:
            return 0
        for i, w in reversed(list(enumerate(waiting))):
            most = max(most, made + sum(earlier.size for earlier in waiting[:i]))
            made += sum(w.captured.leaves.values())
        return most

    def beside(self, args: Iterable[Any]) -> int:
        """Bytes that stand beside a graph with these arguments, waiting forwards apart."""
        own = storages(args)
        left = self.left()
        step = [] if self._is_over() else self.step
        given = {key: size for pass_ in step for key, size in pass_.given.items()}
        stands = {key: s.size for key, s in self.known.alive().items() if s.stays or step and s.made or key in given}
        return sum(size for key, size in stands.items() if key not in own and key not in left) \
            - sum(size for key, size in own.items() if key in left)

    def left(self) -> set[int]:
        """Storages that waiting forwards have handed out."""
        return self._waiting.handed_out()

    def steps(self) -> Iterator[list[ObservedPass]]:
        """All that were seen."""
        stack: list[tuple[_Node, list[ObservedPass]]] = [(self._root, [])]
        while stack:
            node, earlier = stack.pop()
            path = [*earlier, node.pass_] if node.pass_ else earlier
            if not node.next and path:
                yield path
            stack += [(child, path) for child in node.next.values()]

    # ---- within

    def _step(self, captured: GraphRecord, backward: bool, args: Iterable[Any] | None) -> ObservedPass | None:
        key = (captured, backward, len(self._waiting.all()))
        self._depth += 1
        node = self._at.next.get(key)
        if node is not None and node.looks >= _LOOKS and node.pass_ is not None:
            self._at = node
            self.step.append(node.pass_)
            return None
        if node is None and self._nodes >= _NODES:
            self._at = _Node(self._at.pass_)  # off the tree for the rest of the step
            return None
        seen = self._look(captured, backward, args)
        known = node.pass_ if node is not None else None
        if node is None or known is None:
            node = self._at.next[key] = _Node(seen)
            self._nodes += 1
            self.news = is_fresh = True
        else:
            node.looks += 1
            is_fresh = self._grow(known, seen)
        self._at, pass_ = node, known or seen
        self.step.append(pass_)
        return pass_ if is_fresh else None

    def _grow(self, pass_: ObservedPass, seen: ObservedPass) -> bool:
        """Raise what a pass notes to what is seen now, of the tensors that are given now; was there more?"""
        more = {key: size for key, size in seen.old.items() if key not in pass_.old}
        pass_.old |= more
        grown = bool(more) or seen.new > pass_.new
        pass_.own, pass_.stays, pass_.given = seen.own, seen.stays, seen.given
        pass_.new = max(pass_.new, seen.new)
        self.news = self.news or grown
        return grown

    def _look(self, captured: GraphRecord, backward: bool, args: Iterable[Any] | None) -> ObservedPass:
        if args is not None:
            args = list(args)
            self.know(args)
            captured.own = storages(args)
        own, left = captured.own, self.left()
        alive = self.known.alive()
        given = {} if backward else {key: size for key, size in own.items() if key in alive and key not in left
                                     and not alive[key].stays and not alive[key].made}
        made = sum(s.size for key, s in alive.items() if s.made and key not in own and key not in left)
        made_earlier = {key: size for pass_ in self.step if pass_.backward
                       for key, size in pass_.captured.leaves.items()}
        old, now = self._begun_with, self.known.gradients()
        new = sum(size for key, size in made_earlier.items() if key not in old and key in now)
        waits = {key for w in self._waiting.all() for key in w.captured.leaves}
        waits |= set(captured.leaves) if backward else set()
        # what another backward adds to is not there yet, but in the autograd engine
        new += sum(size for key, size in made_earlier.items() if key in waits and (key in old or key not in now))
        standing = {key: size for key, size in now.items() if key not in made_earlier or key in old}
        stays = {key: size for key, size in own.items() if key in alive and alive[key].stays}
        return ObservedPass(captured, backward, tuple(w.captured for w in self._waiting.all()),
                            sum(w.size for w in self._waiting.all() if w.captured.report is None), own, stays, given, made,
                            sum(size for key, size in own.items() if key in left), standing, new)
