"""How much larger than the most bytes live the arena of a plan is, beside other planners of offsets.

    python3 bench/offsets.py DATA [--budgets 100,70,50,35] [--plan-time S] [--time S] [--seeds N] [-o FILE]

plans every graph of DATA/captured within shares of its baseline peak, with one thread and N seeds, and gives each plan
offsets in multiples of 512 (`lowtide place`); then places the buffers of DATA/placement. What is absent is skipped. All
figures are height / load. `best` is the plan that lies best among those whose duration is within .1 % of the shortest.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Table

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
BASELINES = ["by_size", "by_duration", "shared_objects"]
COLUMNS = ["buffers", *BASELINES, "place", "seconds"]


def run(*arguments):
    done = subprocess.run([COMMAND, *map(str, arguments), "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def place(*arguments):
    placed = run("place", *arguments, "--baselines")
    heights = [*placed["baselines"].values(), placed["arena"]]
    return placed, [height / placed["load"] for height in heights]


def plans(graph, budget, given, folder):
    """The duration of each plan found, and its file."""
    for seed in range(given.seeds):
        path = Path(folder) / f"{seed}.plan.json"
        found = run("plan", graph, "--budget", f"{budget}%", "--time", given.plan_time, "--threads", 1, "--seed", seed,
                    "-o", path)
        if found["duration"] is not None:
            yield found["duration"], path


def mean_and_worst(values):
    return f"{sum(values) / len(values):.4f} ({max(values):.3f})"


def captured(given):
    table = Table("Arena over the most bytes live: captured training steps, mean (largest)",
                  [("budget", 0), ("plans", 0), *((name, 0) for name in (*BASELINES, "place", "best"))])
    for budget in given.budgets.split(","):
        ratios, best, count = [], [], 0
        for graph in sorted((given.data / "captured").glob("*.graph.json.gz")):
            with tempfile.TemporaryDirectory() as folder:
                found = list(plans(graph, budget, given, folder))
                placed = [(duration, place(graph, path, "--time", given.time)[1]) for duration, path in found]
            if not placed:
                continue
            count += len(placed)
            ratios += [figures for _, figures in placed]
            shortest = min(duration for duration, _ in placed)
            best.append(min(figures[-1] for duration, figures in placed if duration <= shortest * 1.001))
            print(budget, graph.name, *(f"{figure[-1]:.4f}" for _, figure in placed), flush=True)
        if ratios:
            table.add(f"{budget} %", count, *(mean_and_worst(column) for column in zip(*ratios, strict=True)),
                      mean_and_worst(best))
    table.notes.append(f"Plans of {given.plan_time} s by one thread, {given.seeds} seeds; offsets within {given.time} s.")
    return table


def buffers(given):
    table = Table("Height over the most bytes live: buffers of others", [(name, 0) for name in ["file", *COLUMNS]])
    for path in sorted((given.data / "placement").glob("*.csv")):
        capacity = ["--capacity", "1MiB"] if path.name.startswith("minimalloc") else []
        placed, figures = place(path, "--time", given.time, *capacity)
        table.add(path.stem, placed["buffers"], *(f"{figure:.4f}" for figure in figures), f"{placed['seconds']:.2f}")
        print(*table.rows[-1], flush=True)
    table.notes.append("minimalloc's files within their capacity of 1 MiB.")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--budgets", default="100,70,50,35", help="shares of the baseline peak, in per cent")
    parser.add_argument("--plan-time", type=float, default=2)
    parser.add_argument("--time", type=float, default=2)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("-o", "--output", type=Path, help="write the tables here, as Markdown")
    given = parser.parse_args()
    tables = [table for table in (captured(given), buffers(given)) if table.rows]
    if given.output:
        given.output.write_text("\n".join(table.markdown() for table in tables))


if __name__ == "__main__":
    main()
