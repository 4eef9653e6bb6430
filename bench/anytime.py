"""Pictures of overhead and bound against time.

    python3 bench/anytime.py [FOLDER] [--before FOLDER] [--published FOLDER]

reads FOLDER/history.csv (build/bench) and writes FOLDER/anytime-*.png and .svg: the graphs of the papers, four
captured networks, and four examples where those are absent; and how far the plans of all runs of `auto` are above
what is proven, in the median and at worst, beside the runs of another folder if one is named. Needs matplotlib.
"""
import argparse
import bisect
import math
from pathlib import Path
from statistics import median

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from read import number, read_csv, read_published

# (name, [(graph, budget), ...]); of several with a name, the first that was measured whole.
PICTURES = [
    ("papers", [(f"moccasin/G{i}", "80%") for i in (1, 2, 3, 4)]),
    ("networks", [("captured/resnet50", "act:50%"), ("captured/unet_hiremate", "act:50%"),
                  ("captured/gptneo13b", "act:50%"), ("captured/swin_t", "act:50%")]),
    ("networks", [("examples/resnet50-train", "act:50%"), ("examples/unet-train", "act:50%"),
                  ("examples/gpt2-train", "act:80%"), ("examples/vit-train", "act:50%")]),
]
PLAN, BOUND, OTHER = "#1f5fa8", "#7a8793", "#c2571a"
MARKERS = {"Moccasin": "D", "Checkmate MILP": "s"}


def draw(axes, graph, budget, runs, published):
    end = max(run[-1][0] for run in runs)
    for i, run in enumerate(runs):
        planned = [(at, overhead) for at, overhead, _ in run if overhead is not None]
        alpha = 1 if len(runs) == 1 else 0.5
        if planned:
            axes.step(*zip(*planned), where="post", color=PLAN, alpha=alpha, label="plan" if i == 0 else None)
        axes.step([at for at, _, _ in run], [bound for _, _, bound in run], where="post", color=BOUND,
                  linestyle="--", linewidth=1, alpha=alpha, label="bound" if i == 0 else None)
    known = [row for row in published.get((graph, budget, "given"), [])
             if row["seconds"] and not row["bound"] and row["note"] != "over budget"]
    for row in known:
        axes.plot(float(row["seconds"]), float(row["overhead"]), MARKERS.get(row["method"], "^"), color=OTHER, markersize=5,
                  label=f"{row['method']} (published)")
    last = [overhead for run in runs for _, overhead, _ in run[-1:] if overhead is not None]
    shown = last + [run[-1][2] for run in runs] + [float(row["overhead"]) for row in known]
    axes.set_ylim(0, 1.5 * max(shown) or 1)  # the first plans can be far above
    axes.set_xscale("log")
    axes.set_xlim(1e-3, max([1.2 * end] + [2 * float(row["seconds"]) for row in known]))
    axes.set_title(f"{graph} at {budget}", fontsize=9)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.tick_params(labelsize=8)


def histories(points):
    """{(graph, budget, order): {seed: [(seconds, overhead, bound), ...]}} of `auto` as it is."""
    found = {}
    for point in points:
        if (point["solver"], point["variant"]) == ("auto", "base"):
            runs = found.setdefault((point["graph"], point["budget"], point["order"]), {})
            runs.setdefault(point["seed"], []).append(
                (float(point["seconds"]), number(point["overhead"]), float(point["bound"])))
    return found


def excesses(runs, least, moment):
    """How far the plan of each run is above the bound at that moment, in points; infinite without a plan."""
    found = []
    for question, seeds in runs.items():
        for run in seeds.values():
            i = bisect.bisect_right(run, moment, key=lambda point: point[0])
            overhead = run[i - 1][1] if i else None
            found.append(math.inf if overhead is None else max(0.0, overhead - least[question]))
    return found


def draw_all(path, measured):
    """How far plans are above the highest bound that any run has proven; `measured`: {label: histories}."""
    shared = set.intersection(*(set(runs) for runs in measured.values()))
    # What nobody has a plan for says nothing.
    shared = {question for question in shared if any(overhead is not None for runs in measured.values()
                                                     for run in runs[question].values() for _, overhead, _ in run)}
    kept = {label: {question: runs[question] for question in shared} for label, runs in measured.items()}
    if not shared:
        return
    least = {question: max(bound for runs in kept.values() for run in runs[question].values() for _, _, bound in run)
             for question in shared}
    end = max(at for runs in kept.values() for seeds in runs.values() for run in seeds.values() for at, _, _ in run)
    moments = [10 ** (-3 + i / 40) for i in range(1 + math.ceil(40 * (3 + math.log10(max(end, 0.01)))))]
    figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
    for i, (label, runs) in enumerate(kept.items()):
        columns = [excesses(runs, least, moment) for moment in moments]
        for name, style, value in (("median", "-", median), ("worst", "--", max)):
            line = [value(column) for column in columns]
            axes.plot(moments, [math.nan if math.isinf(point) else max(point, 0.001) for point in line], style,
                      color=(PLAN, BOUND)[i], label=f"{name}, {label}" if len(kept) > 1 else name)
        told = [f"{moment:g} s: {median(column):.3f} median, {max(column):.2f} worst, "
                f"{sum(map(math.isinf, column))} without a plan"
                for moment, column in ((m, excesses(runs, least, m)) for m in (0.1, 1, 10) if m <= 1.2 * end)]
        print(f"{label}, {len(columns[0])} runs, points above the bound: {'; '.join(told)}")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("seconds", fontsize=9)
    axes.set_ylabel("above the bound, in points", fontsize=9)
    axes.set_title(f"{len(shared)} questions", fontsize=9)
    axes.grid(True, color="#e6e6e6", linewidth=0.6)
    axes.tick_params(labelsize=8)
    axes.legend(fontsize=8, frameon=False)
    save(figure, path)


def save(figure, path):
    figure.savefig(path.with_suffix(".png"), dpi=110)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
    print(f"drawn: {path}.png, {path}.svg")


def picture(path, panels, published):
    figure, grid = plt.subplots(2, 2, figsize=(8, 5.2), layout="constrained")
    labels = {}
    for axes, (graph, budget, runs) in zip(grid.flat, panels):
        draw(axes, graph, budget, runs, published)
        for handle, label in zip(*axes.get_legend_handles_labels()):
            labels.setdefault(label, handle)
    for axes in list(grid.flat)[len(panels):]:
        axes.axis("off")
    figure.supxlabel("seconds", fontsize=9)
    figure.supylabel("overhead, per cent", fontsize=9)
    figure.legend(labels.values(), labels.keys(), loc="outside upper center", ncols=5, fontsize=8, frameon=False)
    save(figure, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="build/bench", type=Path)
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="runs of another version to compare with")
    parser.add_argument("--published", default=Path(__file__).parent / "published", type=Path)
    arguments = parser.parse_args()
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "lowtide"  # the same data, the same file
    runs = histories(read_csv(arguments.folder / "history.csv"))
    published = read_published(arguments.published)
    drawn = set()
    for name, wanted in PICTURES:
        panels = [(graph, budget, [*runs.get((graph, budget, "given"), {}).values()]) for graph, budget in wanted]
        panels = [panel for panel in panels if panel[2]]
        if panels and name not in drawn:
            picture(arguments.folder / f"anytime-{name}", panels, published)
            drawn.add(name)
    measured = {"before": histories(read_csv(arguments.before / "history.csv"))} if arguments.before else {}
    draw_all(arguments.folder / "anytime-all", {"now": runs} | measured)


if __name__ == "__main__":
    main()
