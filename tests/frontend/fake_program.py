"""A program for planners alone: a graph, of which nothing is code."""

from dataclasses import dataclass, field, replace

from lowtide.frontend.errors import CaptureError
from lowtide.frontend.exactness import Exactness

import lowtide

INPUT, OUTPUT, TANGENT, GRADIENT = 16, 8, 8, 4  # bytes in a chain


@dataclass
class FakeProgram:
    """frontend.program.Program, as of a framework whose ops are one kernel each.

    can_move: what code can copy to the host.  at_home: the tensors whose home is the host.  refuses: why no code can be made
    of transforms.  kept_bits: which a plan with transforms keeps.  priced: what code makes of the graph with transforms, in
    the place of what these say.  asked: the transforms of which code was made, in their order.
    """

    graph: lowtide.Graph
    barrier: int = 0
    kept: tuple = ()
    device: object = None
    can_move: frozenset = frozenset()
    at_home: tuple = ()
    refuses: str = ""
    kept_bits: Exactness = field(default_factory=Exactness)
    priced: object = None
    asked: list = field(default_factory=list)

    def without_kept(self):
        return replace(self, kept=())

    def homes(self):
        return dict.fromkeys(self.at_home)

    def movable(self):
        return {*self.can_move, *self.at_home}

    def order(self, computes):
        return computes

    def elided(self, computes):
        return set()

    def as_run(self, computes):
        return self.graph

    def is_made_by_next(self, op):
        return False

    def splittable(self):
        return self

    def transformed(self, transforms):
        if not transforms:
            return self
        self.asked.append(transforms)
        if self.refuses:
            raise CaptureError(self.refuses)
        graph = lowtide.transform(self.graph, transforms)["graph"]
        graph = self.priced(graph) if self.priced else graph
        barrier = next(op.index for op in graph.ops if op.kind == "lowtide.barrier")
        return replace(self, graph=graph, barrier=barrier)

    def exactness(self, transforms):
        return self.kept_bits if transforms else Exactness()


def op(word, inputs, outputs, time, **more):
    return {"name": word, "kind": word, "inputs": inputs, "outputs": outputs, "time": time, "workspace": 0,
            "recomputable": True, "after": [], "mutates": []} | more


def graph_of(name, tensors, ops, outputs):
    return lowtide.Graph.from_dict({"format": "lowtide-graph", "version": 1, "name": name, "tick": "ns", "resident_bytes": 0,
                                    "tensors": tensors, "ops": ops, "outputs": outputs})


def changed(graph, change):
    """A graph after `change` of the entries that its file has."""
    entries = graph.to_dict()
    change(entries)
    return lowtide.Graph.from_dict(entries)


def bare(*links):
    """A graph of ops of no time, each as what it reads and what it makes, and of tensors of one byte."""
    count = 1 + max(t for link in links for ends in link for t in ends)
    return graph_of("bare", [{"name": f"t{i}", "bytes": 1} for i in range(count)],
                    [op(f"o{i}", *link, 0) for i, link in enumerate(links)], [])


def chain(*sizes, name="chain", times=None, **more):
    """A graph: input -> activations of these sizes -> result; barrier; backward, which reads all activations from
    the last to the first and makes a gradient.  Ops, in order: forward, result, barrier, backward.  Tensors: the input, the
    activations, the result, its tangent, the gradients.  more: of the FakeProgram."""
    count = len(sizes)
    tensors = [{"name": "input", "bytes": INPUT, "role": "input"}]
    tensors += [{"name": f"a{i}", "bytes": size} for i, size in enumerate(sizes)]
    result, tangent = count + 1, count + 2
    tensors += [{"name": "result", "bytes": OUTPUT}, {"name": "tangent", "bytes": TANGENT}]
    tensors += [{"name": f"d{i}", "bytes": TANGENT} for i in reversed(range(1, count))]
    tensors += [{"name": "gradient", "bytes": GRADIENT, "role": "gradient"}]

    times = times or [10] * count
    ops = [op(f"f{i}", [i], [i + 1], times[i], origin=f"layers.{i}") for i in range(count)]
    ops += [op("out", [count], [result], 1, recomputable=False),
            op("barrier", [result], [tangent], 0, kind="lowtide.barrier", recomputable=False)]
    ops += [op(f"b{i}", [i + 1, tangent + count - 1 - i], [tangent + count - i], 10) for i in reversed(range(count))]
    return FakeProgram(graph_of(name, tensors, ops, [result, tangent, len(tensors) - 1]), barrier=count + 1, **more)


def wide(rows=64, time=1000, **more):
    """A graph whose peak is in the middle of its forward: x [rows, 4] -> twice 1000 numbers for each row -> [rows, 4]."""
    sizes = [[rows, 4], [4, 1000], [1000, 4], [rows, 1000], [rows, 1000], [rows, 4]]

    def operand(tensor, argument=None):
        named = {"argument": argument} if argument else {}
        return {"tensor": tensor, "shape": sizes[tensor], "strides": [sizes[tensor][1], 1], "dtype": "f32", **named}

    def kernel(word, kind, inputs, made):
        return op(word, inputs, [made], time, kind=kind, origin="body", results=[operand(made)],
                  operands=[operand(t, name) for t, name in zip(inputs, ("self", "mat2"))])  # a relu has one operand

    tensors = [{"name": f"t{i}", "bytes": 4 * a * b, "shape": [a, b], "dtype": "f32", **({"role": "input"} if i < 3 else {})}
               for i, (a, b) in enumerate(sizes)]
    tensors.append({"name": "tangent", "bytes": 16 * rows, "shape": [rows, 4], "dtype": "f32"})
    ops = [kernel("up", "aten.mm", [0, 1], 3), kernel("gate", "aten.relu", [3], 4), kernel("down", "aten.mm", [4, 2], 5),
           op("barrier", [5], [6], 0, kind="lowtide.barrier", recomputable=False)]
    return FakeProgram(graph_of("wide", tensors, ops, [5, 6]), barrier=3, **more)
