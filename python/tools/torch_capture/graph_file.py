"""Write Lowtide's graph format, version 1: the same graph gives the same bytes, everywhere."""

from __future__ import annotations

import gzip
import io
import json
import os
from pathlib import Path
from typing import Any

# what a reader assumes where a key is absent, so what need not be written
_DEFAULTS: dict[str, Any] = {"workspace": 0, "recomputable": True, "after": [], "mutates": [], "attributes": {}}


def _line(entry: dict[str, Any]) -> str:
    kept = {k: v for k, v in entry.items() if v is not None and not (k in _DEFAULTS and v == _DEFAULTS[k])}
    return json.dumps(kept, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def to_json(graph: dict[str, Any]) -> str:
    """The graph as JSON: one line for each tensor and each op, keys in the order they were put in."""
    parts = []
    for key, value in graph.items():
        if key in ("tensors", "ops"):
            text = "[\n" + ",\n".join(_line(entry) for entry in value) + "\n]" if value else "[]"
        else:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        parts.append(f"{json.dumps(key)}:{text}")
    return "{" + ",\n".join(parts) + "}\n"


def write_graph(graph: dict[str, Any], path: str | os.PathLike[str]) -> int:
    """Write `graph` to `path`, compressed if the name ends in .gz; returns the bytes written.

    Goes through a neighbour and a rename, so nobody reads half a file.  Raises OSError.
    """
    path = Path(path)
    data = to_json(graph).encode()
    if path.suffix == ".gz":
        packed = io.BytesIO()
        with gzip.GzipFile(filename="", mode="wb", fileobj=packed, compresslevel=9, mtime=0) as stream:
            stream.write(data)
        data = packed.getvalue()
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_bytes(data)
    unfinished.replace(path)
    return len(data)
