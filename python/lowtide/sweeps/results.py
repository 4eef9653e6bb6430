"""The results of a sweep: a file of JSON lines, to which each plan adds one when it is done.

The same file as of `lowtide sweep` (src/lowtide/io/sweep_results.h).
"""

from __future__ import annotations

import fcntl
import json
import os
from typing import Any

import lowtide

from .grid import Task

ERROR = "error"  # the status of a task that ended with an error; the next run repeats it
FOUND = ("status", "budget_bytes", "peak", "taken", "duration", "base_duration", "overhead_percent", "bound", "gap_percent",
         "smallest_peak", "floor", "found_by", "stopped_by", "time_s", "reason")
_START = b'{"task":"'


def failed(reason: str) -> dict[str, Any]:
    """What is found for a task that ended with an error."""
    return {**dict.fromkeys(FOUND), "status": ERROR, "reason": reason, "time_s": 0.0}


class Results:
    """The file, open for one sweep alone; without a path, results are kept in memory."""

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self.path = None if path is None else os.fspath(path)
        self.rows: dict[str, dict[str, Any]] = {}  # by the keys of tasks
        self._file = None
        if self.path is None:
            return
        try:
            self._file = open(self.path, "a+b", buffering=0)
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._read()
        except BlockingIOError:
            self.close()
            raise lowtide.Error(f"{self.path}: another sweep is writing to this file; wait for it, or name another file") from None
        except OSError as error:
            self.close()
            raise lowtide.Error(f"{self.path}: cannot be written: {error.strerror}") from error
        except BaseException:
            self.close()
            raise

    def _read(self) -> None:
        assert self._file is not None
        self._file.seek(0)
        whole, end, rest = self._file.read().rpartition(b"\n")
        for number, line in enumerate(whole.split(b"\n") if end else [], 1):
            try:
                row = json.loads(line)
                self.rows[row["task"]] = {"task": row["task"], "given": row["given"], "found": row["found"]}
            except (ValueError, TypeError, KeyError):
                raise self._refused(number) from None
        if rest and not _START.startswith(rest[:len(_START)]):
            raise self._refused(len(self.rows) + 1)
        if rest:  # what a killed run has left
            self._file.truncate(len(whole) + len(end))

    def _refused(self, number: int) -> lowtide.Error:
        return lowtide.Error(f"{self.path}: line {number}: is not a result of a sweep; name another file for the results")

    def has(self, task: Task) -> bool:
        """Whether there is a result that is no error."""
        return task.key in self.rows and self.rows[task.key]["found"]["status"] != ERROR

    def add(self, task: Task, found: dict[str, Any]) -> None:
        row = {"task": task.key, "given": task.given, "found": found}
        if self._file is not None:
            line = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
            while line:
                line = line[self._file.write(line):]
        self.rows[task.key] = row

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
