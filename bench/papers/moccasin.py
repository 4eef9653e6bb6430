"""Tables 2 and 3 and Figure 5 of the Moccasin paper, our runs beside the published values.

    python3 bench/papers/moccasin.py DATA [--time 60] [--long 300] [--out bench/results]

DATA/moccasin holds G1.json to G4.json, CM1.json and CM2.json. Every run is `lowtide plan --order given` on two
threads: `moccasin` as in the paper (C = 2, staged, from nothing, phase 1 counted in), the same with `start=auto`,
Checkmate's integer program, and its rounded relaxation. Writes DATE-moccasin.md, .csv, .png and .svg. Needs CP-SAT
and HiGHS; the picture needs matplotlib.
"""
import argparse
import csv
import datetime
import json
import os
import platform
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PUBLISHED = ROOT / "bench/published/moccasin.csv"
GRAPHS = ["G1", "G2", "G3", "G4", "CM1", "CM2"]
LARGE = {"G2", "G3", "G4"}  # get --long
BUDGETS = {
    "CM1": ["12136315968", "10787836416"],  # 11.3 and 10.0 GiB
    "CM2": ["34253420544", "30447484928"],  # 31.9 and 28.4 GiB
}
FIGURE_BUDGETS = ["95%", "90%", "85%", "80%"]
# Of the columns of the tables: name there, solver, options.
METHODS = [
    ("Checkmate MILP", "checkmate", []),
    ("Checkmate LP", "checkmate", ["mode=rounding"]),
    ("Moccasin", "moccasin", []),
    ("Moccasin, start=auto", "moccasin", ["start=auto"]),
]
MILP_GRAPHS = {"G1", "CM1", "CM2"}  # with more nodes it finds nothing in a minute
FIELDS = ["graph", "budget", "method", "status", "overhead", "bound", "model_bound", "model_optimal", "peak",
          "best_at_s", "time_s", "limit_s", "note"]


class Bench:
    def __init__(self, arguments):
        self.arguments = arguments
        self.runs = {}

    def run(self, graph, budget, solver, options, limit):
        """What the command says in JSON, or None if the graph is not there."""
        path = Path(self.arguments.data) / "moccasin" / f"{graph}.json"
        key = (graph, budget, solver, *options)
        if not path.exists():
            print(f"{path} is not there, left out", file=sys.stderr)
            return None
        if key not in self.runs:
            line = [self.arguments.command, "plan", path, "--budget", budget, "--order", "given", "--threads", "2",
                    "--time", str(limit), "--solver", solver, "--json"]
            for option in options:
                line += ["--option", option]
            done = subprocess.run(line, capture_output=True, text=True)
            if not done.stdout:
                sys.exit(done.stderr)
            self.runs[key] = json.loads(done.stdout)
            if self.runs[key]["status"] == "unsupported":
                sys.exit(f"{solver}: {self.runs[key]['reason']}")
            print(*key, self.runs[key]["overhead_percent"], f"{self.runs[key]['time_s']:.1f} s", file=sys.stderr)
        return self.runs[key]

    def write_curves(self, path):
        with open(path, "w", newline="") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["graph", "budget", "solver", "options", "seconds", "overhead"])
            for (graph, budget, solver, *options), run in self.runs.items():
                for point in run["history"]:
                    overhead = 100 * (point["duration"] / run["base_duration"] - 1)
                    writer.writerow([graph, budget, solver, " ".join(options), f"{point['time']:.3f}", f"{overhead:.4f}"])

    def limit(self, graph):
        return self.arguments.long if graph in LARGE else self.arguments.time


def published():
    rows = {}
    with open(PUBLISHED, newline="") as file:
        for row in csv.DictReader(file):
            graph = row["graph"].removeprefix("moccasin/")
            rows[graph, row["budget"], row["method"]] = row
    return rows


def facts(graph, budget, method, limit, run):
    history, model = run["history"], run["model"]
    base = run["base_duration"]
    return {
        "graph": graph, "budget": budget, "method": method, "status": run["status"],
        "overhead": run["overhead_percent"], "bound": 100 * (run["bound"] / base - 1) if run["bound"] else None,
        "model_bound": 100 * (model["bound"] / base - 1) if model and model["bound"] is not None else None,
        "model_optimal": bool(model and model["status"] == "optimal"), "peak": run["peak"],
        "best_at_s": history[-1]["time"] if history else None, "time_s": run["time_s"], "limit_s": limit,
        "note": run["reason"] or "",
    }


def cell(row):
    if row["overhead"] is None:
        return "over budget" if "roundings keep" in row["note"] else "-"
    proven = " \\*\\*" if row["status"] == "optimal" else " \\*" if row["model_optimal"] else ""
    return f"{row['overhead']:.3f}{proven}, {row['best_at_s']:.1f} s"


def peak_cell(row):
    return f"{row['peak']:,}" if row["peak"] is not None else "-"


def published_cell(row):
    if row is None:
        return "-"
    over = ", over budget" if row["note"] == "over budget" else ""
    return f"{row['overhead']}, {row['seconds']} s{over}"


def table(rows):
    known = published()
    lines = ["| graph | budget | " + " | ".join(f"{name}: paper | ours" if name in ("Checkmate MILP", "Checkmate LP",
             "Moccasin") else name for name, _, _ in METHODS) + " |"]
    lines.append("| --- | --- |" + " ---: |" * (len(METHODS) * 2 - 1))
    by_key = {(row["graph"], row["budget"], row["method"]): row for row in rows}
    for graph in GRAPHS:
        for budget in budgets_of(graph):
            cells = [graph, budget_text(budget)]
            for name, _, _ in METHODS:
                row = by_key.get((graph, budget, name))
                if name != "Moccasin, start=auto":
                    cells.append(published_cell(known.get((graph, budget, name))))
                cells.append(cell(row) if row else "not run")
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def budgets_of(graph):
    return BUDGETS.get(graph, ["90%", "80%"])


def budget_text(budget):
    return budget if budget.endswith("%") else f"{int(budget) / 2**30:.1f} GiB"


def curve(run):
    """Seconds and overheads in per cent, up to the end of the run."""
    points = [(p["time"], 100 * (p["duration"] / run["base_duration"] - 1)) for p in run["history"]]
    return points and [*points, (max(run["time_s"], points[-1][0]), points[-1][1])]


def peaks(rows):
    lines = ["| graph | budget | " + " | ".join(name for name, _, _ in METHODS) + " |"]
    lines.append("| --- | --- |" + " ---: |" * len(METHODS))
    by_key = {(row["graph"], row["budget"], row["method"]): row for row in rows}
    for graph in GRAPHS:
        for budget in budgets_of(graph):
            found = [by_key.get((graph, budget, name)) for name, _, _ in METHODS]
            lines.append(f"| {graph} | {budget_text(budget)} | "
                         + " | ".join(peak_cell(row) if row else "not run" for row in found) + " |")
    return "\n".join(lines)


def draw(bench, stem):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "lowtide"
    known = published()
    figure, axes = plt.subplots(2, 3, figsize=(14, 7.5), constrained_layout=True)
    for graph, plot in zip(GRAPHS, axes.flat):
        top = 0.2
        for budget, color in zip(BUDGETS.get(graph, FIGURE_BUDGETS), ["#1b7837", "#1f5fa8", "#7a4fa3", "#c2571a"]):
            # What the tables do not have gets the shorter time.
            limit = bench.limit(graph) if budget in budgets_of(graph) else bench.arguments.time
            run = bench.run(graph, budget, "moccasin", [], limit)
            if run is None:
                continue
            label = budget_text(budget)
            points = curve(run)
            if points:
                plot.step(*zip(*points), where="post", color=color, label=f"{label}, C = 2")
                top = max(top, 2.5 * points[-1][1])
            else:
                plot.plot([], [], color=color, label=f"{label}: none in {limit:g} s")
            for key, style, name in ((("moccasin", "start=auto"), ":", "start=auto"), (("checkmate",), "--", "Checkmate")):
                beside = bench.runs.get((graph, budget, *key))
                if beside and curve(beside):
                    plot.step(*zip(*curve(beside)), where="post", color=color, linestyle=style, linewidth=1,
                              label=f"{label}, {name}")
                    top = max(top, 1.3 * curve(beside)[-1][1])
            paper = known.get((graph, budget, "Moccasin"))
            if paper:
                plot.plot(float(paper["seconds"]), float(paper["overhead"]), "D", color=color, markersize=5,
                          markerfacecolor="none", label=f"{label}, paper")
                top = max(top, 1.3 * float(paper["overhead"]))
        plot.set(title=graph, xscale="log", xlim=(0.1, 5000), xlabel="seconds, phase 1 included", ylim=(0, top),
                 ylabel="total duration increase (%)")
        plot.legend(fontsize=7)
        plot.grid(alpha=0.3)
    for ending in ("png", "svg"):
        figure.savefig(f"{stem}.{ending}", dpi=110, metadata={"Date": None} if ending == "svg" else None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--time", type=float, default=60, help="seconds a run (60)")
    parser.add_argument("--long", type=float, default=300, help="of Moccasin on G2 to G4 (300)")
    parser.add_argument("--note", default="", help="a sentence for the report: what else the machine was doing")
    parser.add_argument("--out", default=ROOT / "bench/results")
    parser.add_argument("--command", default=ROOT / "build/release/lowtide")
    arguments = parser.parse_args()
    bench = Bench(arguments)
    if not any((Path(arguments.data) / "moccasin" / f"{graph}.json").exists() for graph in GRAPHS):
        parser.error(f"there is no moccasin/G1.json or the like in {arguments.data!r}")
    rows = []
    for name, solver, options in reversed(METHODS):
        for graph in GRAPHS:
            if name == "Checkmate MILP" and graph not in MILP_GRAPHS:
                continue
            if name == "Checkmate LP" and graph in ("G3", "G4"):
                continue
            limit = bench.limit(graph) if name == "Moccasin" else arguments.time
            for budget in budgets_of(graph):
                run = bench.run(graph, budget, solver, options, limit)
                if run is not None:
                    rows.append(facts(graph, budget, name, limit, run))
    today = datetime.date.today().isoformat()
    stem = Path(arguments.out) / f"{today}-moccasin"
    stem.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{stem}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    text = (f"# Moccasin, tables 2 and 3, {today}\n\n"
            f"`make bench-moccasin DATA=DIR BENCH_TIME={arguments.time:g} BENCH_LONG={arguments.long:g}` on "
            f"{os.cpu_count()} cores ({platform.machine()}), two threads a run; order given, C = 2, staged. "
            f"{arguments.note}\n\nThe paper: 16 cores. A cell is the overhead in per cent and the seconds until that "
            "plan, phase 1 included. \\*: proven the best of the method's own model. \\*\\*: proven the best of all "
            "plans. Checkmate's plans are priced by our rules; \"over budget\": none of the nine roundings keeps it. All "
            f"figures: `{stem.name}.csv`, and `{stem.name}-curves.csv` for the curves.\n\n")
    text += f"{table(rows)}\n\n## Peak memory, bytes\n\n{peaks(rows)}\n\n## Figure 5\n\n![Overhead over seconds]({stem.name}.png)\n"
    Path(f"{stem}.md").write_text(text)
    print(text)
    draw(bench, stem)
    bench.write_curves(f"{stem}-curves.csv")
    print(f"Figure 5: {shlex.quote(str(stem))}.png and .svg")


if __name__ == "__main__":
    main()
