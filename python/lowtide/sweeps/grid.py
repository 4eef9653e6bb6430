"""The tasks of a sweep: one plan for each combination of its values.

The same files and the same keys as of `lowtide sweep` (src/lowtide/io/sweep_json.h), so that either goes on with the results
of the other.
"""

from __future__ import annotations

import glob
import gzip
import hashlib
import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import lowtide

# The arguments of lowtide.plan that a sweep may vary, in the order of columns.
SETTINGS = ("graph", "budget", "techniques", "order", "footprint", "allocator", "device", "link", "derate", "host_budget",
            "costs", "solver", "options", "time", "work", "seed", "threads")
FORMAT = {"format": "lowtide-sweep", "version": 1}


@dataclass(frozen=True)
class Task:
    key: str  # a hash of the settings, with the content of files in the place of their names
    given: dict[str, Any]  # the settings, as written
    graph: Any  # a Graph, or the path of its file
    arguments: dict[str, Any]  # the other arguments of lowtide.plan


@dataclass(frozen=True)
class _Choice:
    """One value of a setting: as written, as an argument of lowtide.plan, and as hashed."""
    given: Any
    value: Any
    hashed: Any


def tasks_of(grid: str | os.PathLike[str] | Mapping[str, Any]) -> list[Task]:
    """The tasks of a file, or of a mapping with the same keys; each once, those of one graph in a row.

    Raises lowtide.Error for unknown and missing keys, wrong values, and files that cannot be read.
    """
    if isinstance(grid, Mapping):
        return list(_tasks(grid, "", "the sweep"))
    path = os.fspath(grid)
    try:
        written = json.loads(_content(path))
    except ValueError as error:
        raise lowtide.Error(f"{path}: {error}") from error
    if not isinstance(written, dict) or any(written.pop(key, None) != value for key, value in FORMAT.items()):
        raise lowtide.Error(f"{path}: a sweep file is an object with {json.dumps(FORMAT)[1:-1]}")
    return list(_tasks(written, os.path.dirname(path), path))


def _tasks(grid: Mapping[str, Any], folder: str, where: str) -> Iterator[Task]:
    for key in grid:
        if key not in SETTINGS:
            raise lowtide.Error(f"{where}: unknown key {key!r}; there are: {', '.join(SETTINGS)}")
    for key in SETTINGS[:2]:
        if key not in grid:
            raise lowtide.Error(f"{where}: has no {key!r}")
    names = [name for name in SETTINGS if name in grid]
    axes = []
    for name in names:
        try:
            axes.append(list(_choices(name, grid[name], folder)))
        except OSError as error:
            raise lowtide.Error(f"{error.filename}: cannot be read: {error.strerror}") from error
        if not axes[-1]:
            raise lowtide.Error(f"{where}: {name} must not be an empty list")
    seen: set[str] = set()
    for combination in itertools.product(*axes):
        choices = dict(zip(names, combination))
        key = _hash(_json({name: choice.hashed for name, choice in sorted(choices.items())}).encode())[:16]
        if key in seen:
            continue
        seen.add(key)
        arguments = {name: choice.value for name, choice in choices.items() if name != "graph"}
        yield Task(key, {name: choice.given for name, choice in choices.items()}, choices["graph"].value,
                   {"threads": 1, **arguments})


def _choices(name: str, values: Any, folder: str) -> Iterator[_Choice]:
    if name == "graph" and isinstance(values, Mapping):
        for given, graph in values.items():
            yield _graph(given, graph, folder)
        return
    for value in values if isinstance(values, (list, tuple)) else [values]:
        if name == "graph":
            for graph in _files(value, folder):
                yield _graph(graph, graph, folder)
        elif name == "costs" or name == "device" and isinstance(value, str) and ("." in value or "/" in value):
            path = os.path.join(folder, value)
            yield _Choice(value, path, "sha256:" + _hash(_content(path)))
        elif isinstance(value, (str, int, float)) or name == "options" and isinstance(value, dict):
            yield _Choice(value, value, value)
        else:
            raise lowtide.Error(f"{name} must be a text or a number, not {type(value).__name__}")


def _files(value: Any, folder: str) -> Iterable[Any]:
    """The files that a pattern of the shell stands for, as written in `folder`; anything else by itself."""
    if not isinstance(value, (str, os.PathLike)) or not set("*?[") & set(os.fspath(value)):
        return [value]
    found = sorted(glob.glob(os.path.join(folder, value)))
    if not found:
        raise lowtide.Error(f"no file matches {os.fspath(value)!r}")
    return [os.path.relpath(path, folder) if folder and not os.path.isabs(value) else path for path in found]


def _graph(given: Any, graph: Any, folder: str) -> _Choice:
    if isinstance(graph, lowtide.Graph):
        name = given if isinstance(given, str) else graph.name or graph.hash
        return _Choice(name, graph, "sha256:" + _hash(graph.to_json().encode()))
    if not isinstance(graph, (str, os.PathLike)):
        raise lowtide.Error(f"graph must be a lowtide.Graph or the path of a graph file, not {type(graph).__name__}")
    path = os.path.join(folder, graph)
    return _Choice(os.fspath(given), path, "sha256:" + _hash(_content(path)))


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        content = file.read()
    return gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
