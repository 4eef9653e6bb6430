"""Which regions of a model run in which order, and what stands beside each of them.

A *burst* is what runs from a forward beside which no other waits for its backward to the next such one: a step
of training, or the forwards of an evaluation.  Bursts are kept as a tree, a node for each run of a forward or a
backward, so a step that has been seen costs a look-up a run, and a look at the gradients that stand.  A new node
notes what stands at that moment, beside what the region is given: arguments of other regions, gradients, forwards
that wait.  From that follows what the burst takes at each place under any plans of its regions (sharing.py).  A
forward that waits while others come and go is one that somebody keeps; it ends no burst and begins none.

It sees tensors that regions are given, their gradients, and what forwards leave; nothing else.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .storages import Sizes, bytes_of, gradients_by_leaf, is_dense, is_trained, storage, storages

_NODES = 2_000  # of the tree; what would come after is not looked at
_TURNS = 8  # of other forwards and their backwards, after which a forward that waits is one that somebody keeps
_LENGTH = 512  # of a burst of forwards that nothing waits for
_LOOKS = 3  # at what stands, for each node: the first step knows no gradients of the last


@dataclass(eq=False)
class Region:
    """What is known of a compiled region.

    found: what it takes to plan it (sharing.Found), None if no plan can run it.  report, beside, steps: of its plan.
    place: of its report among all.
    share: what it will be planned with at its next call.  plans: how often it was planned with others.
    own: the storages it was given, by the last look.  leaves: gradients that its backward makes, by leaf.
    """

    number: int
    found: Any = None
    report: Any = None
    beside: Any = None
    steps: Any = None
    place: int | None = None
    share: Any = None
    plans: int = 0
    own: Sizes = field(default_factory=dict)
    leaves: Sizes = field(default_factory=dict)
    trains: bool = False


@dataclass(eq=False)
class Event:
    """One run of a region's forward or backward, and what stood beside it.

    waiting: regions whose forwards have left something, once for each; unplanned: bytes that such a forward left
    of which no plan knows.  given: what the user gave the region, beside parameters and buffers.  made: bytes of
    what others were given and the model's own code had made.  twice: bytes that the region is given and a waiting
    forward has left.  old: gradients from before the burst, by leaf; new: bytes of those of this burst.
    """

    region: Region
    backward: bool
    waiting: tuple[Region, ...]
    unplanned: int
    given: Sizes
    made: int
    twice: int
    old: Sizes
    new: int


class _Node:
    def __init__(self, event: Event | None) -> None:
        self.event = event
        self.next: dict[Any, _Node] = {}
        self.looks = 1


@dataclass(eq=False)
class _Waiting:
    """A forward that has left `size` bytes.  ref: a storage that its backward takes and nobody else has, or of its
    results if there is none; alone: is it the former?  handed_out: storages of its results.  turns: how often others
    have begun after a backward since."""

    region: Region
    ref: StorageWeakRef
    alone: bool
    size: int
    handed_out: tuple[int, ...]
    turns: int = 0


@dataclass(eq=False)
class _Storage:
    ref: StorageWeakRef
    size: int
    stays: bool  # a parameter or a buffer
    made: bool  # by code that autograd has seen
    leaf: Any = None  # the parameter, if it gets a gradient


class Calls:
    """The record of one model's calls.

    news: has something come that no plan was made for?  fresh: the bursts in which it came; None: it concerns all.
    trained: the sets of parameters that bursts with a backward have trained.
    """

    def __init__(self) -> None:
        self.news = False
        self.fresh: list[list[Event]] | None = []
        self.trained: set[frozenset[int]] = set()
        self._turned = False  # by a backward, since the last forward
        self._storages: dict[int, _Storage] = {}
        self._waiting: list[_Waiting] = []
        self._root = self._at = _Node(None)
        self._nodes = self._depth = 0
        self._entries: set[Region] = set()
        self.burst: list[Event] = []  # so far, the present one
        self._begun_with: Sizes = {}  # gradients that stood then

    # ---- what regions tell

    def begins(self, region: Region) -> bool:
        """Is this forward, which is about to run, the first of a burst?"""
        for waiting in self._waiting if self._turned else ():
            waiting.turns += 1
        self._turned = False
        if self._is_over() or self._at.event and not self._waits() and region in self._entries:
            self._end()
        return self._at is self._root

    def _is_over(self) -> bool:
        """Does nothing wait, and is no evaluation on its way?"""
        self._prune()
        event = self._at.event
        return bool(event) and (self._depth >= _LENGTH or not self._waits() and event.region.trains)

    def _waits(self) -> bool:
        return any(waiting.turns < _TURNS for waiting in self._waiting)

    def _end(self) -> None:
        self._at = self._root
        if not self.news or not self.burst:
            return
        if self.fresh is not None:
            self.fresh.append(self.burst)
        if any(event.backward for event in self.burst):
            self.trained.add(frozenset(key for event in self.burst for key in event.region.leaves))

    def planned(self) -> None:
        """What is new by now has been planned for."""
        self.news, self.fresh = False, []

    def forward(self, region: Region, args: Iterable[Any]) -> Event | None:
        """It runs now.  The event, if it is a new one."""
        if self._at is self._root:
            self._depth, self.burst = 0, []
            self._begun_with = self.gradients()
            self._entries.add(region)
        return self._step(region, False, args)

    def backward(self, region: Region, args: list[Any]) -> Event | None:
        """A backward of it runs now.  The event, if it is a new one."""
        self._prune()
        self._turned = True
        mine = [w for w in self._waiting if w.region is region]
        if len(mine) > 1:
            given = set(storages(args))
            mine = [w for w in mine if w.ref.cdata in given] or mine
        taken = mine[-1] if mine else None
        if taken:
            self._waiting.remove(taken)
        try:
            return self._step(region, True, None)
        finally:
            if taken and taken.alone:  # it may be kept for another backward
                self._waiting.append(taken)

    def leave(self, region: Region, kept: torch.Tensor, alone: bool, size: int, handed_out: Iterable[Any]) -> None:
        """A forward of it has left `size` bytes; kept: see _Waiting.ref."""
        self._waiting.append(_Waiting(region, StorageWeakRef(kept.untyped_storage()), alone, size,
                                      tuple(storages(handed_out))))

    def know(self, tensors: Iterable[Any], stay: Iterable[Any] = ()) -> None:
        """These tensors are there; those in `stay` for as long as the model is."""
        staying = {id(t) for t in stay}
        for t in tensors:
            if not is_dense(t):
                continue
            key = storage(t)
            known = self._storages.get(key)
            if known is None or known.ref.expired():
                leaf = weakref.ref(t) if is_trained(t) else None
                stays = isinstance(t, torch.nn.Parameter) or id(t) in staying
                self._storages[key] = _Storage(StorageWeakRef(t.untyped_storage()), bytes_of(t), stays,
                                               t.grad_fn is not None, leaf)
                if self._nodes > 0 and stays:
                    self.news, self.fresh = True, None

    # ---- what stands

    @property
    def bursts_begun(self) -> int:
        return len(self._root.next)

    def waiting_bytes(self) -> int:
        """Bytes that forwards have left for backwards that are still to come."""
        self._prune()
        return sum(w.size for w in self._waiting)

    def beside(self, args: Iterable[Any]) -> int:
        """Bytes that stand beside a region with these arguments, waiting forwards apart."""
        own = storages(args)
        left = self.left()
        burst = [] if self._is_over() else self.burst
        given = {key: size for event in burst for key, size in event.given.items()}
        stands = {key: s.size for key, s in self._alive() if s.stays or burst and s.made or key in given}
        return sum(size for key, size in stands.items() if key not in own and key not in left) \
            - sum(size for key, size in own.items() if key in left)

    def staying(self, given: bool) -> Sizes:
        """Parameters and buffers; given: and what the user has given to any region and still holds."""
        return {key: s.size for key, s in self._alive() if s.stays or given and not s.made}

    def gradients(self) -> Sizes:
        """Gradients that are there, by leaf."""
        return gradients_by_leaf(s.leaf() for s in list(self._storages.values()) if s.leaf)

    def present(self) -> list[torch.Tensor]:
        """Leaves that are there, and their gradients."""
        found = [s.leaf() for _, s in self._alive() if s.leaf]
        return [t for leaf in found if leaf is not None for t in (leaf, leaf.grad) if t is not None]

    def bursts(self) -> Iterator[list[Event]]:
        """All that were seen."""
        stack = [(self._root, [])]
        while stack:
            node, before = stack.pop()
            path = [*before, node.event] if node.event else before
            if not node.next and path:
                yield path
            stack += [(child, path) for child in node.next.values()]

    # ---- within

    def _step(self, region: Region, backward: bool, args: Iterable[Any] | None) -> Event | None:
        key = (region, backward, len(self._waiting))
        self._depth += 1
        node = self._at.next.get(key)
        if node is not None and node.looks >= _LOOKS:
            self._at = node
            self.burst.append(node.event)
            return None
        if node is None and self._nodes >= _NODES:
            self._at = _Node(self._at.event)  # off the tree for the rest of the burst
            return None
        event = self._look(region, backward, args)
        if node is None:
            node = self._at.next[key] = _Node(event)
            self._nodes += 1
            self.news, fresh = True, event
        else:
            node.looks += 1
            fresh = node.event if self._grow(node.event, event) else None
        self._at = node
        self.burst.append(node.event)
        return fresh

    def _grow(self, event: Event, seen: Event) -> bool:
        """Raise what an event notes to what is seen now; was there more?"""
        more = {key: size for key, size in seen.old.items() if key not in event.old}
        event.old |= more
        grown = bool(more) or seen.new > event.new
        event.new = max(event.new, seen.new)
        self.news = self.news or grown
        return grown

    def _look(self, region: Region, backward: bool, args: Iterable[Any] | None) -> Event:
        if args is not None:
            args = list(args)
            self.know(args)
            region.own = storages(args)
        own, left = region.own, self.left()
        alive = dict(self._alive())
        given = {} if backward else {key: size for key, size in own.items() if key in alive and key not in left
                                     and not alive[key].stays and not alive[key].made}
        made = sum(s.size for key, s in alive.items() if s.made and key not in own and key not in left)
        made_before = {key: size for event in self.burst if event.backward
                       for key, size in event.region.leaves.items()}
        old, now = self._begun_with, self.gradients()
        new = sum(size for key, size in made_before.items() if key not in old and key in now)
        waits = {key for w in self._waiting for key in w.region.leaves} | (set(region.leaves) if backward else set())
        # what another backward adds to is not there yet, but in the autograd engine
        new += sum(size for key, size in made_before.items() if key in waits and (key in old or key not in now))
        standing = {key: size for key, size in now.items() if key not in made_before or key in old}
        return Event(region, backward, tuple(w.region for w in self._waiting),
                     sum(w.size for w in self._waiting if w.region.report is None), given, made,
                     sum(size for key, size in own.items() if key in left), standing, new)

    def _alive(self) -> list[tuple[int, _Storage]]:
        gone = [key for key, s in self._storages.items() if s.ref.expired()]
        for key in gone:
            del self._storages[key]
        return list(self._storages.items())

    def left(self) -> set[int]:
        """Storages that waiting forwards have handed out."""
        return {key for w in self._waiting for key in w.handed_out}

    def _prune(self) -> None:
        if self._waiting and any(w.ref.expired() for w in self._waiting):
            self._waiting = [w for w in self._waiting if not w.ref.expired()]
