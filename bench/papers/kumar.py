"""Tables 1 and 2 and Figures 2 to 4 of Kumar et al., "Efficient Rematerialization for Deep Networks" (NeurIPS 2019),
with our runs beside the published values.

    python bench/papers/kumar.py [--out FOLDER] [--quick]

writes FOLDER/DATE-kumar.md, .csv and -figure*.png and .svg (bench/results; --quick: shallow networks, build/bench).
Needs build/release/lowtide, and matplotlib.
"""
import argparse
import datetime
import json
import re
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import kumar_report
import tf1
from static_allocation import allocate, lives

ROOT = Path(__file__).resolve().parents[2]
LOWTIDE = ROOT / "build/release/lowtide"
ALL = "1024TiB"
RAW = ["filter=off", "separators=unit", "decomposition=min_fill"]
GREEDY = ["choice=bytes", "repeats=1", "block=1"]
SECONDS = {"twremat": 5, "auto": 15}
TRIES = 4


@dataclass
class Measured:
    """A plan's memory by live bytes and by a static allocation, and its length over that of computing all once."""

    live: int
    static: int
    above: float  # at most so much of `static` lies above the least allocation
    length: float
    seconds: float


class Bench:
    def __init__(self, folder):
        self.folder, self.graphs, self.rows = Path(folder), {}, []

    def graph(self, net):
        path = self.folder / (re.sub(r"\W+", "-", net.name) + ".graph.json")
        if net.name not in self.graphs:
            net.write(path)
            self.graphs[net.name] = json.loads(path.read_text())
        return path

    def ask(self, net, solver, budget=ALL, order="free", options=()):
        """What `lowtide plan` answers, and the plan; nothing if there is none."""
        file = self.folder / "plan.json"
        line = [LOWTIDE, "plan", self.graph(net), "--solver", solver, "--budget", str(budget), "--order", order,
                "--time", str(SECONDS.get(solver, 30)), "--threads", "1", "--json", "-o", file]
        line += [part for each in options for part in ("--option", each)]
        done = subprocess.run(line, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(done.stderr)
        answer = json.loads(done.stdout)
        return answer, json.loads(file.read_text()) if answer["status"] in ("optimal", "feasible") else None

    def measured(self, net, answer, plan):
        found = allocate(lives(self.graphs[net.name], plan["steps"]))
        if found.limit != answer["peak"]:
            raise SystemExit(f"{net.name}: a peak of {answer['peak']} bytes, but {found.limit} live at one time")
        return Measured(answer["peak"], found.bytes, found.above, answer["duration"] / answer["base_duration"],
                        answer["time_s"])

    def keep(self, net, method, measured):
        if measured:
            self.rows.append({"graph": net.name, "nodes": len(net.ops), "edges": net.edges(), "method": method,
                              "live_bytes": measured.live, "static_bytes": measured.static,
                              "static_above": round(measured.above, 6), "relative_length": round(measured.length, 4),
                              "seconds": round(measured.seconds, 3)})
            print(f"{net.name:20} {method:30} {measured.static / 2**30:8.3f} GiB  {measured.length:7.3f}  "
                  f"{measured.seconds:.2f} s", flush=True)
        else:
            print(f"{net.name:20} {method:30} no plan", flush=True)
        return measured

    def plan(self, net, method, *args, **kwargs):
        answer, plan = self.ask(net, *args, **kwargs)
        return self.keep(net, method, self.measured(net, answer, plan) if plan else None)

    def within(self, net, method, solver, memory, tries=1):
        """A plan in this memory. Where its live bytes keep it and its allocation does not, the next try gets twice so
        much less."""
        best, budget = None, memory
        for _ in range(tries):
            answer, plan = self.ask(net, solver, budget)
            if not plan:
                break
            measured = self.measured(net, answer, plan)
            best = min((each for each in (best, measured) if each), key=lambda each: each.static)
            if measured.static <= memory:
                break
            budget -= 2 * (measured.static - memory)
        return self.keep(net, method, best)

    def greedy(self, net):
        """At the lowest limit that it keeps of some: it does not come as low when it is asked for nothing."""
        found, low = None, 0
        high = limit = self.ask(net, "greedy", 1, "given", GREEDY)[0]["smallest_peak"]
        for _ in range(8):
            answer, plan = self.ask(net, "greedy", limit, "given", GREEDY)
            if plan:
                found, high = (answer, plan), limit
            else:
                low = limit
                high = high if found else 2 * high
            limit = (low + high) // 2
        return self.keep(net, "GreedyRemat", self.measured(net, *found) if found else None)

    def trees(self, net, limit, method="TWRemat"):
        return self.plan(net, method, "twremat", options=[*RAW, f"limit={limit}"])

    def methods(self, net):
        """The paper's three, and ours in the memory of its own."""
        found = {"NoRemat": self.plan(net, "NoRemat", "given", order="given"), "GreedyRemat": self.greedy(net),
                 "TWRemat": self.trees(net, 1)}
        found["twremat, same memory"] = self.within(net, "twremat, same memory", "twremat", found["TWRemat"].static)
        return found

    def both(self, net):
        """`methods`, and what ours make of the memory that the paper's reduction leaves, or of TWRemat's if that is
        less."""
        found = self.methods(net)
        memory = min(found["TWRemat"].static, int(found["NoRemat"].static / kumar_report.REDUCTION[net.name]))
        for solver in ("twremat", "auto"):
            method = f"{solver}, the paper's reduction"
            found[method] = self.within(net, method, solver, memory, tries=TRIES)
        return found

    def tenth(self, net, found):
        """What `auto` makes of a tenth of NoRemat's memory."""
        return self.within(net, "auto, a tenth", "auto", found["NoRemat"].static // 10, tries=TRIES)

    def trade_off(self, net):
        """For limits k of the recursion, 1 to the number of nodes: TWRemat(k), and ours in its memory."""
        found, in_memory, limit = {}, {}, 1
        while limit < 2 * len(net.ops):
            raw = self.trees(net, limit, f"TWRemat({limit})")
            if raw.static not in in_memory:
                in_memory[raw.static] = self.within(net, f"twremat within TWRemat({limit})", "twremat", raw.static)
            found[limit] = raw, in_memory[raw.static]
            limit *= 4
        return found

    def width(self, net):
        answer = self.ask(net, "twremat", options=[*RAW, "limit=1000000"])[0]
        return int(re.search(r"width (\d+)", json.dumps(answer))[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--quick", action="store_true")
    flags = parser.parse_args()
    out = flags.out or ROOT / ("build/bench" if flags.quick else "bench/results")
    out.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    depths = {"ResNet": [18, 34, 50] if flags.quick else list(tf1.BLOCKS),
              "FFN": [5, 10, 20] if flags.quick else [10, 20, 40, 60, 80, 100, 150]}
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        nets = {"ResNet": [tf1.resnet(depth) for depth in depths["ResNet"]], "FFN": [tf1.ffn(d) for d in depths["FFN"]]}
        families = {name: {depth: bench.methods(net) for depth, net in zip(depths[name], nets[name])} for name in nets}
        tenths = {name: bench.tenth(nets[name][-1], families[name][depths[name][-1]]) for name in nets}
        trade_off = bench.trade_off(nets["ResNet"][-1])
        transformers = [tf1.transformer(size) for size in ("base", "big")]
        second = {net.name: bench.both(net) for net in transformers}
        first = {net.name: (len(net.ops), net.edges(), bench.width(net))
                 for net in (nets["ResNet"][-1], tf1.ffn(100), *transformers)}
    stem = out / f"{datetime.date.today().isoformat()}-kumar"
    command = f"python bench/papers/kumar.py{' --quick' if flags.quick else ''}"
    kumar_report.write(stem, bench.rows, command, time.monotonic() - began, SECONDS,
                       kumar_report.Results(first, second, families, tenths, trade_off, nets["ResNet"][-1].name))
    print(f"{stem}.md")


if __name__ == "__main__":
    main()
