"""Runs the tasks of a sweep in an engine that is there: Ray, or whatever has an Executor of Python (Dask, MPI)."""

from __future__ import annotations

from collections.abc import Callable, Generator
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import lowtide

from .grid import Task
from .processes import Result
from .results import failed
from .worker import plan_task

RETRIES = 5  # of a task whose node is lost


class _Graphs:
    """The graphs of tasks, each loaded and sent once."""

    def __init__(self, send: Callable[[lowtide.Graph], Any]) -> None:
        self._send = send
        self._sent: dict[str | int, Any] = {}

    def of(self, task: Task) -> Any:
        """Raises lowtide.Error if the file of the graph cannot be read."""
        name = task.graph if isinstance(task.graph, str) else id(task.graph)
        if name not in self._sent:
            self._sent[name] = self._send(lowtide.Graph.load(task.graph) if isinstance(task.graph, str) else task.graph)
        return self._sent[name]


def run_on(executor: Executor, tasks: list[Task]) -> Generator[Result, None, None]:
    """The results, as they come.  Graphs are sent, so that other machines need no files of them."""
    graphs = _Graphs(lambda graph: graph)
    running: dict[Future[dict[str, Any]], Task] = {}
    try:
        for task in tasks:
            try:
                running[executor.submit(plan_task, graphs.of(task), task.arguments)] = task
            except lowtide.Error as unread:
                yield task, failed(str(unread))
        for future in as_completed(running):
            error = future.exception()
            yield running[future], future.result() if error is None else failed(f"{type(error).__name__}: {error}")
    finally:
        for future in running:
            future.cancel()


def run_on_ray(tasks: list[Task], workers: int | None) -> Generator[Result, None, None]:
    """The results, as they come, of the cluster that this process is connected to, or else of one on this machine.

    A graph is sent once, so that other machines need no files.  Tasks of a node that is lost run on another.
    """
    try:
        import ray
    except ImportError as error:
        raise lowtide.Error("scheduler='ray' needs the package ray: pip install ray") from error
    started = bool(tasks) and not ray.is_initialized()
    if started:
        ray.init(log_to_driver=False, configure_logging=False)
    planner = ray.remote(max_retries=RETRIES)(plan_task)
    graphs = _Graphs(ray.put)
    # a task for more processors than any node has would wait for ever
    most = max((node["Resources"].get("CPU", 1) for node in ray.nodes() if node["Alive"]), default=1)
    running: dict[Any, Task] = {}
    waiting = list(reversed(tasks))
    try:
        while waiting or running:
            while waiting and (workers is None or len(running) < workers):
                task = waiting.pop()
                try:
                    graph = graphs.of(task)
                except lowtide.Error as error:
                    yield task, failed(str(error))
                    continue
                running[planner.options(num_cpus=min(task.arguments["threads"] or most, most)).remote(graph, task.arguments)] = task
            for ref in ray.wait(list(running))[0] if running else ():
                try:
                    found = ray.get(ref)
                except ray.exceptions.RayError as error:
                    found = failed(f"{type(error).__name__}: {error}")
                yield running.pop(ref), found
    finally:
        if started:
            ray.shutdown()
        else:
            for ref in running:
                ray.cancel(ref, force=True)
