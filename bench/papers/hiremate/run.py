"""HiRemate's tables and figures (ICML 2025), ours beside what it published.

    build/venv/bin/python bench/papers/hiremate/run.py [--parts 4b 4c] [--only unet mixer] [--data DIR] [--time 5]
                                                       [--long 120] [-o build/bench/hiremate]

Captures the twelve models of table 4 (table4.py) on fake tensors, once into the folder OUTPUT, and asks the command
`lowtide` about them and about HiRemate's own graphs in DIR/hiremate.  Writes OUTPUT.csv, with a row for each answer,
and OUTPUT.md after each part, and a picture for each figure.
"""
from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable
from pathlib import Path

import figures
import parts
from ask import SYSTEMS, Bench
from table4 import MODELS

ROOT = Path(__file__).resolve().parents[3]
PARTS = ("4a", "4b", "4c", "3", "figure4", "figure5", "figure6", "partition", "executed")
COLUMNS = ("part", "graph", "memory", "system", "share_percent", "depth", "status", "overhead_percent", "bound_percent",
           "seconds", "best_after_s", "levels", "blocks", "unique", "largest", "equal", "budget", "planned", "peak",
           "eager_peak")


def executions(bench: Bench, names: list[str]) -> list[str]:
    """What the plans of `lowtide.torch` keep."""
    from executed import executed

    rows = []
    for name in names:
        made = executed(MODELS[name], "act:60%")
        bench.rows.append({"part": "executed", "graph": name, "system": "auto"} | made)
        print("executed", name, made, flush=True)
        rows.append([name, "yes" if made["equal"] else "NO",
                     *(f"{made[key]:,}" for key in ("budget", "peak", "eager_peak")), made["overhead_percent"]])
    return parts.table("model | gradients equal | budget | measured peak | eager | overhead %", rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", metavar="PART", help=f"{', '.join(PARTS)}; without it all")
    parser.add_argument("--only", nargs="+", choices=list(MODELS), metavar="MODEL", default=list(MODELS))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=["auto", "hiremate", "h_ilp"])
    parser.add_argument("--data", type=Path, help="a folder with hiremate/*.graph.json.gz")
    parser.add_argument("--time", type=float, default=5, help="seconds of `auto` for each plan")
    parser.add_argument("--long", type=float, default=120, help="seconds of the others")
    parser.add_argument("--work", type=int, help="units of counted work for all instead, the same on every machine")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else the machine did")
    parser.add_argument("--lowtide", type=Path, default=ROOT / "build/release/lowtide")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/bench/hiremate")
    given = parser.parse_args()
    if unknown := [part for part in given.parts or [] if part not in PARTS]:
        parser.error(f"--parts: {', '.join(unknown)}: no such part; there are {', '.join(PARTS)}")
    if not os.access(given.lowtide, os.X_OK) or given.lowtide.is_dir():
        parser.error(f"--lowtide: {given.lowtide}: no such command; tools/build release lowtide_cli makes one")
    if given.data and not (given.data / "hiremate").is_dir():
        parser.error(f"--data: {given.data}: no folder hiremate in it")
    given.output.mkdir(parents=True, exist_ok=True)
    limit = {"auto": given.time, "other": given.long}
    bench = Bench(given.lowtide, given.output, {
        of: (*(("--time", str(seconds)) if given.work is None else ("--work", str(given.work))),
             "--threads", str(given.threads)) for of, seconds in limit.items()})
    compared = [*given.systems, *(["twremat"] if "twremat" not in given.systems else [])]
    hierarchies = [system for system in given.systems if SYSTEMS[system][0] == "hiremate"]
    makers: dict[str, tuple[str, Callable[[], list[str]]]] = {
        "4a": ("Table 4a: sizes of the graphs", lambda: parts.sizes(bench, given.only, given.data)),
        "4b": ("Table 4b: partitions", lambda: parts.partitions(bench, given.only, given.data)),
        "4c": ("Table 4c: overhead in the paper's share of the memory",
               lambda: parts.overheads(bench, given.only, given.data, given.systems)),
        "3": ("Tables 2 and 3: above the optimum, in points", lambda: parts.optima(bench, given.systems)),
        "figure4": ("Figure 4: size", lambda: parts.by_size(bench, compared, [1, 2, 3, 4, 6, 8, 12])),
        "figure5": ("Figure 5: memory", lambda: parts.by_memory(bench, ["gpt24", "resnet101", "transformer6", "unet"],
                                                                compared, [80, 65, 50, 40, 30, 20])),
        "figure6": ("Figure 6: depth of the hierarchy", lambda: parts.by_depth(bench, hierarchies)),
        "partition": ("Time to partition", lambda: parts.partition_times(bench, 100_000)),
        "executed": ("Executed on a CPU at small size", lambda: executions(bench, given.only)),
    }
    how = (f"{given.time:g} s of `auto`, {given.long:g} s of the others" if given.work is None else
           f"{given.work:,} units of work") + f" for each plan, {given.threads} threads. {given.note}"
    text = ["# HiRemate's tables and figures", "", f"`bench/papers/hiremate/run.py`, {how}".strip(), "",
            "Times are a roofline: of the P100 for tables, of the Quadro RTX 8000 for figures; the paper measured on "
            "these. Its memory is of activations and their gradients alone; *with gradients* counts those of parameters, "
            "too. Its figures are predicted ones, of its own builds of the same networks, with its own times.", ""]
    for part in given.parts or PARTS:
        title, make = makers[part]
        text += [f"## {title}", "", *make()]
        # at once, so that a run that is stopped leaves what it found
        with given.output.with_suffix(".csv").open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(bench.rows)
        given.output.with_suffix(".md").write_text("\n".join(text), encoding="utf-8")
    figures.draw(bench.rows, given.output)
    print(f"written: {given.output}.md, .csv")


if __name__ == "__main__":
    main()
