"""Runs the tasks of a sweep in an engine that is there: Ray, or whatever has an Executor of Python (Dask, MPI)."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import Executor, Future, as_completed
from typing import Any

import lowtide

from .grid import Task
from .processes import Result
from .results import failed
from .worker import plan_task

RETRIES = 5  # of a task whose node is lost


def run_on(executor: Executor, tasks: list[Task]) -> Generator[Result, None, None]:
    """The results, as they come."""
    running: dict[Future[dict[str, Any]], Task] = {
        executor.submit(plan_task, task.graph, task.arguments): task for task in tasks}
    try:
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
    sent: dict[str | int, Any] = {}

    def graph_of(task: Task) -> Any:
        name = task.graph if isinstance(task.graph, str) else id(task.graph)
        if name not in sent:
            sent[name] = ray.put(lowtide.Graph.load(task.graph) if isinstance(task.graph, str) else task.graph)
        return sent[name]

    running: dict[Any, Task] = {}
    waiting = list(reversed(tasks))
    try:
        while waiting or running:
            while waiting and (workers is None or len(running) < workers):
                task = waiting.pop()
                try:
                    graph = graph_of(task)
                except lowtide.Error as error:
                    yield task, failed(str(error))
                    continue
                running[planner.options(num_cpus=task.arguments["threads"]).remote(graph, task.arguments)] = task
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
