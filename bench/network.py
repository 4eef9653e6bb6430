"""How much of the time of collectives plans hide behind computing, at several budgets.

    python3 bench/network.py [GRAPH ...] [--budgets 100,80,65,50] [--work N] [-o FILE]

plans each graph in the given order, in which no collective can be issued earlier than the graph does it, and in any
order. Without graphs it plans steps of FSDP that it makes: blocks whose parameters are gathered before the forward and
again before the backward, and whose gradients are reduced and scattered. A collective takes a share of the time of a
block's forward: 0.4 and 0.9.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from table import Table

ROOT = Path(__file__).resolve().parent.parent
COMMAND = os.environ.get("LOWTIDE_BIN", str(ROOT / "build/release/lowtide"))
FORWARD, PARAMETERS, ACTIVATIONS, RANKS, LAYERS = 1_000_000, 48 << 20, 96 << 20, 8, 4  # of a block; ns and bytes


class Step:
    """A graph under construction."""

    def __init__(self, blocks, share):
        self.tensors, self.ops, self.last = [], [], None
        self.time = int(share * FORWARD)
        parameters = [self.tensor(PARAMETERS // RANKS, role="parameter", stays=True) for _ in range(blocks)]
        batch = result = self.tensor(ACTIVATIONS // LAYERS, role="input", stays=True)
        saved = []
        for parameter in parameters:
            gathered, layers = self.gather(parameter), []
            for _ in range(LAYERS):
                made = self.tensor(ACTIVATIONS // LAYERS)
                self.op([result, gathered], [made], FORWARD // LAYERS, phase="forward")
                layers.append((result, made))
                result = made
            saved.append(layers)
        gradient = self.tensor(ACTIVATIONS // LAYERS)
        self.op([result, batch], [gradient], 1000)
        self.outputs = []
        for parameter, layers in reversed(list(zip(parameters, saved))):
            gathered, of_parameter = self.gather(parameter), self.tensor(PARAMETERS)
            for layer in reversed(layers):
                made = [self.tensor(ACTIVATIONS // LAYERS)] + [of_parameter] * (layer is layers[0])
                self.op([gradient, gathered, *layer], made, 2 * FORWARD // LAYERS, phase="backward")
                gradient = made[0]
            self.outputs.append(self.collective("reduce_scatter", of_parameter, PARAMETERS // RANKS))

    def tensor(self, size, **more):
        self.tensors.append({"bytes": size, **more})
        return len(self.tensors) - 1

    def op(self, inputs, outputs, time, **more):
        self.ops.append({"inputs": inputs, "outputs": outputs, "time": time, **more})
        return len(self.ops) - 1

    def gather(self, parameter):
        return self.collective("all_gather", parameter, PARAMETERS)

    def collective(self, kind, source, size):
        """The collective and the wait for it, which reads what is sent too. Reductions keep their order."""
        arriving, arrived = self.tensor(size), self.tensor(size)
        after = [self.last] if kind == "reduce_scatter" and self.last is not None else []
        op = self.op([source], [arriving], self.time, kind=kind, lane="network", recomputable=False, after=after)
        if kind == "reduce_scatter":
            self.last = op
        self.op([arriving, source], [arrived], 0, kind="wait", recomputable=False, in_place=[[arriving, arrived]])
        return arrived

    def write(self, path):
        path.write_text(json.dumps({"format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": self.tensors,
                                    "ops": self.ops, "outputs": self.outputs}))


def lanes(graph, plan):
    """The time of a plan's steps on the compute lane and on the network lane."""
    on = {"compute": 0, "network": 0}
    for kind, index, *_ in plan["steps"]:
        if kind.startswith("compute"):
            op = graph["ops"][index]
            on[op.get("lane", "compute")] += op["time"]
    return on["compute"], on["network"]


def planned(graph, budget, order, work, folder):
    path = folder / "plan.json"
    done = subprocess.run([COMMAND, "plan", graph, "--budget", f"{budget}%", "--order", order, "--work", str(work),
                           "--threads", "1", "-o", path, "--json"], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        sys.exit(done.stderr)
    found = json.loads(done.stdout)
    return (found, json.loads(path.read_text())) if found["status"] in ("optimal", "feasible") else None


def row(name, graph, budget, order, work, folder):
    found = planned(graph, budget, order, work, folder)
    if found is None:
        return name, order, f"{budget} %", "no plan", "", "", "", ""
    facts, plan = found
    computing, network = lanes(json.loads(graph.read_text()), plan)
    hidden = 1 - (facts["duration"] - computing) / network
    return (name, order, f"{budget} %", f"{facts['duration'] / 1e6:.2f}", f"{(computing + network) / 1e6:.2f}",
            f"{100 * hidden:.0f} %", f"{facts['overhead_percent']:.2f}", f"{facts['gap_percent']:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="*", type=Path)
    parser.add_argument("--budgets", default="100,80,65,50", help="shares of the baseline peak, in per cent")
    parser.add_argument("--work", type=int, default=300_000)
    parser.add_argument("-o", "--output", type=Path, help="write the table here, as Markdown")
    given = parser.parse_args()
    table = Table("The time of collectives behind computing",
                  [("graph", 0), ("order", 0), ("budget", 0), ("ms", 0), ("ms, one lane", 1), ("hidden", 0),
                   ("overhead", 0), ("gap", 0)])
    with tempfile.TemporaryDirectory() as path:
        folder, graphs = Path(path), [(graph.name.removesuffix(".graph.json"), graph) for graph in given.graphs]
        for blocks, share in () if graphs else ((12, 0.4), (12, 0.9), (48, 0.4)):
            graphs.append((f"{blocks} blocks, {share}", folder / f"{blocks}-{share}.graph.json"))
            Step(blocks, share).write(graphs[-1][1])
        for name, graph in graphs:
            for budget in given.budgets.split(","):
                for order in ("given", "free"):
                    table.add(*row(name, graph, budget, order, given.work, folder))
                    print(*table.rows[-1], sep="  ", flush=True)
    table.notes.append(f"{given.work:,} units of counted work for each plan, one thread. *One lane*: if no collective "
                       "ran beside computing. *Hidden*: the share of the collectives' time in which the device computes. "
                       "*Overhead*: over the given order without a plan.")
    if given.output:
        given.output.write_text(table.markdown())


if __name__ == "__main__":
    main()
