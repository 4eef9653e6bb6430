"""What bench/papers/hiremate asks of the command `lowtide`, and the graphs that it asks about."""
from __future__ import annotations

import csv
import gzip
import json
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from table4 import Model, capture

# solver and options of each that is compared
SYSTEMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "auto": ("auto", ()),
    "hiremate": ("hiremate", ("polish=off",)),
    "hiremate, polished": ("hiremate", ()),
    "h_ilp": ("hiremate", ("block=h_ilp", "top=h_ilp", "polish=off")),  # as the paper has it
    "twremat": ("twremat", ()),
}


def published(name: str) -> list[dict[str, str]]:
    with Path(__file__).with_name(f"published-{name}.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def activations(graph: dict[str, Any]) -> dict[str, Any]:
    """The graph with gradients of parameters that take no bytes: as the paper counts, activations and their gradients
    alone are then above what is there from the start."""
    free = {t for t in graph["outputs"] if graph["tensors"][t].get("role") == "gradient"}
    tensors = [{"name": tensor["name"], "bytes": 0} if t in free else tensor
               for t, tensor in enumerate(graph["tensors"])]
    ops = []
    for op in graph["ops"]:
        if free & {*op["inputs"], *op["outputs"]}:  # neither of these says any more how the tensors lie
            op = {key: op[key] for key in op.keys() - {"operands", "results", "arguments", "in_place"}}
        ops.append(op)
    return graph | {"tensors": tensors, "ops": ops}


@dataclass
class Bench:
    lowtide: Path
    folder: Path
    limits: dict[str, tuple[str, ...]]  # of `auto`, and of all others
    rows: list[dict[str, Any]] = field(default_factory=list)

    def run(self, *call: Any) -> str:
        """What the command prints. A budget without a plan is an answer, too; whatever else fails is an error."""
        line = [str(self.lowtide), *map(str, call)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(line)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        return done.stdout

    def graph(self, name: str, model: Model, costs: str = "p100") -> Path:
        """The model's graph, captured unless it is there."""
        path = self.folder / f"{name}-{costs}.graph.json.gz"
        if not path.exists():
            capture(model, costs).save(str(path))
        return path

    def as_counted(self, path: Path) -> Path:
        """The same with memory counted as in the paper."""
        made = path.with_name(path.name.replace(".graph.", ".activations."))
        if not made.exists():
            with gzip.open(path, "rt") as given, gzip.open(made, "wt", compresslevel=1) as out:
                json.dump(activations(json.load(given)), out)
        return made

    def plan(self, part: str, name: str, path: Path, share: float, system: str, memory: str = "activations",
             options: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
        """A row: the plan in this share, in per cent, of what is plannable."""
        solver, own = SYSTEMS[system]
        flags = [flag for option in (*own, *options) for flag in ("--option", option)]
        said = json.loads(self.run("plan", path, "--json", "--budget", f"act:{share:g}%", "--solver", solver, *flags,
                                   *self.limits["auto" if system == "auto" else "other"]))
        base, bound, history = said["base_duration"], said["bound"], said.get("history", [])
        over = said["overhead_percent"]
        row = {"part": part, "graph": name, "memory": memory, "system": system, "share_percent": share, **more,
               "status": said["status"], "overhead_percent": None if over is None else round(over, 3),
               "bound_percent": None if bound is None else round(100 * (bound / base - 1), 3),
               "seconds": round(said["time_s"], 2), "best_after_s": round(history[-1]["time"], 2) if history else None}
        self.rows.append(row)
        print(part, name, memory, system, f"{share:g} %:", row["overhead_percent"], "bound", row["bound_percent"],
              f"{row['seconds']} s", flush=True)
        return row

    def blocks(self, part: str, name: str, path: Path, *options: str) -> dict[str, Any]:
        """A row: what `h_partition` makes of the graph."""
        flags = [flag for option in options for flag in ("--option", option)]
        said = json.loads(self.run("partition", path, "--json", *flags))
        row = {"part": part, "graph": name, "system": said["partitioner"], "levels": said["levels"],
               "blocks": said["count"], "unique": said["unique"], "largest": said["largest"],
               "seconds": round(said["seconds"], 4)}
        self.rows.append(row)
        print(*row.values(), flush=True)
        return row
