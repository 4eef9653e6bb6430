"""The tables of bench/papers/magis from its rows, and the picture of how plans improve while the search runs."""
from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from costs import COSTS
from systems import ABLATIONS, SYSTEMS
from workloads import WORKLOADS

COLUMNS = ("workload", "costs", "system", "question", "peak", "own_peak", "ratio", "ratio_beside", "overhead_percent", "floor_ratio",
           "bound_percent", "transforms", "seconds", "history", "parts")
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
    lines = ["| workload | costs | auto | beside weights | magis | best other | study | paper |",
             "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for workload, costs in dict.fromkeys((w, c) for w, c, _ in of):
        others = {s: r for (w, c, s), r in of.items()
                  if (w, c) == (workload, costs) and s in SYSTEMS and s not in ("auto", "magis") and r}
        least = min(others, key=others.get, default=None)
        ours, theirs = of.get((workload, costs, "auto")), of.get((workload, costs, "magis"))
        bare = beside.get((workload, costs))
        lines.append(f"| {WORKLOADS[workload].title} | {costs} | {'-' if ours is None else f'{ours:.3f}'} | "
                     f"{'-' if bare is None else f'{bare:.3f}'} | {'-' if theirs is None else f'{theirs:.3f}'} | "
                     f"{'' if least is None else f'{others[least]:.3f} {TITLES[least]}'} | "
                     f"{said.get((workload, 'study', costs), '')} | {said.get((workload, 'paper', ''), '')} |")
    return [*lines, ""]


def worth(rows: Rows) -> list[str]:
    """What leaving each technique out costs: `auto`'s figures without it less those with all of them."""
    of = {(r["workload"], r["costs"], r["system"], r["question"]): r for r in rows}
    left_out = [name for name in ABLATIONS if any(r["system"] == name for r in rows)]
    if not left_out:
        return []
    lines = ["## Each technique left out (figures 13 to 15)", "",
             "Peak ratio at +10 % and overhead in 40 % of the memory, with all and without each.", "",
             "| workload | costs | question | all | " + " | ".join(name.removeprefix("auto-") for name in left_out) + " |",
             "| --- | --- | --- |" + " ---: |" * (1 + len(left_out))]
    for workload, costs in dict.fromkeys((r["workload"], r["costs"]) for r in rows):
        for question in (QUESTIONS["+10%"], QUESTIONS["40%"]):
            found = [of.get((workload, costs, name, question)) for name in ("auto", *left_out)]
            lines.append(f"| {WORKLOADS[workload].title} | {costs} | {question} | " +
                         " | ".join("" if one is None else figure(one) for one in found) + " |")
    return [*lines, ""]


def breakdown(rows: Rows) -> list[str]:
    """Shares of the work of each solver in `auto`, of all that solvers do in 40 % of the memory."""
    told = [(r, dict(part.rsplit(":", 1) for part in r["parts"].split())) for r in rows
            if r["system"] == "auto" and r["question"] == QUESTIONS["40%"] and r["parts"]]
    names = list(dict.fromkeys(name for _, parts in told for name in parts))
    if not names:
        return []
    lines = ["## Where the search spends its work (figure 16)", "",
             "Per cent of the work of all solvers that `auto` asked, over all graphs that it planned in 40 % of the memory.",
             "", "| workload | costs | " + " | ".join(names) + " |", "| --- | --- |" + " ---: |" * len(names)]
    for row, parts in told:
        whole = max(1, sum(map(int, parts.values())))
        lines.append(f"| {WORKLOADS[row['workload']].title} | {row['costs']} | " +
                     " | ".join(f"{100 * int(parts.get(name, 0)) / whole:.0f}" for name in names) + " |")
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
    text += ["", "## Peak ratio at +10 %", "", *summary(rows), *worth(rows), *breakdown(rows), "## All figures", ""]
    for workload, costs in dict.fromkeys((r["workload"], r["costs"]) for r in rows):
        text += table(rows, workload, costs)
    return "\n".join(text)


def _axes() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt.subplots(figsize=(8, 5), constrained_layout=True)


def draw_anytime(rows: Rows, path: Path) -> None:
    """Overhead of the best plan over search time at 40 % of the memory, a line for each workload and cost model."""
    picture, axes = _axes()
    for row in rows:
        if row["system"] == "auto" and row["question"] == QUESTIONS["40%"] and row["history"]:
            points = [tuple(map(float, point.split(":"))) for point in row["history"].split()]
            axes.step(*zip(*points, (row["seconds"], points[-1][1])), where="post",
                      label=f"{WORKLOADS[row['workload']].title}, {row['costs']}")
    axes.set(xscale="log", xlabel="seconds", ylabel="overhead in 40 % of the memory, %", ylim=(0, None))
    axes.legend(fontsize=7)
    axes.grid(alpha=0.3)
    picture.savefig(path, dpi=110)


def draw_ablation(rows: Rows, path: Path) -> None:
    """Peak ratio at +10 % of `auto` with all techniques and without each, bars beside one another."""
    picture, axes = _axes()
    of = {(r["workload"], r["costs"], r["system"]): r["ratio"] for r in rows if r["question"] == QUESTIONS["+10%"]}
    places = list(dict.fromkeys((workload, costs) for workload, costs, _ in of))
    systems = [name for name in ("auto", *ABLATIONS) if any(system == name for _, _, system in of)]
    for i, name in enumerate(systems):
        axes.bar([at + (i - len(systems) / 2) * 0.9 / len(systems) for at in range(len(places))],
                 [of.get((*place, name)) or 0 for place in places], 0.9 / len(systems), label=TITLES[name])
    axes.set_xticks(range(len(places)), [f"{WORKLOADS[w].title}\n{costs}" for w, costs in places], fontsize=7)
    axes.set(ylabel="peak at +10 % time, share of PyTorch's", ylim=(0, 1))
    axes.legend(fontsize=7)
    axes.grid(axis="y", alpha=0.3)
    picture.savefig(path, dpi=110)
