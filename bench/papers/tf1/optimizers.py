"""What TensorFlow 1's optimizers add to a graph: the gradients, slots of each trained variable, and an op that updates it.

The learning rate and the hyperparameters are read by every update: these links go across the whole graph and are a good
part of the widths of Table 1 of Kumar et al. The nodes that only wait until all updates are done have no links here:
the updates are outputs of the graph.
"""
from .graph import Slices


def descend(graph, loss):
    """Gradient descent."""
    found = graph.gradients(loss)
    rate = graph.const()
    graph.outputs = [loss] + [graph.node("ApplyGradientDescent", [handle, rate, gradient], (1,))
                              for (handle, _), gradient in zip(graph.variables, found)]


def momentum(graph, loss, boundaries):
    """With a rate that falls at some steps."""
    step, step_read = graph.stored(graph.const())
    rate = _piecewise(graph, step_read, boundaries)
    found = graph.gradients(loss)
    slots = _slots(graph, 1)
    factor = graph.const()
    updates = [graph.node("ApplyMomentum", [handle, slot, rate, gradient, factor], (1,))
               for (handle, _), (slot,), gradient in zip(graph.variables, slots, found)]
    graph.outputs = [loss, *graph.averages, *updates, _count(graph, step)]


def _piecewise(graph, step, boundaries):
    """A switch for each stretch of steps."""
    flows = []
    for stretch in range(boundaries + 1):
        inside = graph.node("LessEqual", [step, graph.const()], ())
        if 0 < stretch < boundaries:
            inside = graph.node("LogicalAnd", [inside, graph.node("Greater", [step, graph.const()], ())], ())
        flows.append(graph.node("Switch", [graph.const(), inside], ()))
    return graph.node("Merge", flows, ())


def adam(graph, loss, rate):
    """LazyAdam: whole gradients as Adam does, of rows only these rows."""
    step, step_read = graph.stored(graph.const())
    rate = rate(step_read)
    found = graph.gradients(loss)
    powers = [graph.stored(graph.const()) for _ in range(2)]
    slots = _slots(graph, 2)
    factors = graph.consts(3)
    reads = [read for _, read in powers]
    updates = []
    for (handle, _), both, gradient in zip(graph.variables, slots, found):
        if isinstance(gradient, Slices):
            updates.append(_adam_rows(graph, handle, both, gradient, rate, reads, factors))
        else:
            updates.append(graph.node("ApplyAdam", [handle, *both, *reads, rate, *factors, gradient], (1,)))
    for (power, read), factor in zip(powers, factors):
        updates.append(graph.node("Assign", [power, graph.node("Mul", [read, factor], ())], (1,)))
    graph.outputs = [loss, *updates, _count(graph, step)]


def _adam_rows(graph, handle, slots, gradient, rate, powers, factors):
    """The rows that a gradient names: each once, then their averages, then they."""
    rows, width = graph.shapes[gradient.values]
    unique, places = graph.node("Unique", [gradient.indices], (rows,), (rows,))
    count = graph.part(graph.node("Shape", [unique], (1,)))
    values = graph.node("UnsortedSegmentSum", [gradient.values, places, count], (rows, width))
    first, second = (graph.elementwise("Sub", graph.const(), power) for power in powers)
    scaled = graph.elementwise("Mul", rate, graph.elementwise("Sqrt", second))
    scaled = graph.elementwise("RealDiv", scaled, first)

    def gathered(slot, *after):
        return graph.node("GatherV2", [slot, unique, graph.const(), *after], (rows, width))

    means = []
    for slot, factor, squared in zip(slots, factors, (False, True)):
        old = graph.elementwise("Mul", factor, gathered(slot))
        part = graph.elementwise("Square", values) if squared else values
        part = graph.elementwise("Mul", graph.elementwise("Sub", graph.const(), factor), part)
        updated = graph.node("ScatterUpdate", [slot, unique, graph.elementwise("Add", old, part)], (1,))
        means.append(gathered(slot, updated))
    below = graph.elementwise("Add", graph.elementwise("Sqrt", means[1]), factors[2])
    change = graph.elementwise("RealDiv", graph.elementwise("Mul", scaled, means[0]), below)
    return graph.node("ScatterSub", [handle, unique, change], (1,))


def _slots(graph, count):
    return [[graph.stored(graph.filled(graph.shapes[read]))[0] for _ in range(count)] for _, read in graph.variables]


def _count(graph, step):
    return graph.node("AssignAdd", [step, graph.const()], (1,))
