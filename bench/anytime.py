"""Pictures of overhead and bound against time.

    python3 bench/anytime.py [FOLDER] [--published FOLDER]

reads FOLDER/history.csv (build/bench) and writes FOLDER/anytime-*.png and .svg: the graphs of the papers, four
captured networks, and four examples where those are absent. Needs matplotlib.
"""
import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

from read import number, read_csv, read_published  # noqa: E402

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


def runs_of(points, graph, budget):
    """One list of (seconds, overhead, bound) for each seed."""
    runs = {}
    for point in points:
        if (point["graph"], point["budget"], point["order"], point["solver"], point["variant"]) == (
                graph, budget, "given", "auto", "base"):
            runs.setdefault(point["seed"], []).append(
                (float(point["seconds"]), number(point["overhead"]), float(point["bound"])))
    return list(runs.values())


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
    figure.savefig(path.with_suffix(".png"), dpi=110)
    figure.savefig(path.with_suffix(".svg"), metadata={"Date": None})
    plt.close(figure)
    print(f"drawn: {path}.png, {path}.svg")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", default="build/bench", type=Path)
    parser.add_argument("--published", default=Path(__file__).parent / "published", type=Path)
    arguments = parser.parse_args()
    plt.rcParams["svg.fonttype"] = "none"
    plt.rcParams["svg.hashsalt"] = "lowtide"  # the same data, the same file
    points = read_csv(arguments.folder / "history.csv")
    published = read_published(arguments.published)
    drawn = set()
    for name, wanted in PICTURES:
        panels = [(graph, budget, runs_of(points, graph, budget)) for graph, budget in wanted]
        panels = [panel for panel in panels if panel[2]]
        if panels and name not in drawn:
            picture(arguments.folder / f"anytime-{name}", panels, published)
            drawn.add(name)


if __name__ == "__main__":
    main()
