"""POFO on chains, beside ours: O. Beaumont, L. Eyraud-Dubois, A. Shilova, "Efficient Combination of Rematerialization
and Offloading for Training DNNs", NeurIPS 2021.

    python3 bench/peers/pofo.py [--layers N] [--seeds N] [--budgets 70,55,40] [--rates 20,10,5]
                                 [--time S | --work N] [-o NAME]

Its model: layers 1..L, of which layer i makes a[i] of a[i-1]; its backward reads both and the gradient of a[i], and
makes that of a[i-1]. The state of the dynamic program before layer i is (A, df, db): bytes of activations kept for the
backward beside a[i-1], bytes that still wait to leave, bytes that must have come back when the backward of the layers
from i on has ended. Either layer i runs with its output kept, or the layers i..j run with nothing kept in between, and
their backward begins by computing them again, as rotor does best (Beaumont et al., "Optimal checkpointing for
heterogeneous chains", 2019); in both cases a[i-1] leaves or stays. Where memory does not suffice the lanes are waited
for. A copy has no latency, and its bytes are free (or taken) as they go: so its durations may be shorter than any that
a plan of whole copies has.

One thing is ours: while layers are computed again, the memory for that is constant, the best of all shares, and what is
left of it takes what comes back meanwhile.
"""
import argparse
import csv
import functools
import json
import math
import random
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parent.parent))

INFINITE = math.inf


class Chain:
    """Bytes of a[0..L]; times of the forward and backward of layers 1..L (index 0 is not used).

    A layer that is more than one op says, too, the bytes that it keeps for its backward, a[i] among them, and those
    that its forward and its backward need at most while they run, all beside a[i-1].
    """

    def __init__(self, size, forward, backward, kept=None, need_forward=None, need_backward=None):
        assert len(size) == len(forward) == len(backward)
        self.size, self.forward, self.backward = size, forward, backward
        self.kept = kept or list(size)
        self.need_forward = need_forward or list(size)
        self.need_backward = need_backward or [0] + [2 * b + a for a, b in zip(size, size[1:])]
        self.layers = len(size) - 1

    def total(self):
        return sum(self.forward[1:]) + sum(self.backward[1:])

    def graph(self):
        """As a graph of ours: tensors a[0..L], then their gradients."""
        count = self.layers + 1
        tensors = [{"name": f"a{i}", "bytes": b} for i, b in enumerate(self.size)]
        tensors += [{"name": f"g{i}", "bytes": b, "role": "gradient"} for i, b in enumerate(self.size)]
        ops = [{"name": "load", "inputs": [], "outputs": [0], "time": 0, "recomputable": False, "phase": "forward"}]
        for i in range(1, count):
            ops.append({"name": f"f{i}", "inputs": [i - 1], "outputs": [i], "time": self.forward[i], "phase": "forward"})
        ops.append({"name": "loss", "inputs": [self.layers], "outputs": [count + self.layers], "time": 0,
                    "recomputable": False, "phase": "backward"})
        for i in range(self.layers, 0, -1):
            ops.append({"name": f"b{i}", "inputs": [count + i, i, i - 1], "outputs": [count + i - 1],
                        "time": self.backward[i], "phase": "backward"})
        return {"format": "lowtide-graph", "version": 1, "name": f"a chain of {self.layers} layers", "tick": "us",
                "tensors": tensors, "ops": ops, "outputs": [count], "order": list(range(len(ops)))}


class Pofo:
    """The least duration with `memory` bytes and `rate` bytes a tick each way, in `slots` of memory."""

    def __init__(self, chain, memory, rate, slots=500):
        self.unit = memory / slots
        self.slots = slots
        self.rate = rate / self.unit
        self.chain = chain
        self.size, self.kept, self.run, self.back = (
            [math.ceil(b / self.unit) for b in bytes_]
            for bytes_ in (chain.size, chain.kept, chain.need_forward, chain.need_backward))
        self.before = [0.0]
        for t in chain.forward[1:]:
            self.before.append(self.before[-1] + t)
        self.rotor = functools.lru_cache(maxsize=None)(self._rotor)
        self.breaks = functools.lru_cache(maxsize=None)(self._breaks)
        self.best = functools.lru_cache(maxsize=None)(self._best)

    def duration(self):
        sys.setrecursionlimit(100_000)
        return self.best(1, 0, 0, 0)

    def forward_only(self, i, j):
        return self.before[j] - self.before[i - 1]

    def need_forward(self, i, j):
        """Beside a[i-1], to run i..j with nothing kept in between."""
        return max(self.run[k] + (self.size[k - 1] if k > i else 0) for k in range(i, j + 1))

    def _rotor(self, i, j, m):
        """Forward and backward of i..j with a[i-1] and the gradient of a[j] given; m beside a[i-1]."""
        if i > j:
            return 0.0
        best = INFINITE
        if m >= max(self.back[i], self.kept[i] + self.size[j]):
            best = self.chain.forward[i] + self.chain.backward[i] + self.rotor(i + 1, j, m - self.kept[i])
        if m >= self.size[j] + self.need_forward(i, j - 1) if j > i else False:
            for k in range(i + 1, j + 1):
                if m < self.size[k - 1]:
                    continue
                best = min(best, self.forward_only(i, k - 1) + self.rotor(k, j, m - self.size[k - 1]) +
                           self.rotor(i, k - 1, m))
        return best

    def _breaks(self, i, j):
        """The least memory for each duration of computing i..j again with its backward, the shortest last."""
        found = []
        for m in range(self.slots + 1):
            time = self.rotor(i, j, m)
            if time < (found[-1][1] if found else INFINITE):
                found.append((m, time))
        return found

    def _best(self, i, kept, df, db):
        if i > self.chain.layers:
            return (df + db) / self.rate  # all that leaves has left before the backward
        x = self.size[i - 1]
        room = self.slots - kept - x
        if room < 0 or df > self.slots or db > self.slots:
            return INFINITE
        best = INFINITE
        # Runs with its output kept.
        need_f, need_b = max(self.run[i], self.kept[i]), self.back[i]
        if need_f <= room and need_b <= room:
            best = self._then(i + 1, kept, x + self.kept[i] - self.size[i], df, db, need_f, self.chain.forward[i], need_b,
                              self.chain.backward[i], room)
        # The layers up to j run with nothing kept.
        need = 0
        for j in range(i, self.chain.layers + 1):
            need = max(need, self.need_forward(i, j))
            if j == self.chain.layers:
                need = max(need, 2 * self.size[j])  # the loss makes the first gradient of the last output
            if need > room:
                break
            for m, time in self.breaks(i, j):
                if m <= room:
                    best = min(best, self._then(j + 1, kept, x, df, db, need, self.forward_only(i, j), m, time, room))
        return best

    def _then(self, following, kept, x, df, db, need_f, time_f, need_b, time_b, room):
        """Forward and backward of a part with so much memory and time each, and the rest of the chain between, while
        x that the backward needs stays or leaves."""
        wait_f, wait_b = max(0, df + need_f - room), max(0, db + need_b - room)
        time = time_f + time_b + (wait_f + wait_b) / self.rate
        left_f = df - wait_f - time_f * self.rate
        left_b = max(0, db - wait_b - time_b * self.rate)
        stays = time + self.best(following, kept + x, math.ceil(max(0, left_f)), math.ceil(left_b))
        leaves = time + self.best(following, kept, math.ceil(max(0, left_f + x)), math.ceil(left_b + x))
        return min(stays, leaves)


def drawn(layers, seed):
    """Sizes of 10 to 100 MB, 1 to 10 ms forward, twice that backward: some 10 bytes a nanosecond."""
    draw = random.Random(seed)
    size = [draw.randrange(10, 101) * 1_000_000 for _ in range(layers + 1)]
    forward = [0] + [draw.randrange(1_000, 10_001) for _ in range(layers)]
    return Chain(size, forward, [2 * t for t in forward])


def main():
    from offload import limit, run
    from table import Table

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budgets", default="70,55,40", help="shares of the chain's baseline peak, in per cent")
    parser.add_argument("--rates", default="20,10,5", help="GB/s each way")
    parser.add_argument("--slots", type=int, default=500, help="parts of the memory that it plans with")
    parser.add_argument("--time", type=float, default=1, help="seconds for ours")
    parser.add_argument("--work", type=int, help="units of counted work instead, the same on every machine")
    parser.add_argument("-o", "--output", type=Path, default=HERE.parent.parent.parent / "build/bench/pofo")
    given = parser.parse_args()
    given.output.parent.mkdir(parents=True, exist_ok=True)
    table = Table("Overhead in per cent on chains over a link",
                  [(name, 0) for name in ("seed", "budget", "GB/s", "POFO", "auto", "bound")])
    table.notes.append("POFO's by its own model: copies free their bytes as they go. Ours are whole copies.")
    table.notes.append(f"Chains of {given.layers} layers, budgets as shares of their baseline peak; ours with one thread and " + (
        f"{given.time:g} s." if given.work is None else f"{given.work:,} units of counted work."))
    with tempfile.TemporaryDirectory() as folder, open(given.output.with_suffix(".csv"), "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["seed", "budget", "link", "pofo", "auto", "bound"])
        for seed in range(1, given.seeds + 1):
            chain = drawn(given.layers, seed)
            path = Path(folder) / "chain.graph.json"
            path.write_text(json.dumps(chain.graph()))
            for share in given.budgets.split(","):
                for link in given.rates.split(","):
                    ours = json.loads(run("plan", path, "--budget", f"{share}%", "--order", "given", "--link",
                                          f"{link}GB/s,0us", "--derate", "0%", "--threads", 1, *limit(given)(1), "--json"))
                    theirs = Pofo(chain, ours["budget"], float(link) * 1000, given.slots).duration()
                    cells = [100 * (value / chain.total() - 1) if value is not None and value < INFINITE else None
                             for value in (theirs, ours.get("duration"), ours["bound"])]
                    rows.writerow([seed, share, link, *cells])
                    table.add(seed, f"{share} %", link, *("none" if c is None else f"{c:.2f}" for c in cells))
                    print(*table.rows[-1], flush=True)
    given.output.with_suffix(".md").write_text(table.markdown())
    print(f"written: {given.output}.csv, {given.output}.md")


if __name__ == "__main__":
    main()
