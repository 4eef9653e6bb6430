"""Figures 2, 3, 4 and Tables 1, 2 of Kumar et al. (NeurIPS 2019), ours beside what they published.

    python bench/papers/kumar.py [NETWORK ...] [--time 10] [--out build/bench/kumar]

makes their training graphs (tensorflow_grain.py), plans each as the paper does and as Lowtide does at the same
memory, and writes OUT.csv, OUT.md, OUT.png and OUT.svg.  Needs build/release/lowtide and matplotlib.

NoRemat is the solver `given`, GreedyRemat is `greedy` at the smallest limit that it keeps, TWRemat(k) is `twremat`
as published: min-fill, separators that halve the bags, recursion limit k, no filter.  The order is free, as there.
"""
from __future__ import annotations

import argparse
import csv
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from arena import arena_bytes
from facts import facts
from tensorflow_grain import feed_forward, resnet, transformer

ROOT = Path(__file__).resolve().parents[2]
LOWTIDE = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
COLUMNS = ["network", "family", "depth", "ops", "links", "width", "method", "setting", "beside", "peak", "static",
           "inputs", "length", "relative", "bound", "seconds", "status"]
PAPERS = ("filter=off", "separators=unit", "decomposition=min_fill", "spine=off")
NETWORKS = {
    **{f"resnet{depth}": ("ResNet", depth, lambda depth=depth: resnet(depth)) for depth in (18, 34, 50, 101, 152, 200)},
    **{f"ffn{layers}": ("FFN", layers, lambda layers=layers: feed_forward(layers)) for layers in (10, 25, 50, 75, 100, 150)},
    "transformer-base": ("Transformer", 6, transformer),
    "transformer-big": ("Transformer", 6, lambda: transformer(1024, 16, 4096, batch=64, name="big")),
}
TRADE = "resnet200"  # of figure 4


class Bench:
    """All rows of one network."""

    def __init__(self, name, folder, seconds):
        self._family, self._depth, build = NETWORKS[name]
        self._name, self._seconds = name, seconds
        self._graph = build()
        self._file = Path(folder) / f"{name}.graph.json"
        self._file.write_text(json.dumps(self._graph))
        self._facts = facts(self._graph)
        self.rows = []

    def run(self):
        self._row("NoRemat", "", self._plan("given", "1000%"))
        self._greedy()
        smallest = self._row("TWRemat", "1", self._tw(1))
        self._same_memory(smallest["peak"], "TWRemat 1")
        if self._name == TRADE:
            limit = 4
            while limit < self._facts["ops"]:
                row = self._row("TWRemat", str(limit), self._tw(limit))
                if row["status"] != "no plan":
                    self._same_memory(row["peak"], f"TWRemat {limit}")
                limit *= 4
        return self.rows

    def _greedy(self):
        """The plan at the smallest limit that the heuristic keeps, to one per cent of the peak."""
        low, high, best = 0, 100, None
        while high - low > 1:
            middle = (low + high) // 2
            found = self._plan("greedy", f"{middle}%")
            if found["peak"] is None:
                low = middle
            else:
                high, best = middle, found
        self._row("GreedyRemat", f"{high}%", best or self._plan("greedy", "100%"))

    def _tw(self, limit):
        return self._plan("twremat", "100000%", *PAPERS, f"limit={limit}")

    def _same_memory(self, peak, beside):
        for solver in ("twremat", "auto"):
            self._row(f"Lowtide {solver}", f"{self._seconds:g} s", self._plan(solver, str(peak)), beside)

    def _plan(self, solver, budget, *options):
        plan = self._file.with_suffix(".plan.json")
        plan.unlink(missing_ok=True)
        command = [LOWTIDE, "plan", str(self._file), "--budget", budget, "--solver", solver, "--order", "free",
                   "--time", str(self._seconds), "--json", "-o", str(plan)]
        began = time.perf_counter()
        done = subprocess.run(command + [part for option in options for part in ("--option", option)],
                              capture_output=True, text=True, check=False)
        if not done.stdout.startswith("{"):
            raise SystemExit(f"{shlex.join(command)}: {done.stderr.strip() or 'no answer'}")
        found = json.loads(done.stdout) | {"seconds": time.perf_counter() - began}
        found["static"] = arena_bytes(self._graph, json.loads(plan.read_text())["steps"]) if plan.exists() else None
        return found

    def _row(self, method, setting, found, beside=""):
        planned = found["peak"] is not None
        row = dict.fromkeys(COLUMNS, "") | self._facts | {
            "network": self._name, "family": self._family, "depth": self._depth, "method": method, "setting": setting,
            "beside": beside, "status": found["status"] if planned else "no plan",
            "seconds": f"{found['seconds']:.3f}"}
        if planned:
            row |= {"peak": found["peak"], "static": found["static"], "length": found["duration"],
                    "relative": f"{found['duration'] / self._facts['ops']:.4f}"}
            if method == "Lowtide auto":
                row["bound"] = f"{found['bound'] / self._facts['ops']:.4f}"
        self.rows.append(row)
        print("  ".join(f"{key} {value}" for key, value in row.items() if value != ""), flush=True)
        return row


def machine():
    model = next((line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "CPU") if Path("/proc/cpuinfo").exists() else platform.machine()
    return f"{os.cpu_count()} cores of an {model}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("networks", nargs="*", metavar="NETWORK", help=f"of {', '.join(NETWORKS)} (all)")
    parser.add_argument("--time", type=float, default=10, help="seconds for each plan (10)")
    parser.add_argument("--out", type=Path, default="build/bench/kumar", help="without .csv, .md, .png")
    arguments = parser.parse_args()
    for name in arguments.networks:
        if name not in NETWORKS:
            parser.error(f"there is no network {name!r}; known are {', '.join(NETWORKS)}")
    from kumar_report import write  # matplotlib takes its time

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.networks or NETWORKS:
            rows += Bench(name, folder, arguments.time).run()
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    with arguments.out.with_suffix(".csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    write(rows, arguments.out, f"`{shlex.join(['python', 'bench/papers/kumar.py', *sys.argv[1:]])}` on {machine()}, "
          f"{datetime.date.today().isoformat()}.")


if __name__ == "__main__":
    main()
