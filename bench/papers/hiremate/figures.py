"""Figures 4, 5 and 6 of HiRemate's paper from the rows of bench/papers/hiremate."""
from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

Rows = list[dict[str, Any]]


def lines(axes: Any, rows: Rows, x: str, y: str) -> None:
    for system in dict.fromkeys(row["system"] for row in rows):
        points = sorted((row[x], row[y]) for row in rows if row["system"] == system and row[y] is not None)
        if points:
            axes.plot(*zip(*points), marker="o", markersize=3, label=system)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=7)


def draw(rows: Rows, stem: Path) -> None:
    """A picture for each figure of which there are plans."""
    plans = [row for row in rows if "overhead_percent" in row]
    by_part = {part: [row for row in plans if row["part"] == part] for part in ("figure4", "figure5", "figure6")}
    if found := by_part["figure4"]:
        figure, (top, bottom) = plt.subplots(2, figsize=(6, 7), sharex=True, constrained_layout=True)
        lines(top, found, "depth", "overhead_percent")
        lines(bottom, found, "depth", "best_after_s")
        top.set(ylabel="overhead in half the memory, %", ylim=(0, None))
        bottom.set(xlabel="layers of encoder and decoder", ylabel="seconds until the best plan", yscale="log")
        figure.savefig(f"{stem}-figure4.png", dpi=110)
    if found := by_part["figure5"]:
        names = list(dict.fromkeys(row["graph"] for row in found))
        figure, grid = plt.subplots((len(names) + 1) // 2, 2, figsize=(9, 3.2 * ((len(names) + 1) // 2)), squeeze=False,
                                    constrained_layout=True)
        for name, axes in zip(names, grid.flat):
            lines(axes, [row for row in found if row["graph"] == name], "share_percent", "overhead_percent")
            axes.set(title=name, xlabel="memory of activations, %", ylabel="overhead, %", ylim=(0, None))
        figure.savefig(f"{stem}-figure5.png", dpi=110)
    if found := by_part["figure6"]:
        figure, axes = plt.subplots(figsize=(6, 4), constrained_layout=True)
        lines(axes, found, "levels", "overhead_percent")
        axes.set(xlabel="levels of the hierarchy", ylabel="overhead in half the memory, %", ylim=(0, None))
        figure.savefig(f"{stem}-figure6.png", dpi=110)
    plt.close("all")
