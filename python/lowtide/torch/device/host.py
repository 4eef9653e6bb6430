"""Host memory for the copies of plans, allocated once and reused.

A copy of n bytes uses a block of exactly n bytes (in whole pages).  So a step with a fixed plan needs as many blocks as copies
exist at once, and no more.  For a GPU blocks are pinned, up to a limit.  Copies to other blocks stall the host, but give the
same results.  The holder of a copy holds a tensor over its block.  When the last reference to that is gone, whether the
backward has read it, failed, or never ran, the block is free again.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import threading
import weakref
from collections import deque
from pathlib import Path
from typing import Any

import torch

_PAGE = mmap.PAGESIZE
_SHARE = 2  # one part in so many of the host's memory may be pinned
_PORTABLE = 1  # cudaHostRegisterPortable


class Place:
    """Memory for one copy, whole pages.

    pinned: may a GPU copy to and from it while the host goes on?  read: the latest copy from here to the device, which has
    to have ended before anything is written here again.  written: the latest one from the device (transfers.py).
    """

    def __init__(self, size: int, pin: bool) -> None:
        self.memory = mmap.mmap(-1, size)
        self.address = ctypes.addressof(ctypes.c_ubyte.from_buffer(self.memory))
        self.pinned = pin and _register(self.address, size)
        self.read: Any = None
        self.written: Any = None

    def tensor(self, size: int) -> tuple[torch.Tensor, Any]:
        """A tensor over the first `size` bytes, and what its storage keeps alive, and nobody else does."""
        held = (ctypes.c_ubyte * size).from_buffer(self.memory)
        made = torch.frombuffer(held, dtype=torch.uint8) if size else torch.empty(0, dtype=torch.uint8)  # of no bytes it makes none
        return made, held

    def end(self) -> None:
        """Let the memory go back to the system, when nothing copies from or to it any more."""
        for copy in filter(None, (self.read, self.written)):
            copy.finish()
        if self.pinned:
            torch.cuda.cudart().cudaHostUnregister(self.address)
            self.pinned = False


class Host:
    """The places of one kind of device.

    limit: the most bytes that are pinned, 0 where there is nothing to pin for.  used, peak: bytes of the copies that lie
    here, and the most so far.  held: bytes of all places, free ones too.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = self.peak = self.held = 0
        self._pinned = 0
        self._free: dict[int, list[Place]] = {}
        self._taken: dict[int, tuple[Place, int]] = {}  # by address
        self._returned: deque[int] = deque()  # addresses; a finalizer may run anywhere, and takes no lock
        self._lock = threading.RLock()

    def take(self, size: int) -> tuple[torch.Tensor, Place]:
        """A tensor of `size` bytes, which is no view, over a place that is its own until the tensor's storage is gone."""
        rounded = max(1, -(-size // _PAGE)) * _PAGE
        with self._lock:
            self._collect()
            free = self._free.get(rounded)
            place = free.pop() if free else self._new(rounded)
            made, held = place.tensor(size)
            weakref.finalize(held, self._returned.append, place.address).atexit = False
            self._taken[place.address] = place, size
            self.used += size
            self.peak = max(self.peak, self.used)
            return made, place

    def place_of(self, t: torch.Tensor) -> Place | None:
        """The place over which a tensor lies; None for any other tensor."""
        with self._lock:
            self._collect()
            found = self._taken.get(t.data_ptr()) if t.device.type == "cpu" and t.layout == torch.strided else None
            return found and found[0]

    def bytes_now(self) -> int:
        """Bytes of the copies that somebody has."""
        with self._lock:
            self._collect()
            return self.used

    def allow(self, limit: int) -> None:
        """Raise the limit of pinned bytes to what a user has allowed."""
        self.limit = max(self.limit, limit)

    def close(self) -> None:
        """Give back all places that nobody has."""
        with self._lock:
            self._collect()
            self._trim()

    def _collect(self) -> None:
        while self._returned:
            place, size = self._taken.pop(self._returned.popleft())
            self.used -= size
            self._free.setdefault(len(place.memory), []).append(place)

    def _new(self, size: int) -> Place:
        if self._pinned + size > self.limit > 0:
            self._trim()
        place = Place(size, self._pinned + size <= self.limit)
        self._pinned += size * place.pinned
        self.held += size
        return place

    def _trim(self) -> None:
        """Give back all free places, which are of other sizes than those that are needed now."""
        for places in self._free.values():
            for place in places:
                self._pinned -= len(place.memory) * place.pinned
                self.held -= len(place.memory)
                place.end()
        self._free.clear()


def host_limit() -> int:
    """Bytes that may be pinned: half of the host's memory, or of what a container may take of it, shared by the
    processes that torchrun has started here."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    try:
        memory = min(memory, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):  # no container, or one without a limit
        pass
    return memory // _SHARE // max(1, int(os.environ.get("LOCAL_WORLD_SIZE", "1")))


def _register(address: int, size: int) -> bool:
    """Pin memory for all GPUs; did it work?"""
    if int(torch.cuda.cudart().cudaHostRegister(address, size, _PORTABLE)) == 0:
        return True
    with contextlib.suppress(RuntimeError):
        torch.zeros(1, device="cuda")  # the next kernel is blamed for that error
    return False


_hosts: dict[str, Host] = {}
_making = threading.Lock()


def host_of(device: torch.device) -> Host:
    """The host's memory for devices of this type."""
    if found := _hosts.get(device.type):  # without the lock, since every copy calls this
        return found
    with _making:
        if device.type not in _hosts:
            _hosts[device.type] = Host(host_limit() if device.type == "cuda" else 0)
        return _hosts[device.type]


def is_on_host(t: torch.Tensor) -> bool:
    """Is it a copy that a plan has made on the host?"""
    return any(host.place_of(t) is not None for host in list(_hosts.values()))


def finish_copy(t: torch.Tensor) -> None:
    """Have the host wait for what a copy of a plan writes to a tensor, before somebody reads that on the host."""
    for place in filter(None, [host.place_of(t) for host in list(_hosts.values())]):
        if place.written is not None:
            place.written.finish()
