"""Length and memory of Kumar et al.'s two algorithms on long spines: what Theorem 7 promises, drawn.

    python bench/papers/spines.py [--out FOLDER] [--most 100000]

A spine of n ops goes up and down over one stretch, with a rung from each lap to the one before, so that its path-width
is the number of laps. All ops take one tick and make one byte; the schedules are the papers' own, without our filter.
Writes FOLDER/DATE-spines.md, .csv, .png and .svg. Needs build/release/lowtide, and matplotlib.
"""
import argparse
import csv
import datetime
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOWTIDE = ROOT / "build/release/lowtide"
SOLVERS = {"pwremat": ["limit=1"], "twremat": ["limit=1", "separators=unit", "decomposition=min_fill"]}
FIELDS = ["laps", "ops", "solver", "computations_per_op", "values_in_memory", "seconds"]


def spine(ops, laps):
    """The inputs of each op."""
    lap, inputs = ops // laps, []
    for i in range(lap * laps):
        turn, along = divmod(i, lap)
        reads = [i - 1] if i > 0 else []
        # The op at the same place in the lap before, unless that is the one before anyway.
        mate = turn * lap - 1 - along
        if turn > 0 and mate < i - 1:
            reads.append(mate)
        inputs.append(reads)
    return inputs


def graph(inputs):
    return {"format": "lowtide-graph", "version": 1, "name": f"spine of {len(inputs)} ops", "tick": "none",
            "tensors": [{"bytes": 1}] * len(inputs), "outputs": [len(inputs) - 1],
            "ops": [{"inputs": reads, "outputs": [i], "time": 1} for i, reads in enumerate(inputs)]}


def run(path, solver):
    line = [LOWTIDE, "plan", path, "--solver", solver, "--budget", "1TiB", "--order", "given", "--time", "60",
            "--threads", "1", "--json"]
    for option in ["filter=off", *SOLVERS[solver]]:
        line += ["--option", option]
    done = subprocess.run(line, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr or done.stdout)
    return json.loads(done.stdout)


def measure(most):
    sizes = [n for n in (100, 300, 1000, 3000, 10000, 30000, 100000) if n <= most]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spine.graph.json"
        for laps in (2, 3):
            for ops in sizes:
                path.write_text(json.dumps(graph(spine(ops, laps))))
                for solver in SOLVERS:
                    said = run(path, solver)
                    row = [laps, ops, solver, round(said["duration"] / said["base_duration"], 3), said["peak"],
                           round(said["time_s"], 3)]
                    print(*row, flush=True)
                    yield dict(zip(FIELDS, row))


def draw(rows, stem):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "lowtide"
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), constrained_layout=True)
    for plot, field, label in zip(axes, FIELDS[3:5], ("computations per op", "values in memory")):
        for laps, color in ((2, "#1f5fa8"), (3, "#c2571a")):
            for solver, style in (("pwremat", "o-"), ("twremat", "s:")):
                points = [(row["ops"], row[field]) for row in rows if (row["laps"], row["solver"]) == (laps, solver)]
                plot.plot(*zip(*points), style, color=color, markersize=4, label=f"{solver}, path-width {laps}")
        plot.set(xscale="log", xlabel="ops", ylabel=label, ylim=(0, None))
        plot.grid(alpha=0.3)
    axes[0].legend(fontsize=8)
    for ending in ("png", "svg"):
        figure.savefig(f"{stem}.{ending}", dpi=110, metadata={"Date": None} if ending == "svg" else None)


def table(rows):
    solvers = list(SOLVERS)
    lines = ["| path-width | ops | " + " | ".join(f"{solver}: computations per op | values in memory" for solver in solvers)
             + " |", "| ---: | ---: |" + " ---: |" * 2 * len(solvers)]
    by_key = {(row["laps"], row["ops"], row["solver"]): row for row in rows}
    for laps, ops in dict.fromkeys((row["laps"], row["ops"]) for row in rows):
        cells = [f"{by_key[laps, ops, solver][field]:,}" for solver in solvers for field in FIELDS[3:5]]
        lines.append(f"| {laps} | {ops:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=ROOT / "bench/results")
    parser.add_argument("--most", type=int, default=100000, help="ops of the longest spine")
    arguments = parser.parse_args()
    rows = list(measure(arguments.most))
    today = datetime.date.today().isoformat()
    arguments.out.mkdir(parents=True, exist_ok=True)
    stem = arguments.out / f"{today}-spines"
    with open(f"{stem}.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    Path(f"{stem}.md").write_text(
        f"# Long spines, {today}\n\n`python bench/papers/spines.py --most {arguments.most}`. Kumar et al.'s own schedules, "
        "every op one tick and one byte, the order given. Theorem 7: for a fixed path-width the length grows near-linearly "
        "(here the computations per op, by a power of log n) and memory by a power of log n.\n\n"
        f"{table(rows)}\n\n![Computations per op, and values in memory, over the number of ops]({stem.name}.png)\n")
    draw(rows, stem)
    print(f"written: {stem}.md, .csv, .png, .svg")


if __name__ == "__main__":
    main()
