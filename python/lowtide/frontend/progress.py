"""A line on the terminal that names the stage of a long compilation: written from its first second on, erased at its end.

    with progress.line():
        progress.stage("pricing kernels", 14, 653)

Where stderr is no terminal nothing is written.  LOWTIDE_PROGRESS=off writes nothing anywhere; LOWTIDE_PROGRESS=on writes each
stage as a line of its own, to a file or a pipe too.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator

_FIRST, _EVERY = 1.0, 0.25  # seconds before the line is first written, and then written anew

_shown: _Line | None = None  # the process has one terminal, and one line on it


class _Line:
    """The line of one piece of work, whichever threads work for it."""

    def __init__(self, lines: bool) -> None:
        self._lines = lines  # each stage one of its own?
        self._stage, self._done, self._of = "", 0, 0
        self._began, self._width = time.monotonic(), 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="lowtide progress", daemon=True)
        if not lines:
            self._thread.start()

    def say(self, stage: str, done: int, of: int) -> None:
        if self._lines and stage != self._stage:
            print(f"lowtide: {stage}", file=sys.stderr, flush=True)
        self._stage, self._done, self._of = stage, done, of

    def end(self) -> None:
        self._ended.set()
        if not self._lines:
            self._thread.join()

    def _run(self) -> None:
        if self._ended.wait(_FIRST):
            return
        while True:
            count = f" {self._done:,} of {self._of:,}" if self._of else ""
            text = f"lowtide: {self._stage}{count}, {time.monotonic() - self._began:.0f} s"
            self._write("\r" + text.ljust(self._width))
            self._width = len(text)
            if self._ended.wait(_EVERY):
                break
        self._write("\r" + " " * self._width + "\r")

    @staticmethod
    def _write(text: str) -> None:
        with contextlib.suppress(OSError, ValueError):  # closed meanwhile
            sys.stderr.write(text)
            sys.stderr.flush()


@contextlib.contextmanager
def line() -> Iterator[None]:
    """Shows the progress of the block; nested calls share the line of the outermost."""
    global _shown
    asked = os.environ.get("LOWTIDE_PROGRESS", "").lower()
    shown = asked == "on" or asked != "off" and sys.stderr is not None and sys.stderr.isatty()
    if not shown or _shown is not None:
        yield
        return
    mine = _shown = _Line(asked == "on")
    try:
        yield
    finally:
        _shown = None
        mine.end()


def stage(name: str, done: int = 0, of: int = 0) -> None:
    """Sets the stage that the line shows: "pricing kernels", `done` of `of`."""
    shown = _shown
    if shown is not None:
        shown.say(name, done, of)
