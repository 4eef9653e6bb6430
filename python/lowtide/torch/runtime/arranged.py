"""Where the allocations of a planned step lie: one block taken beforehand (`prime`), or one of the plan's own (`exact`).

An `exact` block is in a memory pool of its own, so that nothing else is allocated from it.  Before each op generated code calls
`arrange`, which holds what best fit would prefer to the planned offsets (frontend/planning/layout.py).  If something lands elsewhere,
such as a workspace that no plan has counted, or there is no room for the block, the step goes on without that, and the next one begins
with a new block.  A step that is
recorded as a CUDA graph (recorded.py) has its block in the memory of the graph.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import fx

from ...frontend.errors import LowtideWarning, size_text
from ...frontend.planning.layout import Arrangement
from ..compat.cuda import OwnPool

_MOST_LOST = 3  # steps in which something landed elsewhere, after which nothing is held any more

_numbers = itertools.count()
_blocks: weakref.WeakValueDictionary[int, ArrangedBlock] = weakref.WeakValueDictionary()


class Pool(Protocol):
    """Memory of its own on a device (compat.cuda.OwnPool)."""

    def inside(self) -> contextlib.AbstractContextManager[None]:
        """A context whose allocations come from the pool."""

    def allocate(self, size: int) -> tuple[Any, int]:
        """Bytes of the pool, which whoever holds the first result has, and their address."""

    def is_empty(self) -> bool:
        """Is nothing above 1 MiB allocated?"""


@dataclass
class _Place:
    """A pool with a block.  address: of the block, once it has been taken.  arranging: does a step run there as arranged?  elsewhere: has
    the pool got more memory than the block?"""

    pool: Pool
    address: int | None = None
    arranging: bool = False
    elsewhere: bool = False


class ArrangedBlock:
    """The block of one captured graph.  number: identifies it in the graph's code.  arrangement: of its latest plan; None: nothing is
    held.  lost: steps in which something landed elsewhere."""

    def __init__(self, device: torch.device, make_pool: Callable[[torch.device], Pool] = OwnPool) -> None:
        self.number = next(_numbers)
        self.arrangement: Arrangement | None = None
        self.lost = 0
        self._device, self._make_pool = device, make_pool
        self._own: _Place | None = None  # of steps that are not recorded
        self._recorded: _Place | None = None
        self._is_recording = False
        self._held: list[Any] = []
        _blocks[self.number] = self

    @contextlib.contextmanager
    def recording(self, memory: Pool) -> Iterator[None]:
        """What runs within this context is recorded, with a block in that memory.  The block of other steps is given back: of the two only
        one is needed.  Both sides of a step have the same memory."""
        if self._recorded is None or self._recorded.pool is not memory:
            self._recorded = _Place(memory)
        self._own, self._is_recording = None, True
        try:
            yield
        finally:
            self._is_recording = False

    @property
    def _place(self) -> _Place:
        """Where the step lies that runs now."""
        if self._is_recording and self._recorded is not None:
            return self._recorded
        if self._own is None:
            self._own = _Place(self._make_pool(self._device))
        return self._own

    @contextlib.contextmanager
    def half(self, *, forward: bool) -> Iterator[None]:
        """The forward or the backward runs within this context."""
        if forward:
            self._begin()
        try:
            with self._place.pool.inside():
                yield
        finally:
            self._held.clear()

    def arrange(self, point: int) -> None:
        """The plan's next point begins."""
        self._held.clear()
        place = self._place
        if not place.arranging or self.arrangement is None or place.address is None:
            return
        spaces: list[Any] = []
        for plug in self.arrangement.plugs[point]:
            try:
                held, address = place.pool.allocate(plug.size)
            except torch.OutOfMemoryError:
                self._lose()
                return
            if address != place.address + plug.offset:
                self._lose()
                return
            (self._held if plug.stays else spaces).append(held)

    def _begin(self) -> None:
        """A forward begins.  Its allocations are arranged if the block is there and free: no gradient of an earlier step lies in it, and no
        other forward waits for its backward."""
        place = self._place
        place.arranging = False
        if self.arrangement is None or place.address is not None and not place.pool.is_empty():
            return
        if place.elsewhere:
            self._own = None
            place = self._place
        if place.address is None:
            try:
                with place.pool.inside():
                    block, place.address = place.pool.allocate(self.arrangement.block)
                    del block
            except torch.OutOfMemoryError:  # beside what lies elsewhere there is no room for a block as large as the step
                self._lose()
                return
        place.arranging = True

    def _lose(self) -> None:
        self._held.clear()
        self._place.arranging, self._place.elsewhere = False, True
        self.lost += 1
        if self.lost >= _MOST_LOST:
            self.arrangement = None
            warnings.warn(f"lowtide: layout='exact': in {self.lost} steps something did not land where it was planned to, so nothing is "
                          "held in its place any more; the plan and its results stay as they are", LowtideWarning, stacklevel=2)


@fx.node.has_side_effect
def arrange(number: int, point: int) -> None:
    """Called by the code of a graph before what allocates at that point."""
    block = _blocks.get(number)
    if block is not None:
        block.arrange(point)


def prime(size: int, device: torch.device) -> None:
    """Take one block of so many bytes and give it back, so that the allocator has it for what comes."""
    try:
        torch.empty(size, dtype=torch.uint8, device=device)
    except torch.OutOfMemoryError:
        warnings.warn(f"lowtide: layout='prime': there is no block of {size_text(size)} ({size} bytes) on {device}, so the step takes "
                      "its memory piece by piece", LowtideWarning, stacklevel=2)
