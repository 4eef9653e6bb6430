"""A section of the check and its arguments: device, size, time limit, and the place of its results."""

from __future__ import annotations

import contextlib
import gc
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from .meanings import FAULTS, NOTES

Result = dict[str, Any]


class DeviceLost(Exception):
    """An error after which no kernel of this process runs any more."""


@dataclass(frozen=True)
class Section:
    """One part of the check.

    seconds: it is ended after so many.  environment: what its process needs in its environment, as settings of an
    allocator, which are read once.
    """

    name: str
    seconds: float
    run: Callable[[Context], None]
    environment: Mapping[str, str] = field(default_factory=dict)


class Context:
    """The arguments of a section.

    device: "cuda" or "cpu".  tiny: models that take a CPU a second.  tests: the folder of the project's tests, if there is
    one.  hear: is called with each result.
    """

    def __init__(self, device: str, tiny: bool, tests: Path | None, hear: Callable[[Result], None]) -> None:
        self.device, self.tiny, self.tests = device, tiny, tests
        self._hear, self._section, self._until = hear, "", float("inf")

    @property
    def on_gpu(self) -> bool:
        return self.device == "cuda"

    def begin(self, section: str, until: float) -> None:
        """Begins a section: later results belong to it.  until: its deadline, a time of time.monotonic()."""
        self._section, self._until = section, until

    @property
    def seconds_left(self) -> float:
        return self._until - time.monotonic()

    def has_time(self, seconds: float, what: str) -> bool:
        """Are so many seconds left for `what`?  If not, that is a result."""
        if self.seconds_left > seconds:
            return True
        self.say(what, faults=["left out"])
        return False

    def say(self, what: str, faults: Sequence[str] = (), notes: Sequence[str] = (), **facts: Any) -> None:
        """Hand over a result.  faults, notes: keys of meanings.py's tables; ValueError for others."""
        unknown = [key for key in faults if key not in FAULTS] + [key for key in notes if key not in NOTES]
        if unknown:
            raise ValueError(f"meanings.py does not say what {unknown[0]!r} means")
        self._hear({"section": self._section, "what": what, "faults": list(faults), "notes": list(notes), **facts})

    @contextlib.contextmanager
    def guarded(self, what: str) -> Iterator[None]:
        """An exception within becomes a result, and the section continues after it.  Raises DeviceLost if the device is lost."""
        try:
            yield
        except DeviceLost:
            raise
        except Exception as error:  # whatever it is, the check goes on
            lines = str(error).strip().splitlines() or [""]
            self.say(what, faults=["error"], error=type(error).__name__, text=lines[0][:300],
                     trace="".join(traceback.format_exception(type(error), error, error.__traceback__))[-4000:])
            if "CUDA error" in str(error) or "cudaError" in str(error):
                raise DeviceLost(lines[0]) from error
        else:
            return
        if self.on_gpu:  # out of memory, for one
            gc.collect()
            torch.cuda.empty_cache()
