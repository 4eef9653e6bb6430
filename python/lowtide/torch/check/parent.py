"""Runs sections in worker processes: each has its own time limit, and one that ends its process costs only itself.

A worker says what it does in lines of JSON on its standard output: {"begin": section}, {"result": ...}, {"end": section}.
When a section takes longer than its limit the worker is killed, with the processes that it started; another one goes on
with the section behind it.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from .section import Result, Section

_LEAST = 5.0  # seconds: with less than that left no worker is started


def _like(first: Section, other: Section) -> bool:
    return first.environment == other.environment


def run_sections(sections: Sequence[Section], command: Callable[[list[str], float], list[str]], seconds: float,
                 hear: Callable[[Result], None], *, start: float = 120.0, factor: float = 1.0,
                 environment: Mapping[str, str] = {}, log: IO[str] | int = subprocess.DEVNULL) -> None:
    """Run the sections in their order for so many seconds in all; hear each result, and of each section that was not run.

    command: the command line of a worker for sections of those names that has so many seconds.  start: seconds that a
    worker has until its first section begins.  factor: by which all limits of sections grow.  log: where the workers' other
    output goes.
    """
    deadline = time.monotonic() + seconds
    left = list(sections)
    while left and deadline - time.monotonic() > _LEAST:
        together = list(itertools.takewhile(functools.partial(_like, left[0]), left))
        limits = {s.name: factor * s.seconds for s in together}
        worker = _Worker(command(list(limits), deadline - time.monotonic()),
                         {**os.environ, **environment, **together[0].environment}, log)
        try:
            done = _follow(worker, limits, start, deadline, hear)
        finally:
            worker.kill()
        left = [s for s in left if s.name not in done]
    for section in left:
        hear({"section": section.name, "what": "not run", "faults": ["left out"], "notes": []})


def _follow(worker: _Worker, limits: Mapping[str, float], start: float, deadline: float,
            hear: Callable[[Result], None]) -> set[str]:
    """Hear what a worker finds until it ends or is to be ended; the names of the sections that are dealt with."""
    done: set[str] = set()
    current, began, limit = "", time.monotonic(), start

    def given_up(what: str, fault: str, **facts: Any) -> set[str]:
        name = current or next(name for name in limits if name not in done)
        hear({"section": name, "what": what, "faults": [fault], "notes": [],
              "seconds": round(time.monotonic() - began, 1), **facts})
        return done | {name}

    while len(done) < len(limits):
        try:
            event = worker.next(min(began + limit, deadline) - time.monotonic())
        except queue.Empty:
            return given_up("stopped", "time")
        if event is None and done and not current:  # behind an error after which that process could do nothing
            return done
        if event is None:
            return given_up("ended", "died", status=worker.status())
        if "begin" in event:
            current, began, limit = event["begin"], time.monotonic(), limits[event["begin"]]
        elif "end" in event:
            done.add(event["end"])
            current, began, limit = "", time.monotonic(), start
        else:
            hear(event["result"])
    return done


class _Worker:
    """A process, and what it says."""

    def __init__(self, command: list[str], environment: Mapping[str, str], log: IO[str] | int) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
                                         errors="replace", env=dict(environment), start_new_session=True)
        self._events: queue.Queue[dict[str, Any] | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            try:
                event = json.loads(line)
            except ValueError:  # the process ended within a line
                continue
            self._events.put(event)
        self._events.put(None)

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The worker's next event, or None when it has ended.  Raises queue.Empty after `seconds` without an event."""
        return self._events.get(timeout=max(0.0, seconds))

    def status(self) -> int:
        """The status with which it ended."""
        return self._process.wait()

    def kill(self) -> None:
        """End it, and the processes that it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # all have ended
            pass
        self._process.wait()
