"""The tables of bench/papers/magis from its rows, and the picture of how plans improve while the search runs."""
from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from costs import COSTS
from systems import ABLATIONS, SYSTEMS
from workloads import WORKLOADS

COLUMNS = ("workload", "costs", "system", "question", "peak", "own_peak", "ratio", "ratio_beside", "overhead_percent", "floor_ratio",
           "bound_percent", "transforms", "seconds", "history")
QUESTIONS = {"+10%": "memory at +10 %", "+5%": "memory at +5 %", "80%": "time in 80 %", "60%": "time in 60 %",
             "40%": "time in 40 %", "20%": "time in 20 %"}
TITLES = {key: system.title for key, system in (SYSTEMS | ABLATIONS).items()}

Rows = list[dict[str, Any]]


def published() -> Rows:
    with Path(__file__).with_name("published.csv").open(newline="") as file:
        return list(csv.DictReader(line for line in file if not line.startswith("#")))


def figure(row: dict[str, Any]) -> str:
    memory = row["question"].startswith("memory")
    value = row["ratio" if memory else "overhead_percent"]
    return "-" if value is None else f"{value:.3f}" if memory else f"{value:.2f}"


def table(rows: Rows, workload: str, costs: str) -> list[str]:
    here = {(r["system"], r["question"]): r for r in rows if (r["workload"], r["costs"]) == (workload, costs)}
    systems = list(dict.fromkeys(system for system, _ in here))
    lines = [f"### {WORKLOADS[workload].title}, {costs}", "",
             "| | memory at +10 % | at +5 % | time in 80 % | in 60 % | in 40 % | in 20 % |", "| --- |" + " ---: |" * 6,
             "| PyTorch | 1 | 1 | - | - | - | - |"]
    lines += [f"| {TITLES[system]} | " + " | ".join(figure(here[system, q]) for q in QUESTIONS.values()) + " |"
              for system in systems]
    for row in published():
        if row["workload"] == workload and row["costs"] in ("", costs):
            name = "MAGIS, as published" if row["source"] == "paper" else "split, then recompute and offload (a study)"
            lines.append(f"| {name} | " + " | ".join(row.get(key) or "" for key in QUESTIONS) + " |")
    if ("auto", QUESTIONS["+10%"]) in here:
        best = here["auto", QUESTIONS["+10%"]]
        lines += ["", f"`auto` at +10 %: {best['transforms'] or 'no transform'}; proven: no ratio below "
                      f"{best['floor_ratio']}."]
    return [*lines, ""]


def summary(rows: Rows) -> list[str]:
    """Peak ratio at +10 % of `auto`, also of what is beside weights and inputs, beside the best other system, the study's
    and the paper's."""
    beside = {(r["workload"], r["costs"]): r["ratio_beside"] for r in rows
              if (r["system"], r["question"]) == ("auto", QUESTIONS["+10%"])}
    of = {(r["workload"], r["costs"], r["system"]): r["ratio"] for r in rows if r["question"] == QUESTIONS["+10%"]}
    said = {(r["workload"], r["source"], r["costs"]): r["+10%"] for r in published()}
    lines = ["| workload | costs | auto | beside weights | best other | study | paper |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: |"]
    for workload, costs in dict.fromkeys((w, c) for w, c, _ in of):
        others = {s: r for (w, c, s), r in of.items()
                  if (w, c) == (workload, costs) and s in SYSTEMS and s != "auto" and r}
        least = min(others, key=others.get, default=None)
        ours = of.get((workload, costs, "auto"))
        bare = beside.get((workload, costs))
        lines.append(f"| {WORKLOADS[workload].title} | {costs} | {'-' if ours is None else f'{ours:.3f}'} | "
                     f"{'-' if bare is None else f'{bare:.3f}'} | "
                     f"{'' if least is None else f'{others[least]:.3f} {TITLES[least]}'} | "
                     f"{said.get((workload, 'study', costs), '')} | {said.get((workload, 'paper', ''), '')} |")
    return [*lines, ""]


def report(rows: Rows, how: str) -> str:
    text = ["# MAGIS' workloads", "",
            f"`bench/papers/magis/run.py`, {how}".strip(), "",
            "Memory is the whole peak, weights, inputs and labels included, as `torch.cuda.max_memory_allocated` counts "
            "it, as a share of the peak in PyTorch's order; times are overheads in per cent. `-`: no plan. Links are "
            "PCIe 4, 25 GB/s each way, none of it kept back. Nothing here ran on a GPU; MAGIS' bars were measured on "
            "one, by its own "
            "builders, whose baselines hold 15 to 31 % more in ResNet, the transformers and U-Net (the input of each ReLU, "
            "which PyTorch does not keep, and updates that are not in place), and 7 % less in U-Net++. POFO is priced by its "
            "own model on a chain of layers.", ""]
    text += [f"- `{name}`: {device['title']}" for name, device in COSTS.items()]
    text += ["", "## Peak ratio at +10 %", "", *summary(rows), "## All figures", ""]
    for workload, costs in dict.fromkeys((r["workload"], r["costs"]) for r in rows):
        text += table(rows, workload, costs)
    return "\n".join(text)


def draw(rows: Rows, path: Path) -> None:
    """Overhead of the best plan over search time at 40 % of the memory, a line for each workload and cost model."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure_, axes = plt.subplots(figsize=(8, 5), constrained_layout=True)
    for row in rows:
        if row["system"] == "auto" and row["question"] == QUESTIONS["40%"] and row["history"]:
            points = [tuple(map(float, point.split(":"))) for point in row["history"].split()]
            axes.step(*zip(*points, (row["seconds"], points[-1][1])), where="post",
                      label=f"{WORKLOADS[row['workload']].title}, {row['costs']}")
    axes.set(xscale="log", xlabel="seconds", ylabel="overhead in 40 % of the memory, %", ylim=(0, None))
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    figure_.savefig(path, dpi=110)
