"""What plans that change the graph win: floors, overheads and memory beside those of recomputation alone.

    build/venv/bin/python bench/torch/transforms.py --lowtide build/release/lowtide -o bench/results/DATE-transforms

Captures the networks of networks.py on fake tensors at the A100's roofline (no GPU), and writes OUTPUT.csv with one row
for each question and OUTPUT.md with the tables.  Three sets of techniques answer each: `recompute` by itself,
`default`, and `all`.  A budget is a share of what is plannable (act:), memory is in GiB beside what is in use from the
start.  --graphs keeps the captured graphs in a folder and takes those that it holds.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lowtide.torch
from networks import NETWORKS

import lowtide

GIB = 2**30
TECHNIQUES = ("recompute", "default", "all")
# network -> shares of what is plannable whose overhead is asked for
SHARES = {"gpt2_24": 35}
FITTED = ("bert_base", "vit_base", "unet", "unetpp", "gpt_neo", "resnet50")
# each beside those with fewer techniques, with as much work; the last two with the A100's link to the host
EQUAL_WORK = {"default": (), "and hoist": ("--techniques", "default,hoist"),
              "and split": ("--techniques", "default,hoist,split"),
              "default, link": ("--device", "a100"), "all, link": ("--device", "a100", "--techniques", "all")}
WORKED = ("bert_base", "gpt2_24", "unet", "gpt_neo", "mixtral_8")
WORK, SEEDS = 3_000_000, 3
# memory ratio at +10 and +5 %: MAGIS (ASPLOS 2024, figure 9, its own builders, GPU and costs)
MAGIS = {"bert_base": (.47, .70), "vit_base": (.37, .61), "unet": (.26, .50), "unetpp": (.13, .26),
         "gpt_neo": (.42, .64), "resnet50": (.51, .64)}
COLUMNS = ("network", "updates", "question", "techniques", "status", "gib", "ratio", "overhead_percent",
           "bound_percent", "bound_scope", "floor_gib", "transforms", "found_by", "time_s")


@dataclass(frozen=True)
class Limits:
    binary: Path
    seconds: float
    threads: int


def ask(limits: Limits, command: str, graph: Path, *flags: str) -> dict[str, Any]:
    """The command's JSON.  A budget without a plan is an answer (exit status 1); all else that fails is an error."""
    call = [str(limits.binary), command, str(graph), "--json", "--time", str(limits.seconds),
            "--threads", str(limits.threads), *flags]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"{' '.join(call)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
    return json.loads(done.stdout)


def in_use(graph: lowtide.Graph) -> int:
    """Bytes that no plan changes: what is in use from the start."""
    return graph.input_bytes + graph.resident_bytes


def answers(limits: Limits, name: str, updates: str, file: Path) -> list[dict[str, Any]]:
    """The rows of one graph."""
    graph = lowtide.Graph.load(str(file))
    base, own = in_use(graph), graph.own_peak
    beside = lambda size: None if size is None else round((size - base) / GIB, 4)
    row = {"network": name, "updates": updates}
    rows = [row | {"question": "own peak", "gib": beside(own)}]
    share = SHARES.get(name, 50)
    for techniques in TECHNIQUES:
        chosen = ("--techniques", techniques)
        made = ask(limits, "plan", file, "--budget", f"act:{share}%", *chosen)
        scope = made["bound_scope"]
        bound = None if made["bound"] is None else round(100 * (made["bound"] / made["base_duration"] - 1), 3)
        rows.append(row | {"question": f"overhead at {share} %", "techniques": techniques, "status": made["status"],
                           "gib": beside(made["peak"]), "overhead_percent": made["overhead_percent"],
                           "bound_percent": bound, "bound_scope": scope, "floor_gib": beside(made["floor"]),
                           "transforms": ", ".join(made["transforms"]), "found_by": made["found_by"],
                           "time_s": made["time_s"]})
        # any time is allowed: the smallest budget that was found
        for question, overhead in (("floor", "1000%"), *((f"memory at +{p} %", f"{p}%") for p in (10, 5)
                                                         if name in FITTED and not updates)):
            made = ask(limits, "fit", file, "--overhead", overhead, *chosen)
            peak = made["peak"]
            rows.append(row | {"question": question, "techniques": techniques, "status": made["status"],
                               "gib": beside(peak), "ratio": peak and round((peak - base) / (own - base), 4),
                               "overhead_percent": made["overhead_percent"], "bound_percent": made["bound_percent"],
                               "floor_gib": beside(made["floor"]), "transforms": ", ".join(made.get("transforms", [])),
                               "found_by": made["found_by"], "time_s": made["time_s"]})
    return rows


def reached(limits: Limits, name: str, file: Path) -> dict[str, Any]:
    """How far the network's axis reaches from its inputs."""
    dim = NETWORKS[name].axis
    inputs = [t.name for t in lowtide.Graph.load(str(file)).tensors if t.name.startswith("input")]
    flags = [flag for tensor in inputs for flag in ("--axis", f"{tensor}:{dim}")]
    call = [str(limits.binary), "dimensions", str(file), "--json", *flags]
    return json.loads(subprocess.run(call, capture_output=True, text=True, check=True).stdout)


def equal_work(limits: Limits, name: str, updates: str, file: Path) -> list[dict[str, Any]]:
    """The overheads with each set of techniques, medians over the seeds."""
    rows = []
    for share in (75, 50, 40, 25):
        for techniques, flags in EQUAL_WORK.items():
            found = []
            for seed in range(SEEDS):
                call = [str(limits.binary), "plan", str(file), "--json", "--budget", f"act:{share}%", "--threads", "1",
                        "--work", str(WORK), "--seed", str(seed), *flags]
                done = subprocess.run(call, capture_output=True, text=True, check=False)
                found.append(json.loads(done.stdout)["overhead_percent"])
            plans = sorted(x for x in found if x is not None)
            rows.append({"network": name, "updates": updates, "question": f"equal work at {share} %",
                         "techniques": techniques, "status": f"{len(plans)} of {SEEDS}",
                         "overhead_percent": plans[len(plans) // 2] if 2 * len(plans) > SEEDS else None})
    return rows


def number(value: Any, digits: int) -> str:
    return "-" if value in (None, "") else f"{value:.{digits}f}"


def report(rows: list[dict[str, Any]], reach: dict[str, dict[str, Any]], limits: Limits) -> str:
    found = {(r["network"], r["updates"], r["question"], r.get("techniques")): r for r in rows}
    graphs = list(dict.fromkeys((r["network"], r["updates"]) for r in rows))
    text = ["# Plans that change the graph", "", "`bench/torch/transforms.py`, A100's roofline, "
            f"{limits.seconds:g} s for each answer, {limits.threads} threads; GiB beside what is in use from the "
            "start, budgets in shares of it. Nothing here ran on a GPU. Floors are what was found, not proven.", "",
            "| network | own peak | floor: " + " | floor: ".join(TECHNIQUES) + " | at | overhead %: "
            + " | overhead %: ".join(TECHNIQUES) + " | bound % (all) | transforms (at the share; at the floor) |",
            "| --- |" + " --- |" * 10]
    for name, updates in graphs:
        get = lambda question, techniques=None, of=(name, updates): found[(*of, question, techniques)]
        share = f"overhead at {SHARES.get(name, 50)} %"
        cells = [NETWORKS[name].title + (f", updates by {updates}" if updates else ""),
                 number(get("own peak")["gib"], 2), *(number(get("floor", t)["gib"], 2) for t in TECHNIQUES),
                 share[12:], *(number(get(share, t)["overhead_percent"], 2) for t in TECHNIQUES),
                 number(get(share, "all")["bound_percent"], 2),
                 f"{get(share, 'all')['transforms'] or 'none'}; {get('floor', 'all')['transforms'] or 'none'}"]
        text.append("| " + " | ".join(cells) + " |")
    text += ["", "## Memory ratio at +10 and +5 %", "", "MAGIS' figures are its paper's: other builders, another GPU, "
             "measured times.", "", "| network | " + " | ".join(TECHNIQUES) + " | transforms | MAGIS |",
             "| --- |" + " --- |" * 5]
    for name, updates in graphs:
        if (name, updates, "memory at +10 %", "all") in found:
            pairs = ["/".join(number(found[name, updates, f"memory at +{p} %", t]["ratio"], 2) for p in (10, 5))
                     for t in TECHNIQUES]
            names = found[name, updates, "memory at +10 %", "all"]["transforms"] or "none"
            text.append(f"| {NETWORKS[name].title} | {' | '.join(pairs)} | {names} | {MAGIS[name][0]}/{MAGIS[name][1]} |")
    worked = list(dict.fromkeys((r["network"], r["updates"], r["question"]) for r in rows
                                if r["question"].startswith("equal work")))
    if worked:
        text += ["", "## More techniques with as much work", "", f"Overhead in per cent, {WORK:,} units on one thread, "
                 f"medians of {SEEDS} seeds. In bold what is worse than with fewer techniques by more than .05 points.",
                 "", "| network | at | " + " | ".join(EQUAL_WORK) + " |", "| --- |" + " --- |" * (1 + len(EQUAL_WORK))]
    for name, updates, question in worked:
        cells, least = [], float("inf")
        for techniques in EQUAL_WORK:
            value = found[name, updates, question, techniques]["overhead_percent"]
            if techniques == "default, link":  # has not what those before it have
                before, least = least, float("inf")
            elif techniques == "all, link":
                least = min(least, before)
            cell = number(value, 2)
            cells.append(f"**{cell}**" if (value is None and least < 1e9) or (value or 0) > least + .05 else cell)
            least = min(least, float("inf") if value is None else value)
        title = NETWORKS[name].title + (f", updates by {updates}" if updates else "")
        text.append(f"| {title} | {question[14:]} | {' | '.join(cells)} |")
    text += ["", "## How far the axis reaches", "", "`lowtide dimensions` from the inputs: the batch, or the tokens of "
             "one sequence.", "", "| network | ops % | bytes % | what stops it |", "| --- |" + " --- |" * 3]
    for name, made in reach.items():
        stops = dict.fromkeys(f"{s['kind']}: {s['reason']}" for s in made["stops"])
        text.append(f"| {NETWORKS[name].title} | {100 * made['carried'] / made['ops']:.1f} | "
                    f"{100 * made['carried_bytes'] / made['bytes']:.1f} | {'; '.join(list(stops)[:4]) or 'nothing'} |")
    return "\n".join(text) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True, help="where to write: .csv and .md are added")
    parser.add_argument("--lowtide", type=Path, default=Path("build/release/lowtide"))
    parser.add_argument("--networks", nargs="*", default=list(NETWORKS), choices=list(NETWORKS))
    parser.add_argument("--updates", nargs="*", default=["llama_8b+sgd", "mixtral_8+sgd"],
                        help="NETWORK+OPTIMIZER: also with the optimizer's step in the graph")
    parser.add_argument("--graphs", type=Path)
    parser.add_argument("--time", type=float, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    limits = Limits(args.lowtide, args.time, args.threads)
    rows: list[dict[str, Any]] = []
    reach: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = args.graphs or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        for name, _, updates in (entry.partition("+") for entry in (*args.networks, *args.updates)):
            file = folder / f"{name}{updates and '-'}{updates}.graph.json.gz"
            if not file.exists():
                network = NETWORKS[name]
                lowtide.torch.capture(network.build, costs="a100", dtype=network.dtype, update=updates or None,
                                      name=network.title).save(str(file))
            if not updates:
                reach[name] = reached(limits, name, file)
            rows += answers(limits, name, updates, file)
            if name in WORKED and (updates or name != "mixtral_8"):
                rows += equal_work(limits, name, updates, file)
            print(name, updates, flush=True)
            # after each network, so that a run that is stopped leaves what it found
            with args.output.with_suffix(".csv").open("w", newline="", encoding="utf-8") as out:
                writer = csv.DictWriter(out, COLUMNS)
                writer.writeheader()
                writer.writerows(rows)
            args.output.with_suffix(".md").write_text(report(rows, reach, limits), encoding="utf-8")


if __name__ == "__main__":
    main()
