"""A second opinion on plans: replays a plan file on its graph file by the rules of docs/reference/cost.md.

Written from the documents alone and sharing no code with the library, so that a mistake must be made twice to
go unseen. Plain and slow. Exit status: 0 the plan holds, 3 it does not, 2 a file cannot be read.
"""

import gzip
import hashlib
import json
import struct
import sys
import zlib
from collections import Counter
from dataclasses import asdict, dataclass

LIMIT = 2**63
UNREADABLE = (OSError, EOFError, zlib.error, ValueError, LookupError, TypeError, AttributeError, RecursionError)


class Refused(Exception):
    """The plan breaks a rule; a document that breaks its format raises one of UNREADABLE instead."""


@dataclass
class Result:
    ok: bool
    error: str | None
    step: int | None  # None where the start, the end or a claim is at fault
    peak: int
    duration: int
    host_peak: int
    own_peak: int


def require(condition, message, error=Refused):
    if not condition:
        raise error(message)


def natural(value):
    require(type(value) is int and 0 <= value < LIMIT, f"not an integer from 0 to 2^63 - 1: {value!r}", ValueError)
    return value


def flag(value):
    require(type(value) is bool, f"not true or false: {value!r}", ValueError)
    return value


def links(values, count):
    """Indices below `count`, each kept where it comes first."""
    require(all(natural(value) < count for value in values), "index out of range", ValueError)
    return list(dict.fromkeys(values))


def check_format(document, name):
    require(document["format"] == name and natural(document["version"]) == 1, f"not a {name} of version 1", ValueError)


class Op:
    def __init__(self, document, tensors, ops):
        self.time = natural(document["time"])
        self.workspace = natural(document.get("workspace", 0))
        self.recomputable = flag(document.get("recomputable", True))
        self.barrier = document.get("kind") == "lowtide.barrier"
        lane = document.get("lane", "compute")
        require(lane in ("compute", "network"), "unknown lane", ValueError)
        self.on_network = lane == "network"
        require(not (self.barrier and self.on_network), "a barrier on the network lane", ValueError)
        self.inputs = links(document["inputs"], tensors)
        self.outputs = links(document["outputs"], tensors)
        self.after = links(document.get("after", []), ops)
        self.mutates = links(document.get("mutates", []), tensors)
        pairs = [links(pair, tensors) for pair in document.get("in_place", [])]
        require(all(len(pair) == 2 for pair in pairs), "a pair in place is no pair", ValueError)
        self.in_place = dict(pairs)
        require(len(self.in_place) == len(pairs), "an input is in two pairs", ValueError)
        require(set(self.in_place) <= set(self.inputs) - set(self.mutates), "a pair's input is not read", ValueError)
        require(set(self.in_place.values()) <= set(self.outputs), "a pair's output is not made", ValueError)
        require(not (self.barrier and pairs), "a barrier has pairs", ValueError)
        require(len(self.outputs) == len(document["outputs"]), "an op repeats an output", ValueError)
        require(set(self.mutates) <= set(self.inputs), "an op mutates what it does not read", ValueError)


class Graph:
    def __init__(self, document):
        check_format(document, "lowtide-graph")
        tensors, ops = len(document["tensors"]), len(document["ops"])
        order = document.get("order", range(ops))
        self.resident = natural(document.get("resident_bytes", 0))
        self.bytes = [natural(tensor["bytes"]) for tensor in document["tensors"]]
        self.releasable = [flag(tensor.get("releasable", False)) for tensor in document["tensors"]]
        self.stays = [flag(tensor.get("stays", False)) for tensor in document["tensors"]]
        homes = [tensor.get("home", "device") for tensor in document["tensors"]]
        require(set(homes) <= {"device", "host"}, "unknown home", ValueError)
        self.ops = [Op(op, tensors, ops) for op in document["ops"]]
        pairs = [pair for op in self.ops for pair in op.in_place.items()]
        require(all(self.bytes[i] == self.bytes[o] for i, o in pairs), "a pair of unequal bytes", ValueError)
        self.outputs = links(document["outputs"], tensors)
        self.order = links(order, ops)
        producers = Counter(t for op in self.ops for t in op.outputs)
        self.sources = set(range(tensors)) - set(producers)
        self.at_host = {t for t in range(tensors) if homes[t] == "host"}
        self.held = {t for t in self.sources if self.stays[t]}
        self.returnable = {t for t in self.sources if self.releasable[t]} - self.held - self.at_host
        require(self.at_host <= self.sources, "an op makes a tensor whose home is the host", ValueError)
        require(max(producers.values(), default=1) == 1, "a tensor has two producers", ValueError)
        require(len(order) == len(self.order) == ops, "the order does not list every op once", ValueError)
        made, done = set(self.sources), set()
        for o in self.order:
            ready = made.issuperset(self.ops[o].inputs) and done.issuperset(self.ops[o].after)
            require(ready, f"the order is not topological at op {o}", ValueError)
            made.update(self.ops[o].outputs)
            done.add(o)
        # No state of any plan can hold more than this, so peaks need no check of their own.
        natural(self.resident + sum(self.bytes) + max((op.workspace for op in self.ops), default=0))
        natural(sum(op.time for op in self.ops))

    def size(self, tensors):
        return sum(self.bytes[t] for t in tensors)

    def hash(self):
        extended = any(self.stays) or bool(self.at_host) or any(op.in_place for op in self.ops)
        numbers = [1 + extended, len(self.bytes), len(self.ops), self.resident]
        for size, releasable in zip(self.bytes, self.releasable):
            numbers += [size, int(releasable)]
        for op in self.ops:
            numbers += [op.time, op.workspace, op.recomputable + 2 * op.barrier + 4 * op.on_network]
            for linked in (op.inputs, op.outputs, op.after, op.mutates):
                numbers += [len(linked), *linked]
            if extended:
                numbers += [len(op.in_place), *(t for pair in op.in_place.items() for t in pair)]
        if extended:
            numbers += [self.stays[t] + 2 * (t in self.at_host) for t in range(len(self.bytes))]
        numbers += [len(self.outputs), *self.outputs, *self.order]
        return "sha256:" + hashlib.sha256(struct.pack(f"<{len(numbers)}q", *numbers)).hexdigest()

    def own_peak(self):
        uses = Counter(t for op in self.ops for t in op.inputs)
        kept = set(self.outputs) | (self.sources - self.returnable)
        peak = in_use = self.resident + self.size(self.sources)
        in_use -= self.size(t for t in self.sources - kept if not uses[t])
        for op in (self.ops[o] for o in self.order):
            in_use += self.size(op.outputs)
            peak = max(peak, in_use + op.workspace)
            uses.subtract(op.inputs)
            in_use -= self.size(t for t in {*op.inputs, *op.outputs} - kept if not uses[t])
        return peak


class Replay:
    """What is live, what the host holds and the four clocks, step by step."""

    def __init__(self, graph, plan):
        self.graph, self.machine, self.budget = graph, plan.get("machine"), plan.get("budget")
        self.given = plan.get("order") == "given"
        self.techniques = plan.get("techniques", ["recompute", "in_place", "offload"])
        self.host_budget = plan.get("host_budget")
        self.live, self.computed, self.mutated = graph.sources - graph.at_host, set(), set()
        self.on_host, self.ever_on_host = set(graph.at_host), set(graph.at_host)
        self.compute_lane = self.out_lane = self.in_lane = self.network_lane = self.peak = self.duration = 0
        self.host_peak = graph.size(graph.at_host)
        self.exists_at = dict.fromkeys(graph.sources, 0)
        self.last_copy_ends = Counter()
        self.network_ends = Counter()  # when the last network op that reads or makes a tensor ends
        self.in_use = graph.resident + graph.size(self.live)

    def use(self, extra=0):
        self.peak = max(self.peak, self.in_use + extra)
        require(self.budget is None or self.peak <= self.budget, f"{self.peak} bytes exceed the budget")

    def step(self, kind, index, *over):
        there = self.graph.ops if kind in ("compute", "compute_in_place") else self.graph.bytes
        require(index < len(there), f"there is no {index} to {kind}")
        getattr(self, kind)(index, *over)
        self.duration = max(self.compute_lane, self.out_lane, self.in_lane, self.network_lane)
        require(self.duration < LIMIT, "the duration overflows")

    def compute_in_place(self, o, *over):
        op = self.graph.ops[o]
        self.allow("in_place")
        require(not op.barrier, f"op {o} is a barrier and cannot run in place")
        require(set(over) <= set(op.in_place), f"op {o} cannot overwrite all of {over}")
        replaced = [op.in_place[t] for t in over]
        require(len(set(replaced)) == len(replaced), f"op {o} puts one output in two places")
        lasting = (self.graph.sources - self.graph.returnable) | set(self.graph.outputs)
        require(lasting.isdisjoint(over), f"op {o} overwrites what may not die")
        self.compute(o, over)

    def compute(self, o, over=()):
        op = self.graph.ops[o]
        first = o not in self.computed
        if not first:
            self.allow("recompute")
        require(self.live.issuperset(op.inputs), f"op {o} has an input that is not live")
        require(self.live.isdisjoint(op.outputs), f"op {o} has an output that is still live")
        again = op.recomputable and op.outputs and not op.barrier
        require(first or again, f"op {o} must not be computed again")
        require(self.computed.issuperset(op.after), f"op {o} comes before an op that it must come after")
        require(self.mutated.isdisjoint(op.inputs), f"op {o} reads a tensor that has been mutated")
        kept = set(op.outputs) & set(self.graph.outputs)
        require(self.mutated.isdisjoint(kept), f"op {o} would undo the mutation of a graph output")
        if self.given and first:
            require(o == self.graph.order[len(self.computed)], f"op {o} is out of the given order")
        fresh = set(op.outputs) - {op.in_place[t] for t in over}
        self.use(self.graph.size(fresh) + op.workspace)
        self.in_use += self.graph.size(fresh)
        self.computed.add(o)
        self.live.difference_update(over)
        self.live.update(op.outputs)
        self.mutated.update(op.mutates)
        self.on_host.difference_update(op.mutates)
        copied = (self.last_copy_ends[t] for t in over)
        # What a network op reads or makes may change or go only after it.
        sent = (self.network_ends[t] for t in [*over, *op.mutates])
        start = max([self.compute_lane, *(self.exists_at[t] for t in op.inputs), *copied, *sent])
        if op.on_network:
            end = self.network_lane = max(start, self.network_lane) + op.time
            for t in op.inputs + op.outputs:
                self.network_ends[t] = end
        elif op.barrier:
            start = max(start, self.out_lane, self.in_lane, self.network_lane)
            end = self.compute_lane = self.out_lane = self.in_lane = start + op.time
        else:
            end = self.compute_lane = start + op.time
        # A mutated tensor exists anew: a later offload must not copy the old value.
        self.exists_at.update(dict.fromkeys(op.outputs + op.mutates, end))

    def free(self, t):
        require(t in self.live, f"tensor {t} is not live")
        require(t not in self.graph.held, f"tensor {t} is held by the caller")
        returns = t not in self.graph.sources or t in self.graph.returnable or t in self.on_host
        require(returns, f"tensor {t} is an input that could not come back")
        self.in_use -= self.graph.bytes[t]
        self.live.remove(t)
        self.compute_lane = max(self.compute_lane, self.last_copy_ends[t], self.network_ends[t])

    def allow(self, technique):
        require(technique in self.techniques, f"{technique} is not among the techniques")

    def offload(self, t):
        self.allow("offload")
        require(t in self.live, f"tensor {t} is not live")
        self.out_lane = max(self.out_lane, self.exists_at[t]) + self.transfer_time("device_to_host", t)
        self.last_copy_ends[t] = self.out_lane
        self.host_peak += self.graph.bytes[t] * (t not in self.ever_on_host)
        self.on_host.add(t)
        self.ever_on_host.add(t)

    def prefetch(self, t):
        self.allow("offload")
        require(t not in self.live, f"tensor {t} is live already")
        require(t in self.on_host, f"tensor {t} has no valid host copy")
        self.use(self.graph.bytes[t])
        self.in_use += self.graph.bytes[t]
        self.live.add(t)
        self.in_lane = max(self.in_lane, self.compute_lane) + self.transfer_time("host_to_device", t)
        self.exists_at[t] = self.last_copy_ends[t] = self.in_lane

    def transfer_time(self, direction, t):
        require(self.machine is not None, "the plan transfers but names no machine")
        link = self.machine[direction]
        return link["latency"] + -(-self.graph.bytes[t] * link["ticks"] // link["bytes"])

    def end(self):
        lost = self.graph.sources - self.graph.at_host - self.live - self.graph.returnable
        require(len(self.computed) == len(self.graph.ops), "an op is never computed")
        require(self.live.issuperset(self.graph.outputs), "a graph output is not live at the end")
        require(not lost, f"inputs {sorted(lost)} are not live at the end")
        require(self.on_host >= self.graph.at_host, "a tensor whose home is the host has no copy there at the end")
        room = self.host_budget is None or self.host_peak <= self.host_budget
        require(room, f"{self.host_peak} bytes exceed the host's budget")

    def check(self, claims):
        bound = claims.get("bound")
        require(claims.get("peak") in (None, self.peak), f"the claimed peak is not {self.peak}")
        require(claims.get("duration") in (None, self.duration), f"the claimed duration is not {self.duration}")
        require(bound is None or bound <= self.duration, f"the claimed bound exceeds {self.duration}")
        proven = claims.get("status") != "optimal" or bound in (None, self.duration)
        require(proven, f"claimed optimal, but the bound is below {self.duration}")


def check_plan(plan):
    check_format(plan, "lowtide-plan")
    for kind, *indices in plan["steps"]:
        known = kind in ("compute", "compute_in_place", "free", "offload", "prefetch")
        require(known, f"unknown step {kind!r}", ValueError)
        in_place = kind == "compute_in_place"
        require(len(indices) > 1 if in_place else len(indices) == 1, f"a malformed step {kind!r}", ValueError)
        for index in indices:
            natural(index)
    techniques = set(plan.get("techniques", []))
    require(techniques <= {"recompute", "in_place", "offload"}, "unknown technique", ValueError)
    natural(plan.get("host_budget") or 0)
    require(plan.get("order", "free") in ("free", "given"), "unknown order", ValueError)
    claims = plan.get("claims", {})
    for value in (plan.get("budget"), claims.get("peak"), claims.get("duration"), claims.get("bound")):
        natural(0 if value is None else value)
    for machine in (plan[key] for key in ("machine", "full_link") if key in plan):
        for way in ("device_to_host", "host_to_device"):
            numbers = {key: natural(machine[way][key]) for key in ("latency", "bytes", "ticks")}
            require(numbers["bytes"] > 0, "a link moves no bytes", ValueError)
    over_full_link = claims.get("duration_full_link")
    if over_full_link is not None:
        natural(over_full_link)
        require("full_link" in plan, "a full link is missing", ValueError)


def duration_over_full_link(network, plan):
    replay = Replay(network, plan | {"machine": plan["full_link"]})
    for kind, *indices in plan["steps"]:
        replay.step(kind, *indices)
    return replay.duration


def check_offsets(network, plan):
    """Every pair of bytes that are needed at the same step, one by one, of a plan whose steps hold."""
    claims, given = plan.get("claims", {}), {}
    for step, tensor, offset in plan.get("offsets", []):
        require((step, tensor) not in given, f"two offsets of tensor {tensor} at step {step}")
        given[step, tensor] = offset
    footprint = plan.get("footprint", "live")
    if footprint != "live":
        require(claims.get(footprint) is not None, f"no {footprint} is claimed")
        require(plan.get("budget") is None or claims[footprint] <= plan["budget"], f"the {footprint} exceeds the budget")
    if not given and footprint != "arena":
        return
    require(claims.get("arena") is not None, "no arena is claimed")
    lies = {}  # what needs memory now, and where

    def begin(step, tensor, size):
        if size == 0:
            return
        require((step, tensor) in given, f"tensor {tensor} has no offset at step {step}")
        offset = given.pop((step, tensor))
        require(0 <= offset and offset % plan.get("alignment", 1) == 0, f"offset {offset} is not aligned")
        require(offset + size <= claims["arena"] - network.resident, f"offset {offset} is beyond the arena")
        require(all(offset + size <= a or b <= offset for a, b in lies.values()), f"overlap at step {step}")
        lies[tensor] = (offset, offset + size)

    for t in sorted(network.sources - network.at_host):
        begin(None, t, network.bytes[t])
    for step, (kind, index, *over) in enumerate(plan["steps"]):
        if kind == "free":
            lies.pop(index, None)
        elif kind == "prefetch":
            begin(step, index, network.bytes[index])
        elif kind != "offload":
            op = network.ops[index]
            moved = {op.in_place[t]: lies.pop(t) for t in over if t in lies}
            lies.update(moved)
            for t in op.outputs:
                if t not in [op.in_place[o] for o in over]:
                    begin(step, t, network.bytes[t])
            begin(step, None, op.workspace)
            lies.pop(None, None)
    require(not given, f"offsets of nothing: {sorted(given, key=str)}")


def verify(graph: dict, plan: dict) -> Result:
    network = Graph(graph)
    check_plan(plan)
    replay = Replay(network, plan)
    step = error = None
    try:
        require(plan["graph_hash"] == network.hash(), "the plan is for another graph")
        require(not plan.get("transforms"), "unknown transform")
        replay.use()
        for step, (kind, *indices) in enumerate(plan["steps"]):  # noqa: B007  (a refusal is of this step)
            replay.step(kind, *indices)
        step = None
        replay.end()
        replay.check(plan.get("claims", {}))
        full = plan.get("claims", {}).get("duration_full_link")
        right = full is None or full == duration_over_full_link(network, plan)
        require(right, "the claimed duration over the full link is wrong")
        check_offsets(network, plan)
    except Refused as refusal:
        error = str(refusal)
    return Result(error is None, error, step, replay.peak, replay.duration, replay.host_peak, network.own_peak())


def read(path):
    def distinct(pairs):
        require(len(dict(pairs)) == len(pairs), "a key is given twice", ValueError)
        return dict(pairs)

    def refuse(constant):
        raise ValueError(f"{constant} is not JSON")

    with open(path, "rb") as file:
        data = file.read()
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return json.loads(data.decode("utf-8"), object_pairs_hook=distinct, parse_constant=refuse)


def main(arguments):
    try:
        graph_path, plan_path = arguments
        result = verify(read(graph_path), read(plan_path))
    except UNREADABLE as error:
        print(f"verify: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    print(json.dumps(asdict(result)))
    return 0 if result.ok else 3


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
