"""A table of meshes and batch sizes: which fit into a budget, and at which cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Optional

import lowtide

from ...frontend.errors import size_text

Case = tuple[tuple[int, int], Optional[int]]  # a mesh, and the batch of one rank; None: the example's own


def mesh_table(capture: Callable[[tuple[int, int], int | None], lowtide.Graph], cases: Iterable[Case], budget: str, limits: dict[str, Any],
               folder: str | None = None) -> str:
    """Captures each case, plans it in a process of its own, and returns the lines of a table.

    folder: where the graphs and the results are kept; a call that finds a result there does not plan again.
    """
    graphs: dict[str, lowtide.Graph] = {}
    sizes: dict[str, Case] = {}
    if folder is not None:
        Path(folder).mkdir(parents=True, exist_ok=True)
    for mesh, batch in cases:
        name = f"{mesh[0]}x{mesh[1]}" + ("" if batch is None else f"-batch-{batch}")
        graphs[name], sizes[name] = capture(mesh, batch), (mesh, batch)
        if folder is not None:
            graphs[name].save(Path(folder) / f"{name}.graph.json.gz")
    found = lowtide.sweep({"graph": graphs, "budget": budget, **limits},
                          results=None if folder is None else Path(folder) / "results.jsonl")
    lines: list[tuple[str, ...]] = [("mesh", "batch", "unplanned", "", "planned", "overhead", "step", "samples/s")]
    for row in found.rows:
        name = row["given"]["graph"]
        lines.append(_cells(graphs[name], *sizes[name], row["found"]))
    widths = [max(map(len, column)) for column in zip(*lines)]
    return "\n".join("  ".join(cell.ljust(width) if i in (0, 3) else cell.rjust(width)
                               for i, (cell, width) in enumerate(zip(line, widths))).rstrip() for line in lines)


def _cells(graph: lowtide.Graph, mesh: tuple[int, int], batch: int | None, found: dict[str, Any]) -> tuple[str, ...]:
    start = f"{mesh[0]}x{mesh[1]}", "" if batch is None else str(batch), size_text(graph.own_peak)
    if found["peak"] is None:
        words = {"infeasible": f"does not fit: needs {size_text(found['floor'] or 0)} or more"}
        return (*start, words.get(found["status"], found["reason"] or "no plan found"), "", "", "", "")
    seconds = found["duration"] / 1e9
    return (*start, "fits", size_text(found["peak"]), f"{found['overhead_percent']:.2f} %", f"{seconds:.3f} s",
            f"{mesh[0] * batch / seconds:.3g}" if seconds and batch is not None else "")
