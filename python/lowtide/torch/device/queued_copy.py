"""One copy between a GPU and its host, in a stream of its direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

_streams: dict[tuple[int | None, str], Any] = {}


class QueuedCopy:
    """A copy in a stream of its direction.  after: copies that have to have run before.

    The host queues each copy, so every call here slows a step that keeps the host busy.  One event is recorded twice: a wait that
    is already queued refers to the first record.
    """

    def __init__(self, into: torch.Tensor, source: torch.Tensor, after: Sequence[Any], way: str) -> None:
        device = source.device if source.is_cuda else into.device
        self._index = device.index  # which finds a stream in half of the time that the device takes
        self._compute = torch.cuda.current_stream(self._index)
        stream = _stream(device, way)
        self.done = torch.cuda.Event()
        self.done.record(self._compute)
        stream.wait_event(self.done)  # the source is there; the last reader of what is written to has been queued
        for earlier in after:
            stream.wait_event(earlier.done)
        here = torch.cuda.current_device()
        torch.cuda.set_stream(stream)  # half the calls of torch.cuda.stream; makes its device current
        try:
            into.copy_(source, non_blocking=True)
        finally:
            torch.cuda.set_stream(self._compute)
            if here != self._index:
                torch.cuda.set_device(here)
        self.done.record(stream)
        self._waited = False

    def wait(self) -> None:
        torch.cuda.current_stream(self._index).wait_event(self.done)
        self._waited = True

    def abandon(self) -> None:
        """An error came between: nobody may get the block on the device before the copy has ended.  The block goes back
        to the stream it was taken from, whichever stream and thread this happens in."""
        if not self._waited:
            self._compute.wait_event(self.done)

    def finish(self) -> None:
        """The host waits for it."""
        self.done.synchronize()


def _stream(device: torch.device, way: str) -> Any:
    key = device.index, way
    if key not in _streams:
        _streams.setdefault(key, torch.cuda.Stream(device))
    return _streams[key]
