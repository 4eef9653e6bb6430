"""What running ops in place saves in plans: overheads at the same bytes, with and without.

    python3 bench/techniques.py [GRAPH ...] [--networks] [--budgets 80,60,50,40,30] [--work N] [--seeds N] [-o FILE]

plans each graph (those of `examples/` unless told; `--networks` captures bench/networks.py first, which needs torch,
torchvision and transformers) with and without the technique `in_place`, from the same seeds with the same counted work
and one thread, and writes the medians as a table. Budgets are shares of the graph's baseline peak, which is the same for both.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Table

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
KINDS = {"apart": "recompute", "in place": "recompute,in_place"}


def plan(graph, budget, techniques, work, seed, *more):
    """Overhead in per cent, or the status where there is no plan."""
    done = subprocess.run(
        [COMMAND, "plan", graph, "--budget", f"{budget}%", "--techniques", techniques, "--work", str(work), "--seed",
         str(seed), "--threads", "1", "--json", *more], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    return found["overhead_percent"] if done.returncode == 0 else found["status"]


def median(results):
    """Of what several seeds gave: one without a plan counts as the worst."""
    numbers = [r for r in results if isinstance(r, float)]
    if 2 * len(numbers) <= len(results):
        return next(r for r in results if not isinstance(r, float))
    return statistics.median(numbers + [float("inf")] * (len(results) - len(numbers)))


def text(result):
    return f"{result:.2f}" if isinstance(result, float) else {"infeasible": "none, proven"}.get(result, "none found")


def capture(folder):
    from networks import NAMES  # needs torch

    for name in NAMES:
        path = folder / f"{name}.graph.json.gz"
        done = subprocess.run([sys.executable, "-m", "lowtide.torch", f"{ROOT}/bench/networks.py:{name}", "--dtype",
                               "amp", "-o", path], capture_output=True, text=True)
        if done.returncode == 0:
            yield path
        else:
            print(f"{name} is left out: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--networks", action="store_true", help="those of bench/networks.py, captured anew")
    parser.add_argument("--budgets", default="80,60,50,40,30", help="shares of the baseline peak, in per cent")
    parser.add_argument("--work", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("-o", "--output", type=Path, help="write the table here, as Markdown")
    given = parser.parse_args()
    table = Table("Overhead in per cent at the same bytes, ops in place and not",
                  [("graph", 0), ("budget", 0), *((kind, 0) for kind in KINDS), ("less", 0)])
    with tempfile.TemporaryDirectory() as folder:
        graphs = given.graphs or ([] if given.networks else sorted(ROOT.glob("examples/*.graph.json.gz")))
        graphs += list(capture(Path(folder))) if given.networks else []
        for graph in graphs:
            for budget in given.budgets.split(","):
                found = {kind: median([plan(graph, budget, techniques, given.work, seed)
                                       for seed in range(given.seeds)]) for kind, techniques in KINDS.items()}
                numbers = [r for r in found.values() if isinstance(r, float)]
                less = f"{numbers[0] - numbers[1]:.2f}" if len(numbers) == 2 else ""
                table.add(graph.name.removesuffix(".graph.json.gz"), f"{budget} %", *map(text, found.values()), less)
                print(*table.rows[-1], sep="  ", flush=True)
    table.notes.append(f"Medians of {given.seeds} seeds, {given.work:,} units of counted work, one thread.")
    if given.output:
        given.output.write_text(table.markdown())


if __name__ == "__main__":
    main()
