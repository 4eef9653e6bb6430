"""What MAGIS' tables compare: each system answers how little memory it needs within an overhead, and how little time
within a share of the memory.  Shares are of the peak of the graph in PyTorch's order, weights and inputs included, as
torch.cuda.max_memory_allocated counts it."""
from __future__ import annotations

import json
import math
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import chain

sys.path.append(str(Path(__file__).resolve().parents[2] / "peers"))
from pofo import Pofo

# Bisections between all of the memory and none of it; the last step is 1/256.
STEPS = 8


@dataclass(frozen=True)
class Question:
    """A graph on a device, with limits for each answer."""

    lowtide: Path
    graph: Path
    device: Path
    rate: float  # bytes a tick each way
    limits: tuple[str, ...]  # --time 10 --threads 2

    def ask(self, command: str, *flags: str) -> dict[str, Any]:
        """The command's JSON. A budget without a plan is an answer, too; whatever else fails is an error."""
        call = [str(self.lowtide), command, str(self.graph), "--json", "--device", str(self.device), "--derate", "0%",
                *self.limits, *flags]
        done = subprocess.run(call, capture_output=True, text=True, check=False)
        if done.returncode not in (0, 1) or not done.stdout:
            raise SystemExit(f"{' '.join(call)}: {done.stderr.strip() or f'exit status {done.returncode}'}")
        return json.loads(done.stdout)


@dataclass(frozen=True)
class Answer:
    """Peak in bytes and overhead in per cent; None: no plan."""

    peak: int | None = None
    overhead: float | None = None
    transforms: tuple[str, ...] = ()
    floor: int | None = None  # proven: no plan is below it
    bound: float | None = None  # proven: no plan has a lower overhead, in per cent
    seconds: float = 0
    history: tuple[tuple[float, float], ...] = field(default=(), repr=False)  # seconds, overhead
    parts: tuple[tuple[str, int], ...] = field(default=(), repr=False)  # solver, units of work


def within(overhead: float, own_peak: int, plan: Any) -> Answer:
    """The smallest peak within the overhead, by bisection over the budget: plan(bytes) -> Answer."""
    low, high, best, spent = 0, own_peak, Answer(own_peak, 0.0), 0.0
    for _ in range(STEPS):
        found = plan((low + high) // 2)
        spent += found.seconds
        if found.overhead is not None and found.overhead <= overhead:
            best, high = found, min(found.peak, (low + high) // 2)
        else:
            low = (low + high) // 2
    return Answer(best.peak, best.overhead, best.transforms, best.floor, best.bound, spent)


@dataclass(frozen=True)
class Ours:
    """`auto`, or one of our solvers by itself, which answers at once."""

    title: str
    flags: tuple[str, ...]
    solver: tuple[str, ...] = ()

    def memory(self, at: Question, own_peak: int, overhead: float) -> Answer:
        if self.solver:
            return within(overhead, own_peak, lambda budget: self.time(at, budget))
        said = at.ask("fit", "--overhead", f"{overhead}%", *self.flags)
        return Answer(said["peak"], said["overhead_percent"], tuple(said["transforms"]), said["floor"],
                      seconds=said["time_s"])

    def time(self, at: Question, budget: int) -> Answer:
        said = at.ask("plan", "--budget", str(max(budget, 1)), *self.flags, *self.solver)
        bound, base = said["bound"], said["base_duration"]
        history = tuple((h["time"], 100 * (h["duration"] / base - 1)) for h in said["history"] if h["peak"] <= budget)
        return Answer(said["peak"], said["overhead_percent"], tuple(said["transforms"]), said["floor"],
                      None if bound is None else 100 * (bound / base - 1), said["time_s"], history,
                      tuple((part["name"], part["work"]) for part in said["parts"]))


@dataclass(frozen=True)
class Magis(Ours):
    """The solver `magis`, which is asked for the least memory itself."""

    title: str = "magis: all"
    flags: tuple[str, ...] = ("--techniques", "all", "--solver", "magis")


@dataclass(frozen=True)
class PofoSystem:
    """Its dynamic program on the chain of the graph's layers, priced by its own model, in which copies give their bytes
    back as they go (bench/peers/pofo.py)."""

    title: str = "POFO"
    layers: int = 12
    slots: int = 100

    def memory(self, at: Question, own_peak: int, overhead: float) -> Answer:
        return within(overhead, own_peak, lambda budget: self.time(at, budget))

    def time(self, at: Question, budget: int) -> Answer:
        of, beside = chain.read(at.graph, self.layers)
        if budget <= beside:
            return Answer()
        took = Pofo(of, budget - beside, at.rate, self.slots).duration()
        return Answer() if math.isinf(took) else Answer(budget, 100 * (took / of.total() - 1))


GIVEN = ("--order", "given")
SYSTEMS = {
    "xla": Ours("XLA-like greedy", ("--techniques", "recompute", *GIVEN),
                ("--solver", "greedy", "--option", "choice=bytes_per_tick")),
    "dtr": Ours("DTR", ("--techniques", "recompute", *GIVEN), ("--solver", "evict", "--option", "score=dtr_eq")),
    "offload": Ours("offload only", ("--techniques", "offload", *GIVEN)),
    "pofo": PofoSystem(),
    "checkmate": Ours("recompute, order given", ("--techniques", "recompute", *GIVEN)),
    "recompute": Ours("auto: recompute", ("--techniques", "recompute,in_place")),
    "magis": Magis(),
    "auto": Ours("auto: all", ("--techniques", "all")),
}
# Figure 13 asks what each heuristic is worth; this, what each technique is.
ABLATIONS = {
    f"auto-{left_out}": Ours(f"auto without {left_out}", ("--techniques", ",".join(
        name for name in ("recompute", "in_place", "offload", "split", "hoist", "substitute") if name != left_out)))
    for left_out in ("recompute", "in_place", "offload", "split", "hoist", "substitute")
}
ABLATIONS["auto-order"] = Ours("auto, order given", ("--techniques", "all", *GIVEN))
