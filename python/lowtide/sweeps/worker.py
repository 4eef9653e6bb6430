"""Plans the tasks of a sweep, one after another.

`python -m lowtide.sweeps.worker` is a worker process (processes.py): it reads pickled tasks from standard input and writes what
it found as JSON lines.  It ends when its standard input does, in the middle of a plan too, so that no worker outlives the
sweep, however that ends.
"""

from __future__ import annotations

import functools
import json
import math
import os
import pickle
import queue
import sys
import threading
import time
from typing import Any

import lowtide

from .results import FOUND, failed


def plan_task(graph: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """What is found for a task, as in the file of results; errors are results too."""
    start = time.perf_counter()
    try:
        found = _found(_load(graph) if isinstance(graph, str) else graph, arguments)
    except Exception as error:
        found = failed(str(error) or type(error).__name__)
    return {**found, "time_s": time.perf_counter() - start}


_load = functools.lru_cache(maxsize=1)(lowtide.Graph.load)


def _found(graph: lowtide.Graph, arguments: dict[str, Any]) -> dict[str, Any]:
    outcome = lowtide.plan(graph, **arguments)
    found: dict[str, Any] = dict.fromkeys(FOUND)
    found |= {"status": outcome.status, "budget_bytes": outcome.budget, "base_duration": graph.duration,
              "reason": outcome.note or None}
    if outcome.status == "unsupported":
        return found
    found |= {"found_by": outcome.found_by or None, "stopped_by": outcome.stopped_by, "floor": outcome.floor,
              "smallest_peak": outcome.smallest_peak}
    if outcome.plan is not None and outcome.overhead is not None:
        taken = {"arena": outcome.arena, "reserved": outcome.reserved}.get(outcome.footprint)
        found |= {"peak": outcome.peak, "taken": outcome.peak if taken is None else taken, "duration": outcome.duration,
                  "overhead_percent": 100 * outcome.overhead, "bound": outcome.bound,
                  "gap_percent": 100 * outcome.gap if outcome.gap is not None and math.isfinite(outcome.gap) else None}
    return found


def main() -> None:
    """The process of a worker."""
    tasks: queue.Queue[tuple[Any, dict[str, Any]]] = queue.Queue()

    def read() -> None:
        try:
            while True:
                tasks.put(pickle.load(sys.stdin.buffer))
        finally:
            os._exit(0)  # there is nobody left to plan for

    threading.Thread(target=read, daemon=True).start()
    while True:
        print(json.dumps(plan_task(*tasks.get())), flush=True)


if __name__ == "__main__":
    main()
