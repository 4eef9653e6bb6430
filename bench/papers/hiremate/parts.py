"""The parts of bench/papers/hiremate: each asks, and returns the lines of its section of the report."""
from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

from ask import Bench, published
from table4 import MODELS, SMALLER, transformer

PAPER = {row["model"]: row for row in published("table4")}
# the graphs of HiRemate's models in DATA/hiremate, as its own tool made them
DATA = {"unet": "unet", "mlp": "mixer", "regnet32": "regnet32", "resnet101": "resnet101", "tr66": "transformer6",
        "tr3636": "transformer36", "fno1d": "fno1d"}
# Bytes without a plan of two networks of table 3, from budgets and shares in table 4; of the others nothing says them.
WHOLE = {"unet": 5e9 / .513, "mixer": 4.5e9 / .533}
SHARES = (90, 80, 70, 60)


def table(head: str, rows: list[list[Any]]) -> list[str]:
    return [f"| {head} |", "| --- |" + " ---: |" * head.count("|"),
            *(f"| {' | '.join(map(word, row))} |" for row in rows), ""]


def word(cell: Any) -> str:
    return "-" if cell is None else f"{cell:.2f}" if isinstance(cell, float) else str(cell)


def of_data(data: Path | None) -> dict[str, tuple[Path, str]]:
    """name -> (file, model) of the graphs that are there."""
    found = {name: (data / "hiremate" / f"{name}.graph.json.gz", model) for name, model in DATA.items()} if data else {}
    return {f"data: {name}": pair for name, pair in found.items() if pair[0].exists()}


def sizes(bench: Bench, names: list[str], data: Path | None) -> list[str]:
    """Table 4a."""
    rows = []
    files = {name: (bench.graph(name, MODELS[name]), name) for name in names} | of_data(data)
    for name, (path, model) in files.items():
        with gzip.open(path, "rt") as file:
            graph = json.load(file)
        ops, said = graph["ops"], PAPER[model]
        forward = sum(op.get("phase", "forward") == "forward" for op in ops)
        rows.append([name, forward, int(said["nodes_forward"]), len(ops), int(said["nodes_both"]),
                     len(ops) + len(graph["tensors"]), int(said["nodes_with_data"])])
    return table("model | forward ops | paper | ops | paper | ops and tensors | paper", rows)


def partitions(bench: Bench, names: list[str], data: Path | None) -> list[str]:
    """Table 4b."""
    rows = []
    files = {name: (bench.graph(name, MODELS[name]), name) for name in names} | of_data(data)
    for name, (path, model) in files.items():
        made, said = bench.blocks("4b", name, path), PAPER[model]
        rows.append([name, *(cell for key in ("levels", "blocks", "unique", "largest")
                             for cell in (made[key], int(said[key])))])
    return table("model | levels | paper | blocks | paper | unique | paper | largest | paper", rows)


def proven(made: dict[str, dict[str, Any]]) -> float | None:
    """The highest bound of these plans, as an overhead in per cent."""
    return max((row["bound_percent"] for row in made.values() if row["bound_percent"] is not None), default=None)


def overheads(bench: Bench, names: list[str], data: Path | None, systems: list[str]) -> list[str]:
    """Table 4c."""
    rows = []

    def ask(name: str, path: Path, model: str, memory: str) -> None:
        share, minutes = float(PAPER[model]["memory_percent"]), float(PAPER[model]["minutes"])
        made = {system: bench.plan("4c", name, path, share, system, memory) for system in systems}
        rows.append([name, memory, f"{share:g} %", float(PAPER[model]["predicted_percent"]) - 100, f"{60 * minutes:g}",
                     *(cell for row in made.values() for cell in (row["overhead_percent"], row["seconds"])),
                     proven(made)])

    for name in names:
        captured = bench.graph(name, MODELS[name])
        ask(name, bench.as_counted(captured), name, "activations")
        ask(name, captured, name, "with gradients")
    for name, (path, model) in of_data(data).items():
        ask(name, path, model, "activations")
    head = " | ".join(f"{system} % | s" for system in systems)
    return [*summary(bench.rows), *table(f"model | memory | share | paper % | paper s | {head} | bound %", rows)]


def summary(rows: list[dict[str, Any]]) -> list[str]:
    """On how many of its models each system is where."""
    lines = []
    plans = [row for row in rows if row["part"] == "4c" and row["memory"] == "activations" and row["graph"] in MODELS]
    for system in dict.fromkeys(row["system"] for row in plans):
        mine = [row for row in plans if row["system"] == system]
        least = {row["graph"]: proven({r["system"]: r for r in plans if r["graph"] == row["graph"]}) for row in mine}
        found = {row["graph"]: row["overhead_percent"] for row in mine}
        paper = {name: float(PAPER[name]["predicted_percent"]) - 100 for name in found}
        below, half = (sum(over is not None and over <= share * paper[name] for name, over in found.items())
                       for share in (1, .5))
        beyond = [name for name in found if (least[name] or 0) > paper[name] / 2]
        lines.append(f"`{system}` is at or below the paper's overhead on {below} of {len(found)} models, at most half of it "
                     f"on {half}; half of it is proven to be out of reach on {', '.join(beyond) or 'none'}.")
    return [*lines, ""]


def optima(bench: Bench, systems: list[str]) -> list[str]:
    """Tables 2 and 3: how far each is above the best, in points; ours is at most as far above its bound."""
    rows = []
    said = published("table3")
    for name in dict.fromkeys(row["network"] for row in said):
        path = bench.as_counted(bench.graph(name, (MODELS | SMALLER)[name]))
        for row, share in zip((row for row in said if row["network"] == name), SHARES, strict=True):
            if name in WHOLE:
                share = round(100 * float(row["budget"]) / WHOLE[name], 1)
            made = {system: bench.plan("3", name, path, share, system) for system in systems}
            bound = proven(made)
            paper = [100 * (float(row[key]) - 1) if row[key] else None for key in ("checkmate", "h_ilp")]
            rows.append([name, f"{float(row['budget']) / 1e9:g} GB", *paper, above(paper[1], paper[0]),
                         f"{share:g} %", bound, *(above(r["overhead_percent"], bound) for r in made.values())])
    return table("network | paper's budget | Checkmate % | H-ILP % | above | our share | bound % | "
                 + " | ".join(f"{s} above" for s in systems), rows)


def above(over: float | None, least: float | None) -> float | None:
    return None if over is None or least is None else over - least


def by_size(bench: Bench, systems: list[str], depths: list[int]) -> list[str]:
    """Figure 4: encoder and decoder of more and more layers, in half of what is plannable."""
    rows = []
    for depth in depths:
        path = bench.as_counted(bench.graph(f"transformer{depth}", transformer(depth), "rtx8000"))
        made = [bench.plan("figure4", f"transformer{depth}", path, 50, system, depth=depth) for system in systems]
        rows.append([depth, *(cell for row in made for cell in (row["overhead_percent"], row["best_after_s"]))])
    return table("layers | " + " | ".join(f"{s} % | best after s" for s in systems), rows)


def by_memory(bench: Bench, names: list[str], systems: list[str], shares: list[int]) -> list[str]:
    """Figure 5."""
    rows = []
    for name in names:
        path = bench.as_counted(bench.graph(name, MODELS[name], "rtx8000"))
        for share in shares:
            made = [bench.plan("figure5", name, path, share, system) for system in systems]
            rows.append([name, f"{share} %", *(row["overhead_percent"] for row in made)])
    return table("network | memory | " + " | ".join(f"{s} %" for s in systems), rows)


def by_depth(bench: Bench, systems: list[str]) -> list[str]:
    """Figure 6: smaller blocks make a deeper hierarchy."""
    rows = []
    path = bench.as_counted(bench.graph("transformer6", MODELS["transformer6"], "rtx8000"))
    for size in (20, 15, 10, 7, 5):
        options = (f"block_size={size}", f"top_size={max(10, size * 3 // 2)}")
        levels = bench.blocks("figure6", f"blocks of {size}", path, *options)["levels"]
        made = [bench.plan("figure6", f"blocks of {size}", path, 50, system, options=options, levels=levels)
                for system in systems]
        rows.append([size, levels, *(row["overhead_percent"] for row in made)])
    return table("block size | levels | " + " | ".join(f"{s} %" for s in systems), rows)


def partition_times(bench: Bench, most: int) -> list[str]:
    """How long `h_partition` takes; the paper says two hours for 100,000 nodes."""
    rows, ops = [], 1000
    while ops <= most:
        path = bench.folder / f"transformer-{ops}.json.gz"
        if not path.exists():
            bench.run("generate", "transformer", "--ops", ops, "-o", path)
        rows.append([f"{ops:,}", bench.blocks("partition", f"transformer-{ops}", path)["seconds"],
                     "7200" if ops == 100_000 else None])
        ops *= 10
    return table("ops | s | paper s", rows)
