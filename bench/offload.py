"""Plans with transfers beside what others do: overheads over a link to the host, in per cent.

    python3 bench/offload.py [GRAPH ...] [--data DATA] [--links 12,25,50] [--budgets 80,65,50,35,25]
                             [--time S | --work N] [-o NAME]

plans each graph (DATA/captured/, and generated ones) at each budget (shares of what is plannable, inputs may leave)
over each link (GB/s each way, 10 us, nothing left to others) in the given order, and writes NAME.csv and NAME.md:

| column | what |
| --- | --- |
| save_on_cpu | PyTorch's: all that is saved goes, synchronously, whatever the budget; in brackets where it needs more |
| recompute | `auto` without a link |
| swap | the solver `offload`: greedy swapping alone |
| swap, recompute | first what may leave without any waiting, then recomputation around it |
| recompute, swap | first recomputation to the budget, then swaps instead of it |
| auto | ours: both searched together |
| bound | proven by `auto` |

A second table has the means over the cells where every peer finds a plan.
"""
import argparse
import csv
import gzip
import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from peers import saved_on_host
from table import Table

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
GENERATED = ["chain-100", "transformer-1000", "resnet-1000", "unet-1000"]
PEERS = ["save_on_cpu", "recompute", "swap", "swap, recompute", "recompute, swap", "auto"]
LATENCY = 10  # us
TIE = 0.05  # points
NANOSECONDS = {"ns": 1, "us": 1_000, "ms": 1_000_000}


def run(*words):
    done = subprocess.run([COMMAND, *map(str, words)], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(map(str, words))}: {done.stderr}")
    return done.stdout


class Cell:
    """One graph at one budget over one link."""

    def __init__(self, path, budget, link, limit, seed, folder):
        self.path, self.budget, self.limit, self.seed = path, budget, limit, seed
        self.link = ["--link", f"{link}GB/s,{LATENCY}us", "--derate", "0%"]
        self.found = Path(folder) / "found.plan.json"

    def plan(self, *words, budget=None, link=True, share=1.0):
        """What `lowtide plan` says; the plan is in self.found if there is one."""
        self.found.unlink(missing_ok=True)
        return json.loads(run(
            "plan", self.path, "--budget", budget or self.budget, "--order", "given", "--threads", 1, "--seed", self.seed,
            *self.limit(share), "--json", "-o", self.found, *(self.link if link else []), *words))

    def overhead(self, said):
        return said["overhead_percent"] if said["status"] in ("optimal", "feasible") else None

    def swap_then_recompute(self):
        """The most that greedy swapping may take away without a wait; the search then only recomputes."""
        low, high = float(self.budget.removeprefix("act:").removesuffix("%")), 100.0
        kept = self.found.with_name("first.plan.json")
        kept.unlink(missing_ok=True)
        for _ in range(6):
            middle = (low + high) / 2
            if self.overhead(self.plan("--solver", "offload", budget=f"act:{middle}%", share=0.25)) == 0:
                high = middle
                self.found.replace(kept)
            else:
                low = middle
        start = ["--start", kept] if kept.exists() else []
        return self.overhead(self.plan("--solver", "search", "--option", "swap=off", *start))

    def recompute_then_swap(self):
        first = self.plan(link=False, share=0.5)
        if self.overhead(first) is None:
            return None
        kept = self.found.with_name("first.plan.json")
        self.found.replace(kept)
        return self.overhead(self.plan("--solver", "search", "--option", "recompute=off", "--start", kept, share=0.5))


def read(path):
    data = Path(path).read_bytes()
    return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)


def graphs(given, folder):
    named = list(given.graphs)
    if not named:
        named = sorted(Path(given.data).glob("captured/*.graph.json*")) if given.data else []
        named += GENERATED
    for graph in named:
        if Path(graph).exists():
            yield Path(graph).name.split(".")[0], Path(graph)
            continue
        kind, _, ops = str(graph).rpartition("-")
        path = Path(folder) / f"{graph}.graph.json"
        run("generate", kind, "--ops", ops, "--seed", given.graph_seed, "-o", path)
        yield str(graph), path


def limit(given):
    """The flags that give a peer its share of the time or work."""
    if given.work is None:
        return lambda share: ["--time", given.time * share]
    return lambda share: ["--work", round(given.work * share)]


def text(value):
    return "none" if value is None else f"{value:.2f}"


def summary(cells):
    """Means by link over the cells (rows as written) where every peer finds a plan; how ours stands beside its peers."""
    searched = [peer for peer in PEERS if peer not in ("save_on_cpu", "auto")]
    shown = [*PEERS, "bound"]
    table = Table("Means over the cells where every peer finds a plan",
                  [("GB/s", 0), ("cells", 0), *((name, 0) for name in shown)])
    for link in dict.fromkeys(cell["link"] for cell in cells):
        both = [cell for cell in cells if cell["link"] == link and None not in (cell[name] for name in shown)]
        if both:
            means = (sum(cell[name] for cell in both) / len(both) for name in shown)
            table.add(link, len(both), *(text(mean) for mean in means))
    found = [cell for cell in cells if cell["auto"] is not None]
    helpless = sum(cell["recompute"] is None for cell in found)
    behind = [cell["auto"] - min((cell[peer] for peer in searched if cell[peer] is not None), default=math.inf)
              for cell in found]
    behind = [points for points in behind if points > TIE]
    near = sum(cell["auto"] - cell["bound"] <= max(0.1, 0.1 * cell["bound"]) for cell in found)
    table.notes.append(
        f"Of {len(cells)} cells auto has a plan in {len(found)} and a proof that there is none in "
        f"{sum(cell['bound'] is None for cell in cells)}; recomputation alone has no plan in {helpless} of them. auto is "
        f"behind the best of those that search by more than {TIE} points in {len(behind)}"
        + (f", by {max(behind):.2f} at most" if behind else "") +
        f"; and within the larger of 0.1 points and a tenth of the bound in {near}.")
    return table


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", help="files, or generated ones (unet-1000)")
    parser.add_argument("--data", help="folder of published and captured graphs")
    parser.add_argument("--links", default="12,25,50", help="GB/s each way")
    parser.add_argument("--budgets", default="80,65,50,35,25", help="shares of what is plannable, in per cent")
    parser.add_argument("--time", type=float, default=1, help="seconds for each peer that searches")
    parser.add_argument("--work", type=int, help="units of counted work instead, the same on every machine")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--graph-seed", type=int, default=1, help="of generated graphs")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/bench/offload")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    table = Table("Overhead in per cent over a link to the host",
                  [("graph", 0), ("budget", 0), ("GB/s", 0), *((name, 0) for name in PEERS), ("bound", 0)])
    table.notes.append("One thread, seed " + str(given.seed) + ", " + (
        f"{given.time:g} s" if given.work is None else f"{given.work:,} units of counted work") +
        " for each that searches. In brackets: needs more than the budget. none: no plan found; as a bound: there is none.")
    with tempfile.TemporaryDirectory() as folder, open(given.output.with_suffix(".csv"), "w", newline="") as file:
        cells, rows = [], csv.writer(file)
        rows.writerow(["graph", "budget", "link", *PEERS, "bound"])
        for name, path in graphs(given, folder):
            graph = read(path)
            base = sum(op["time"] for op in graph["ops"])
            tick = NANOSECONDS.get(graph.get("tick", "none"))
            if tick is None or base == 0:
                print(f"{name} is left out: its ticks are no time", file=sys.stderr)
                continue
            for share in given.budgets.split(","):
                alone = None
                for link in given.links.split(","):
                    cell = Cell(path, f"act:{share}%", link, limit(given), given.seed, folder)
                    ours = cell.plan()
                    if alone is None:
                        alone = cell.overhead(cell.plan(link=False))
                    said = {"recompute": alone, "auto": cell.overhead(ours),
                            "swap": cell.overhead(cell.plan("--solver", "offload")),
                            "swap, recompute": cell.swap_then_recompute(),
                            "recompute, swap": cell.recompute_then_swap()}
                    shown = {peer: text(value) for peer, value in said.items()}
                    priced = saved_on_host.price(
                        graph, lambda size, rate=float(link), tick=tick: math.ceil((LATENCY * 1000 + size / rate) / tick))
                    shown["save_on_cpu"] = "none"
                    if priced:
                        said["save_on_cpu"] = 100 * (priced[0] / base - 1)
                        shown["save_on_cpu"] = text(said["save_on_cpu"])
                        if priced[1] > ours["budget"]:
                            shown["save_on_cpu"] = f"({shown['save_on_cpu']})"
                    bound = 100 * (ours["bound"] / base - 1) if ours["status"] != "infeasible" else None
                    cells.append({"link": link, **{peer: said.get(peer) for peer in PEERS}, "bound": bound})
                    rows.writerow([name, share, *cells[-1].values()])
                    file.flush()
                    table.add(name, f"{share} %", link, *(shown[peer] for peer in PEERS), text(bound))
                    print(name, share, link, *(f"{peer}: {shown[peer]}" for peer in PEERS), flush=True)
    given.output.with_suffix(".md").write_text(table.markdown() + "\n" + summary(cells).markdown())
    print(f"written: {given.output}.csv, {given.output}.md")


if __name__ == "__main__":
    main()
