"""MAGIS' figures 9 and 10 (ASPLOS 2024), its published bars beside peers and ours, under one cost model for all.

    build/venv/bin/python bench/papers/magis/run.py [--only bert unet] [--costs waves] [--systems auto dtr] [--real]
                                                    [--time 10] [--ablation] [--curves] [-o build/bench/magis]

Captures the paper's seven workloads (workloads.py) into the folder, prices each with every cost model (costs.py), and
asks each system (systems.py) for the least memory at +10 and +5 % time and for the least time in 80, 60, 40 and 20 % of
the memory.  Writes OUTPUT.csv with a row for each answer, OUTPUT.md with the tables, after each workload; with --ablation also what
each technique is worth (figures 13 to 15); where the search spends its work (figure 16) is always there.
"""
from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from costs import COSTS
from magis_report import COLUMNS, draw_ablation, draw_anytime, report
from systems import ABLATIONS, SYSTEMS, Answer, Question
from workloads import PAPER, REAL, WORKLOADS, capture

import lowtide

ROOT = Path(__file__).resolve().parents[3]
OVERHEADS, SHARES = (10, 5), (80, 60, 40, 20)


def captured(folder: Path, name: str, batch: int | None) -> Path:
    """The workload's graph file, made if it is not there."""
    path = folder / f"{name}{f'-{batch}' if batch else ''}.graph.json.gz"
    if not path.exists():
        capture(name, batch).save(str(path))
    return path


def priced(lowtide_binary: Path, graph: Path, device: Path, costs: str) -> Path:
    path = graph.with_name(graph.name.replace(".graph.", f"-{costs}.priced."))
    done = subprocess.run([str(lowtide_binary), "convert", str(graph), str(path), "--device", str(device)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(f"{graph}: {done.stderr}")
    return path


def answers(at: Question, own_peak: int, in_use: int, systems: dict[str, Any]) -> list[dict[str, Any]]:
    """in_use: bytes of the baseline peak that are there from the start, weights and inputs."""
    rows = []

    def add(system: str, question: str, answer: Answer) -> None:
        rows.append({"system": system, "question": question, "peak": answer.peak, "own_peak": own_peak,
                     "ratio": None if answer.peak is None else round(answer.peak / own_peak, 4),
                     "ratio_beside": None if answer.peak is None else round(
                         (answer.peak - in_use) / (own_peak - in_use), 4),
                     "overhead_percent": None if answer.overhead is None else round(answer.overhead, 3),
                     "floor_ratio": None if answer.floor is None else round(answer.floor / own_peak, 4),
                     "bound_percent": None if answer.bound is None else round(answer.bound, 3),
                     "transforms": ", ".join(answer.transforms), "seconds": round(answer.seconds, 2),
                     "history": " ".join(f"{s:.2f}:{o:.3f}" for s, o in answer.history),
                     "parts": " ".join(f"{name}:{work}" for name, work in answer.parts)})

    for name, system in systems.items():
        for overhead in OVERHEADS:
            add(name, f"memory at +{overhead} %", system.memory(at, own_peak, overhead))
        for share in SHARES:
            add(name, f"time in {share} %", system.time(at, own_peak * share // 100))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(WORKLOADS), metavar="WORKLOAD", default=list(PAPER))
    parser.add_argument("--real", action="store_true", help="the real models, too")
    parser.add_argument("--batch", type=int, help="another batch size for all of them")
    parser.add_argument("--costs", nargs="+", choices=list(COSTS), default=list(COSTS))
    parser.add_argument("--systems", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS))
    parser.add_argument("--ablation", action="store_true",
                        help="auto without each technique, too (figures 13 to 15)")
    parser.add_argument("--curves", action="store_true", help="pictures: OUTPUT-anytime.png, overhead over search time; OUTPUT-ablation.png")
    parser.add_argument("--time", type=float, default=10, help="seconds for each answer that is searched for")
    parser.add_argument("--work", type=int, help="units of counted work instead, the same on every machine")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--note", default="", help="a sentence for the report, such as what else the machine did")
    parser.add_argument("--lowtide", type=Path, default=ROOT / "build/release/lowtide")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/bench/magis")
    given = parser.parse_args()
    limit = ("--time", str(given.time)) if given.work is None else ("--work", str(given.work))
    systems = {name: SYSTEMS[name] for name in given.systems} | (ABLATIONS if given.ablation else {})
    given.output.mkdir(parents=True, exist_ok=True)
    rows: list[dict[str, Any]] = []
    how = (f"{given.time:g} s" if given.work is None else f"{given.work:,} units of work") + \
        f" for each answer that is searched for, {given.threads} threads. {given.note}"
    for name in dict.fromkeys([*given.only, *(REAL if given.real else ())]):
        graph = captured(given.output, name, given.batch)
        step = lowtide.Graph.load(str(graph))
        for costs in given.costs:
            device = given.output / f"{costs}.device.json"
            device.write_text(json.dumps(COSTS[costs]))
            rate = COSTS[costs]["host_link"]["bytes_per_second"] / 1e9
            at = Question(given.lowtide, priced(given.lowtide, graph, device, costs), device, rate,
                          (*limit, "--threads", str(given.threads)))
            rows += [{"workload": name, "costs": costs} | row for row in
                     answers(at, step.own_peak, step.input_bytes + step.resident_bytes, systems)]
            at.graph.unlink()
            print(name, costs, file=sys.stderr, flush=True)
            # at once, so that a run that is stopped leaves what it found
            with given.output.with_suffix(".csv").open("w", newline="", encoding="utf-8") as out:
                writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)
            given.output.with_suffix(".md").write_text(report(rows, how), encoding="utf-8")
    if given.curves:
        draw_anytime(rows, given.output.with_name(f"{given.output.name}-anytime.png"))
    if given.curves and given.ablation:
        draw_ablation(rows, given.output.with_name(f"{given.output.name}-ablation.png"))
    print(f"written: {given.output}.md, .csv")


if __name__ == "__main__":
    main()
