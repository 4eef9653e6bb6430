"""Runs the tasks of a sweep in worker processes of this machine.

One that dies, because the machine has too little memory for its graph for example, costs its task alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from typing import Any

from .grid import Task
from .results import failed

Result = tuple[Task, dict[str, Any]]


def run(tasks: list[Task], workers: int | None) -> Generator[Result, None, None]:
    """The results, as they come."""
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    results: queue.SimpleQueue[Result | BaseException] = queue.SimpleQueue()
    pool = [_Worker(waiting, results) for _ in range(min(len(tasks), workers or os.cpu_count() or 1))]
    try:
        for _ in tasks:
            result = results.get()
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        for worker in pool:
            worker.stop()


class _Worker:
    """A process, and the thread that gives it tasks."""

    def __init__(self, waiting: queue.SimpleQueue[Task], results: queue.SimpleQueue[Result | BaseException]) -> None:
        self._waiting, self._results = waiting, results
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            self._end()
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stopped:
                task = self._waiting.get_nowait()
                self._results.put((task, self._plan(task)))
        except queue.Empty:
            pass
        except BaseException as error:  # is raised in the thread of the sweep
            self._results.put(error)
        finally:
            with self._lock:
                self._end()

    def _plan(self, task: Task) -> dict[str, Any]:
        with self._lock:
            if self._process is None and not self._stopped:
                # In a session of its own, so that a Ctrl-C at the terminal does not reach it.
                self._process = subprocess.Popen([sys.executable, "-m", "lowtide.sweeps.worker"], stdin=subprocess.PIPE,
                                                 stdout=subprocess.PIPE, start_new_session=True)
            process = self._process
        line = b""
        if process is not None:
            assert process.stdin and process.stdout
            try:
                process.stdin.write(pickle.dumps((task.graph, task.arguments)))
                process.stdin.flush()
                line = process.stdout.readline()
            except (OSError, ValueError):
                pass  # it has ended, which the empty line says
        if line.endswith(b"\n"):
            found: dict[str, Any] = json.loads(line)
            return found
        if process is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
        with self._lock:
            return failed(f"the worker process {self._end()}")

    def _end(self) -> str:
        """Ends the process, unless it has ended by itself; returns how it ended."""
        process, self._process = self._process, None
        if process is None:
            return "was stopped"
        if process.poll() is None:
            process.kill()
        code = process.wait()
        for pipe in (process.stdin, process.stdout):
            with contextlib.suppress(OSError):
                pipe.close()  # type: ignore[union-attr]  # both are pipes
        return f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
