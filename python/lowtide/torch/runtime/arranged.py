"""Where the allocations of a planned step lie: one block taken beforehand (`prime`), or one of the plan's own (`exact`).

An `exact` block is in a memory pool of its own, so that nothing else is allocated from it.  Before each op generated code calls
`arrange`, which holds what best fit would prefer to the planned offsets (frontend/planning/layout.py).  If something lands elsewhere,
such as a workspace that no plan has counted, the step goes on without that, and the next one begins with a new block.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
import weakref
from collections.abc import Callable, Iterator
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


class ArrangedBlock:
    """The block of one captured graph.  number: identifies it in the graph's code.  arrangement: of its latest plan; None: nothing is
    held.  lost: steps in which something landed elsewhere."""

    def __init__(self, device: torch.device, make_pool: Callable[[torch.device], Pool] = OwnPool) -> None:
        self.number = next(_numbers)
        self.arrangement: Arrangement | None = None
        self.lost = 0
        self._device, self._make_pool = device, make_pool
        self._pool = make_pool(device)
        self._address: int | None = None  # once the block has been taken
        self._arranging = self._elsewhere = False
        self._held: list[Any] = []
        _blocks[self.number] = self

    @contextlib.contextmanager
    def half(self, *, forward: bool) -> Iterator[None]:
        """The forward or the backward runs within this context."""
        if forward:
            self._begin()
        try:
            with self._pool.inside():
                yield
        finally:
            self._held.clear()

    def arrange(self, point: int) -> None:
        """The plan's next point begins."""
        self._held.clear()
        if not self._arranging or self.arrangement is None or self._address is None:
            return
        spaces: list[Any] = []
        for plug in self.arrangement.plugs[point]:
            try:
                held, address = self._pool.allocate(plug.size)
            except torch.OutOfMemoryError:
                self._lose()
                return
            if address != self._address + plug.offset:
                self._lose()
                return
            (self._held if plug.stays else spaces).append(held)

    def _begin(self) -> None:
        """A forward begins.  Its allocations are arranged if the block is there and free: no gradient of an earlier step lies in it, and no
        other forward waits for its backward."""
        self._arranging = False
        if self.arrangement is None or self._address is not None and not self._pool.is_empty():
            return
        if self._elsewhere:  # the pool has got more memory than the block
            self._pool, self._address, self._elsewhere = self._make_pool(self._device), None, False
        if self._address is None:
            with self._pool.inside():
                block, self._address = self._pool.allocate(self.arrangement.block)
                del block
        self._arranging = True

    def _lose(self) -> None:
        self._held.clear()
        self._arranging, self._elsewhere = False, True
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
