"""Plans with transfers beside exact ones: durations over a link to the host, of tiny training steps.

    tools/engines python3 bench/offload_tiny.py [--layers 2,3,4] [--seeds N] [--rooms 60,30,0] [--links 20,5] [--work N]
                                                [--time S] [-o NAME]

draws networks of a few layers with skips, plans them in the given order in what room there is between the least that any
op needs and the graph's baseline peak, over links of so many GB/s and 100 us, and writes NAME.csv and NAME.md:

| column | what |
| --- | --- |
| recompute | `auto` without a link |
| offload, search, auto | ours, each with so much counted work |
| bound | proven by `auto` |
| MILP | Checkmate's integer program with transfers by HiGHS, within so many seconds; bound and seconds beside |
| brute force | the least of all plans, where its program (build/release/tests/fastest) is there and can |

All are overheads in per cent. Every plan, the program's too, has been through `lowtide verify`.
"""
import argparse
import csv
import json
import math
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from offload import COMMAND, ROOT, run, text
from peers import highs
from peers.checkmate_transfers import Transfers
from table import Table

LATENCY = 100  # us
COLUMNS = ["ops", "seed", "room", "link", "recompute", "offload", "search", "auto", "bound", "MILP", "MILP's bound",
           "MILP's seconds", "brute force", "its seconds"]


def drawn(layers, seed):
    """Forward, loss, backward: 10 to 100 MB a tensor, 1 to 10 ms a layer forward and twice that backward; some read the
    output of an earlier one, too."""
    draw = random.Random(seed)
    tensors = [{"bytes": draw.randrange(1, 11) * 10_000_000} for _ in range(layers + 1)]
    ops = []
    for i in range(layers):
        skip = [draw.randrange(i)] if i > 0 and draw.random() < 0.4 else []
        ops.append({"inputs": [i, *skip], "outputs": [i + 1], "time": draw.randrange(1, 11) * 1000, "phase": "forward"})
    tensors.append(dict(tensors[layers]))
    ops.append({"inputs": [layers], "outputs": [layers + 1], "time": 500, "phase": "backward"})
    for i in range(layers - 1, -1, -1):
        tensors.append(dict(tensors[i]))
        ops.append({"inputs": [len(tensors) - 2, *ops[i]["inputs"]], "outputs": [len(tensors) - 1],
                    "time": 2 * ops[i]["time"], "phase": "backward"})
    return {"format": "lowtide-graph", "version": 1, "name": f"{layers} layers, seed {seed}", "tick": "us",
            "tensors": tensors, "ops": ops, "outputs": [len(tensors) - 1]}


def budget_of(graph, path, room):
    """Bytes, from the least that any op needs (0 %) to the graph's baseline peak (100 %)."""
    own = json.loads(run("plan", path, "--budget", "100%", "--work", 1, "--json"))["budget"]
    least = max(sum(graph["tensors"][v]["bytes"] for v in {*op["inputs"], *op["outputs"]}) for op in graph["ops"])
    return math.floor(least + room / 100 * (own - least))


class Case:
    """A graph at a budget over a link of so many GB/s."""

    def __init__(self, graph, budget, rate, folder, latency=LATENCY):
        self.graph, self.budget, self.rate, self.latency = graph, budget, rate, latency
        self.path, self.found = Path(folder) / "tiny.graph.json", Path(folder) / "tiny.plan.json"
        self.path.write_text(json.dumps(graph))

    def copy(self, size):
        return self.latency + math.ceil(size / (1000 * self.rate))

    def link(self):
        return f"{self.rate}GB/s,{self.latency}us"

    def plan(self, *words, link=True):
        """What the command says; the plan, or what would be one, is in self.found."""
        return json.loads(run("plan", self.path, "--budget", self.budget, "--order", "given", "--threads", 1, "--json",
                              "-o", self.found, *(["--link", self.link(), "--derate", "0%"] if link else []), *words))

    def verified(self, steps):
        """The duration of steps over the link; a ValueError if they are no plan."""
        plan = json.loads(self.found.read_text())
        machine = {"latency": self.latency, "bytes": 1000 * self.rate, "ticks": 1}
        document = {key: plan[key] for key in ("format", "version", "graph_hash", "budget", "order")}
        document |= {"machine": {"device_to_host": machine, "host_to_device": machine}, "steps": steps}
        self.found.write_text(json.dumps(document))
        done = subprocess.run([COMMAND, "verify", self.path, self.found, "--json"], capture_output=True, text=True)
        verdict = json.loads(done.stdout)
        if not verdict["ok"]:
            raise ValueError(f"{self.graph['name']}: {verdict['reason']}")
        return verdict["duration"]

    def milp(self, library, seconds):
        """(status, duration or none, bound or none); leaves self.found another plan."""
        status, bound, steps = Transfers(self.graph, self.budget, self.copy, self.copy).solve(library, seconds)
        return status, None if steps is None else self.verified(steps), bound

    def fastest(self):
        """By brute force: a duration, `none`, or nothing where it cannot be asked."""
        program = Path(COMMAND).parent / "tests/fastest"
        if not program.exists():
            return None
        done = subprocess.run([program, self.path, str(self.budget), self.link()], capture_output=True, text=True)
        said = done.stdout.strip()
        return int(said) if said.isdigit() else said or None


def agreement(cells):
    """In how many cells with an exact answer ours and the program's plans are as good. Cells: overheads by column."""
    exact = [cell for cell in cells if cell["brute force"] is not None]
    best = {name: sum(cell[name] is not None and cell[name] <= cell["brute force"] + 1e-9 for cell in exact)
            for name in ("offload", "search", "auto", "MILP")}
    return (f"Brute force has a plan in {len(exact)} cells. As good as its: " +
            ", ".join(f"{name} in {count}" for name, count in best.items()) + ".")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", default="2,3,4")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rooms", default="60,30,0", help="from what the largest op needs to the baseline peak, in per cent")
    parser.add_argument("--links", default="20,5", help="GB/s each way")
    parser.add_argument("--work", type=int, default=300_000, help="units of counted work for each of ours")
    parser.add_argument("--time", type=float, default=60, help="seconds for HiGHS")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/bench/offload-tiny")
    given = parser.parse_args()
    library = highs.library()
    if library is None:
        sys.exit("HiGHS is not there: tools/deps engines installs it, tools/engines names it")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    table = Table("Overhead in per cent over a link to the host: tiny training steps beside exact answers",
                  [(name, 0) for name in COLUMNS])
    with tempfile.TemporaryDirectory() as folder, open(given.output.with_suffix(".csv"), "w", newline="") as file:
        measured, rows = [], csv.writer(file)
        rows.writerow(COLUMNS)
        for layers in map(int, given.layers.split(",")):
            for seed in range(1, given.seeds + 1):
                graph = drawn(layers, seed)
                base = sum(op["time"] for op in graph["ops"])

                def overhead(duration, base=base):
                    return 100 * (duration / base - 1) if isinstance(duration, int) else None

                for room in map(float, given.rooms.split(",")):
                    for rate in map(int, given.links.split(",")):
                        case = Case(graph, 0, rate, folder)
                        case.budget = budget_of(graph, case.path, room)
                        alone = case.plan("--work", given.work, link=False)
                        ours = {solver: case.plan("--solver", solver, "--work", given.work)
                                for solver in ("offload", "search", "auto")}
                        begin = time.monotonic()
                        exact = case.fastest()
                        took = time.monotonic() - begin if exact is not None else None
                        begin = time.monotonic()
                        status, milp, bound = case.milp(library, given.time)
                        solved = time.monotonic() - begin
                        numbers = [overhead(said.get("duration")) for said in (alone, *ours.values())]
                        numbers += [overhead(ours["auto"].get("bound")), overhead(milp), overhead(bound)]
                        cells = [*numbers, solved, overhead(exact), took]
                        rows.writerow([len(graph["ops"]), seed, room, rate, *cells])
                        measured.append(dict(zip(COLUMNS[4:], cells)))
                        file.flush()
                        shown = [text(cell) for cell in cells]
                        shown[-1] = "" if took is None else shown[-1]
                        shown[-2] = "" if exact is None else shown[-2]
                        shown[5] += "" if status in ("optimal", "infeasible") else " (not proven)"
                        table.add(len(graph["ops"]), seed, f"{room:g} %", rate, *shown)
                        print(*table.rows[-1], sep="  ", flush=True)
    table.notes.append(f"Room: from what the largest op needs to the baseline peak. {given.work:,} units of counted work for each "
                       f"of ours, {given.time:g} s for HiGHS on one thread.")
    table.notes.append(agreement(measured))
    given.output.with_suffix(".md").write_text(table.markdown())
    print(f"written: {given.output}.csv, {given.output}.md")


if __name__ == "__main__":
    main()
