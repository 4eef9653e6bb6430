"""`lowtide.sweep`."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import sys
from collections.abc import Callable, Generator, Mapping
from typing import TYPE_CHECKING, Any

import lowtide

from .grid import Task, tasks_of
from .processes import Result, run
from .results import ERROR, FOUND, Results

if TYPE_CHECKING:
    from concurrent.futures import Executor


class Sweep:
    """The results of a sweep, in the order of its tasks."""

    def __init__(self, tasks: list[Task], rows: Mapping[str, dict[str, Any]]) -> None:
        # dicts with task, given and found; `given` as it is written now, where an earlier run had other names
        self.rows = [{**rows[task.key], "given": task.given} for task in tasks if task.key in rows]
        self.complete = len(self.rows) == len(tasks) and not self.errors

    @property
    def errors(self) -> list[dict[str, Any]]:
        """The rows of tasks that ended with an error; another call repeats these."""
        return [row for row in self.rows if row["found"]["status"] == ERROR]

    def to_csv(self) -> str:
        """As `lowtide sweep --csv`."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        names = list(self.rows[0]["given"]) if self.rows else []
        writer.writerow([*names, *FOUND])
        for row in self.rows:
            writer.writerow([*(row["given"][name] for name in names), *(row["found"][name] for name in FOUND)])
        return out.getvalue()

    def __str__(self) -> str:
        """A table; of the settings those that differ."""
        names = list(self.rows[0]["given"]) if self.rows else []
        shown = [name for name in names if name in ("graph", "budget") or len({str(r["given"][name]) for r in self.rows}) > 1]
        lines = [[*shown, "status", "peak", "overhead", "gap"]]
        folder = os.path.commonprefix([row["given"]["graph"] for row in self.rows]).rfind("/") + 1
        for row in self.rows:
            found, given = row["found"], row["given"]
            lines.append([*(given[name][folder:] if name == "graph" else str(given[name]) for name in shown), found["status"],
                          _number(found["peak"], ",", ""), _number(found["overhead_percent"], ".2f", " %"), _number(found["gap_percent"], ".2f", " %")])
        widths = [max(map(len, column)) for column in zip(*lines)]
        left = len(shown) + 1
        return "\n".join("  ".join(cell.ljust(width) if i < left else cell.rjust(width)
                                   for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def _number(value: float | None, format_: str, unit: str) -> str:
    return "" if value is None else f"{value:{format_}}{unit}"


def sweep(grid: str | os.PathLike[str] | Mapping[str, Any], *, results: str | os.PathLike[str] | None,
          scheduler: str | Executor | None, workers: int | None, progress: Callable[[int, int], object] | None) -> Sweep:
    """See `lowtide.sweep`."""
    if workers is not None and workers < 1:
        raise lowtide.Error(f"workers must be at least 1, not {workers}")
    tasks = tasks_of(grid)
    file = Results(results)
    try:
        left = [task for task in tasks if not file.has(task)]
        tell = progress or _line()
        tell(len(tasks) - len(left), len(tasks))
        with contextlib.closing(_scheduled(left, scheduler, workers)) as found_one_by_one:
            for done, (task, found) in enumerate(found_one_by_one, len(tasks) - len(left) + 1):
                if found["stopped_by"] != "cancelled":  # then it was cut short, and is no result
                    file.add(task, found)
                tell(done, len(tasks))
        return Sweep(tasks, file.rows)
    finally:
        file.close()


def _scheduled(tasks: list[Task], scheduler: str | Executor | None, workers: int | None) -> Generator[Result, None, None]:
    if scheduler is None:
        ray = sys.modules.get("ray")
        scheduler = "ray" if ray is not None and ray.is_initialized() else "processes"
    if scheduler == "processes":
        return run(tasks, workers)
    from .elsewhere import run_on, run_on_ray

    if scheduler == "ray":
        return run_on_ray(tasks, workers)
    if isinstance(scheduler, str) or not hasattr(scheduler, "submit"):
        raise lowtide.Error(f'scheduler must be "processes", "ray" or a concurrent.futures.Executor, not {scheduler!r}')
    if workers is not None:
        raise lowtide.Error("workers= is for \"processes\" and \"ray\": an Executor has a number of its own")
    return run_on(scheduler, tasks)


def _line() -> Callable[[int, int], None]:
    """A line that shows the progress on a terminal."""
    def tell(done: int, all_: int) -> None:
        if sys.stderr.isatty():
            print(f"\r{done} of {all_} planned", end="\n" if done == all_ else "", file=sys.stderr, flush=True)

    return tell
