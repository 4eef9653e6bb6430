"""Checkmate's integer program with transfers, for tiny graphs: P. Jain et al., "Checkmate: Breaking the Memory Wall with
Optimal Tensor Rematerialization", MLSys 2020, section 4, with a host beside the device.

Stage t computes op t of the given order for the first time, and before it any op of an earlier stage again, each at most
once and in the given order (R, Checkmate's frontier-advancing form). Checkmate says by stage what is kept (S). Here it is
said before each computation that may be, a *slot* (t, k): there tensors are first copied out, then freed, then fetched.
A tensor leaves at most once; its copy stays on the host. The three lanes are clocks, kept slot by slot as
docs/reference/cost.md has them: a free waits until its tensor's last copy has ended, a copy in begins no earlier than the
slot's frees have, a computation waits for what it reads.

A solution is a plan, so the optimum is at or above that of all plans. It is above where only a plan will do that runs an
op twice within a stage, runs ops again in another order or after the last op, or copies within one slot in another order
than this one: out by index, in by the next reader in the given order. A copy out that is issued in a later slot than the
first after its tensor was made is charged as if the tensor existed only since then, which matters only where the lane was
idle. So a plan may take less than is charged, never more.

It takes no graph with barriers, effects (`mutates`), ops that wait for others (`after`) or may run in place.
"""
import math
import time

from . import highs
from .highs import INFINITE


class Slot:
    """Where op `op` may be computed, at the end of its stage for the `first` time. No op: the end."""

    def __init__(self, stage, op, first):
        self.stage, self.op, self.first = stage, op, first


class Transfers:
    """`out` and `back` give the ticks of a copy of so many bytes, each way."""

    def __init__(self, graph, budget, out, back):
        for op in graph["ops"]:
            if any(op.get(key) for key in ("mutates", "in_place", "after")) or op.get("kind") == "lowtide.barrier":
                raise ValueError(f"op {op.get('name')} changes a tensor, waits for others or may run in place")
        self.ops, self.tensors = graph["ops"], graph["tensors"]
        self.order = graph.get("order", list(range(len(self.ops))))
        self.outputs = set(graph["outputs"])
        made_at = {v: at for at, i in enumerate(self.order) for v in self.ops[i]["outputs"]}
        self.made_at = [made_at.get(v, -1) for v in range(len(self.tensors))]  # -1: by no op
        # In units as large as may be: small whole numbers are what HiGHS is exact with.
        size, work = [x["bytes"] for x in self.tensors], [op.get("workspace", 0) for op in self.ops]
        unit = math.gcd(*size, *work) or 1
        self.size, self.work = [b // unit for b in size], [b // unit for b in work]
        self.room = (budget - graph.get("resident_bytes", 0)) // unit
        times = [op["time"] for op in self.ops], [out(b) for b in size], [back(b) for b in size]
        self.tick = math.gcd(*(t for each in times for t in each)) or 1
        self.time, self.out, self.back = ([t // self.tick for t in each] for each in times)
        self.slots = [Slot(stage, op, k == stage) for stage in range(len(self.order))
                      for k, op in enumerate(self.order[:stage + 1]) if k == stage or self._may_repeat(k, stage)]
        self.slots.append(Slot(len(self.order), None, False))

    def solve(self, library, seconds):
        """(status, lower bound in ticks, steps or none); status is optimal, feasible, infeasible or unknown.

        Rows are switched off by an end that no clock passes. A near one makes the relaxation better: it begins there, and
        moves on until there is a plan that ends before it.
        """
        begin = time.monotonic()
        if sum(self.size[v] for v in self._inputs() if not self._on_host(v)) > self.room:
            return "infeasible", None, None
        # All that can be computed and copied, one after another.
        last = sum(self.time[slot.op] for slot in self.slots[:-1]) + sum(self.out) + len(self.slots) * sum(self.back)
        self.horizon = min(last, 1.25 * sum(self.time))
        bound = 0
        while (left := seconds - (time.monotonic() - begin)) > 0:
            self._build()
            # Optima are whole numbers of ticks, so what is less than one away is as good.
            status, low, values = self.program.solve(library, left, gap=0.999)
            if status == highs.INFEASIBLE:
                if self.horizon == last:
                    return "infeasible", None, None
                bound = math.floor(self.horizon) + 1
                self.horizon = min(last, 2 * self.horizon)
                continue
            if math.isfinite(low):
                bound = max(bound, math.ceil(low - 1e-3))
            if values is None:
                break
            return ("optimal" if status == highs.OPTIMAL else "feasible"), bound * self.tick, self._steps(values)
        return "unknown", bound * self.tick, None

    def _may_repeat(self, position, stage):
        op = self.ops[self.order[position]]
        made = set(op["outputs"])
        read = any(made & set(self.ops[i]["inputs"]) for i in self.order[position + 1:stage + 1])
        return op.get("recomputable", True) and (read or bool(self.outputs & made))

    def _inputs(self):
        return [v for v, at in enumerate(self.made_at) if at < 0]

    def _on_host(self, v):
        return self.tensors[v].get("home") == "host"

    def _may_go(self, v):
        """Whether it may be freed without a copy."""
        return self.made_at[v] >= 0 or (self.tensors[v].get("releasable", False) and not self._on_host(v))

    def _next_reader(self, v, stage):
        return next((at for at, i in enumerate(self.order) if at >= stage and v in self.ops[i]["inputs"]), INFINITE)

    def _clock(self):
        return self.program.column(0, self.horizon)

    def _choice(self, may=True):
        return self.program.column(0, int(may), integer=True)

    def _at_least(self, terms, low=0):
        self.program.row(low, terms, INFINITE)

    def _implies(self, column, *ones):
        """The column is 0 unless one of the others is 1; without others it is 0."""
        self.program.row(-INFINITE, [(1, column)] + [(-1, one) for one in ones], 0)

    def _queue(self, starts, copies):
        """The lane's clock after copies in turn that begin no earlier than any of the clocks, and the end of each as terms.

        A lane's clock may stand later than the lane is free, up to when the next copy can be issued.
        """
        clock = self._clock()
        for start in starts:
            self._at_least([(1, clock), (-1, start)] + [(-ticks, chosen) for ticks, chosen in copies])
        if not starts:
            self._at_least([(1, clock)] + [(-ticks, chosen) for ticks, chosen in copies])
        return clock, [[(1, clock)] + [(-ticks, chosen) for ticks, chosen in copies[at + 1:]]
                       for at in range(len(copies))]

    def _follows(self, clock, end, *chosen):
        """The clock is at or after the end (terms), if all that are given were chosen."""
        terms = [(1, clock)] + [(-factor, column) for factor, column in end]
        self._at_least(terms + [(-self.horizon, column) for column in chosen], -self.horizon * len(chosen))

    def _build(self):
        count = len(self.tensors)
        self.program = highs.Program()
        # As it stands at the slot at hand: columns, none for what cannot be.
        self.live, self.hosted = [[] for _ in range(count)], [[] for _ in range(count)]  # at most one column each
        self.copied = [self._clock() for _ in range(count)]  # when the copy out has ended, if there is one
        self.arrived = [None] * count                        # when the last copy in has
        self.compute, self.lane_out, self.lane_in = [], [], []
        for v in self._inputs():
            away = int(self._on_host(v))
            self.live[v] = [self.program.column(1 - away, 1 - away)]
            self.hosted[v] = [self.program.column(away, away)]
        self.issued = [(slot, *self._transfer(slot), self._run(slot)) for slot in self.slots]
        for v in {*self.outputs, *(v for v in self._inputs() if not self._may_go(v) and not self._on_host(v))}:
            self._at_least([(1, column) for column in self.live[v]], 1)
        duration = self.program.column(0, self.horizon, cost=1)
        for lane in (*self.compute, *self.lane_out, *self.lane_in):
            self._at_least([(1, duration), (-1, lane)])

    def _transfer(self, slot):
        """Copies out, frees and copies in before a slot."""
        there = [v for v in range(len(self.tensors)) if self.made_at[v] < slot.stage]
        out = {v: self._choice(not self._on_host(v)) for v in there}
        free = {v: self._choice(not self.tensors[v].get("stays")) for v in there}
        fetch = {v: self._choice() for v in sorted(there, key=lambda v: (self._next_reader(v, slot.stage), v))}
        for v in there:
            self._implies(out[v], *self.live[v])
            self._implies(free[v], *self.live[v])
            self._implies(fetch[v], *self.hosted[v])
            live, hosted = self.program.column(0, 1), self.program.column(0, 1)
            self.program.row(0, [(-1, live), (-1, free[v]), (1, fetch[v])] + [(1, was) for was in self.live[v]], 0)
            self.program.row(0, [(-1, hosted), (1, out[v])] + [(1, was) for was in self.hosted[v]], 0)
            self.live[v], self.hosted[v] = [live], [hosted]
            if not self._may_go(v):
                self._implies(free[v], hosted)
        lane, ends = self._queue(self.lane_out + self.compute, [(self.out[v], out[v]) for v in out])
        self.lane_out = [lane]
        for v, end in zip(out, ends):
            self._follows(self.copied[v], end, out[v])
        ready = self._clock()
        for before in self.compute:
            self._at_least([(1, ready), (-1, before)])
        for v in there:
            self._follows(ready, [(1, self.copied[v])], free[v], *self.hosted[v])
            if self.arrived[v] is not None:
                self._follows(ready, [(1, self.arrived[v])], free[v])
        self.compute = [ready]
        lane, ends = self._queue(self.lane_in + [ready], [(self.back[v], fetch[v]) for v in fetch])
        self.lane_in = [lane]
        for v, end in zip(fetch, ends):
            arrived = self._clock()
            if self.arrived[v] is not None:
                self._at_least([(1, arrived), (-1, self.arrived[v])])
            self._follows(arrived, end, fetch[v])
            self.arrived[v] = arrived
        return out, free, fetch

    def _run(self, slot):
        """The computation of a slot, and what is in use meanwhile."""
        held = [(size, column) for size, live in zip(self.size, self.live) for column in live]
        if slot.op is None:
            self.program.row(-INFINITE, held, self.room)
            return None
        op, took = self.ops[slot.op], self.time[slot.op]
        run = self.program.column(int(slot.first), 1, integer=True)
        made = sum(self.size[v] for v in set(op["outputs"])) + self.work[slot.op]
        self.program.row(-INFINITE, [*held, (made, run)], self.room)
        ended = self._clock()
        for before in self.compute:
            self._at_least([(1, ended), (-1, before), (-took, run)])
        self.compute = [ended]
        for v in set(op["inputs"]):
            self._implies(run, *self.live[v])
            self._follows(ended, [(1, self.arrived[v]), (took, run)], run)
        for v in set(op["outputs"]):
            live = self.program.column(0, 1)  # so it was not before
            self.program.row(0, [(-1, live), (1, run)] + [(1, was) for was in self.live[v]], 0)
            self.live[v] = [live]
        return run

    def _steps(self, values):
        steps = []
        for slot, out, free, fetch, run in self.issued:
            for kind, chosen in (("offload", out), ("free", free), ("prefetch", fetch)):
                steps += [[kind, v] for v, column in chosen.items() if values[column] > 0.5]
            if run is not None and values[run] > 0.5:
                steps.append(["compute", slot.op])
        return steps
