"""A graph as TensorFlow 1 builds it in Python, node for node: what a model and its loss say, what `tf.gradients` makes
of them, and (optimizers.py) what updates the variables.

Each method stands for a function of TensorFlow (about 1.12) and adds the nodes that it adds. A variable is a handle, an initial
value with its Assign, and a read. An op's gradient is written when the backward pass comes to it, with the reductions
for operands that were broadcast, and also for operands of which nobody wants a gradient; several gradients of one op
wait for each other (a NoOp, then an Identity each), and what flows together is one AddN. All shapes are known while the
graph is built, or there would be no bytes to plan with, so the shape of a tensor is a constant. Left out are the input
pipeline, summaries, metrics and the saver.

Kumar et al. (NeurIPS 2019) let every node take one unit of time, give every output memory of its own, and compute again
whatever they like. So here: no aliasing, and a read gives the value from before the step, whenever it is made. The
variables themselves are no temporaries: a handle or an Assign has a few bytes.
"""
import json
import math
from collections import defaultdict

FLOAT = 4  # bytes of everything, indices too


class Slices:
    """A gradient of a few rows of a variable (IndexedSlices)."""

    def __init__(self, values, indices):
        self.values, self.indices = values, indices


class Graph:
    """Nodes in the order in which they are made. A value is the number of a tensor, a shape a tuple."""

    def __init__(self, name):
        self.name, self.ops, self.tensors, self.shapes = name, [], [], []
        self.variables = []  # (handle, read) of those that are trained
        self.averages = []  # updates of moving averages
        self.outputs = []
        self._tape = []  # (output, inputs, gradient) of the ops that lead from a variable to the loss
        self._trained = set()  # their outputs

    def node(self, kind, inputs, *shapes):
        """One node; what it puts out, a list if that is not one thing."""
        name, outputs = f"{kind}_{len(self.ops)}", []
        for shape in shapes:
            outputs.append(len(self.tensors))
            self.shapes.append(tuple(shape))
            self.tensors.append({"name": f"{name}:{len(outputs) - 1}", "bytes": FLOAT * math.prod(shape)})
        self.ops.append({"name": name, "inputs": list(dict.fromkeys(inputs)), "outputs": outputs, "time": 1})
        return outputs[0] if len(outputs) == 1 else outputs

    def differentiable(self, kind, inputs, shapes, gradient):
        """A node and how to make, from what flows back into its first output, what flows to each input."""
        outputs = self.node(kind, inputs, *shapes)
        first = outputs if len(shapes) == 1 else outputs[0]
        if self._trained.intersection(inputs):
            self._tape.append((first, inputs, gradient))
            self._trained.add(first)
        return outputs

    def const(self, *shape):
        return self.node("Const", [], shape)

    def consts(self, count):
        return [self.const() for _ in range(count)]

    def elementwise(self, kind, *inputs):
        """A node that has the shape of the largest of its inputs, and no gradient."""
        return self.node(kind, inputs, max((self.shapes[x] for x in inputs), key=math.prod))

    # Shapes.

    def shape(self, x):
        return self.const(len(self.shapes[x]))

    def part(self, shape, *result):
        """A strided slice of a shape."""
        return self.node("StridedSlice", [shape, *self.consts(3)], result)

    def size(self, x):
        """tf.shape(x)[i]"""
        return self.part(self.shape(x))

    def pack(self, *values, consts=0):
        return self.node("Pack", [*values, *self.consts(consts)], (len(values) + consts,))

    def reshape(self, x, to, shape):
        return self.differentiable("Reshape", [x, to], [shape], lambda g: [self._reshaped(g, self.shape(x), x), None])

    def _reshaped(self, g, to, like):
        return self.node("Reshape", [g, to], self.shapes[like])

    def transpose(self, x, shape):
        order = self.const(len(shape))
        return self.differentiable("Transpose", [x, order], [shape], lambda g: [self.node(
            "Transpose", [g, self.node("InvertPermutation", [order], (len(shape),))], self.shapes[x]), None])

    def expand(self, x, shape):
        return self.differentiable("ExpandDims", [x, self.const()], [shape],
                                   lambda g: [self._reshaped(g, self.shape(x), x), None])

    def pad(self, x, shape, sizes=None):
        sizes = self.const(2 * len(shape)) if sizes is None else sizes

        def gradient(g):
            rank = self.pack(self.const(), consts=1)
            before = self.node("Slice", [sizes, self.const(2), rank], (len(shape),))
            begin = self.node("Reshape", [before, self.const()], (len(shape),))
            return [self.node("Slice", [g, begin, self.shape(x)], self.shapes[x]), None]

        return self.differentiable("Pad", [x, sizes], [shape], gradient)

    # Arithmetic, whose gradients read operands or results.

    def _binary(self, kind, a, b, gradients):
        """`gradients(g)` yields what flows to a and to b while they still have the shape of the result."""
        shape = max(self.shapes[a], self.shapes[b], key=math.prod)

        def gradient(g):
            if self.shapes[a] == self.shapes[b] and kind != "RealDiv":
                found = list(gradients(g))
                return [found[0], self.elementwise("Neg", found[1])] if kind == "Sub" else found
            sizes = [self.shape(a), self.shape(b)]
            along = self.node("BroadcastGradientArgs", sizes, (4,), (4,))
            found = []
            for x, size, axes, part in zip((a, b), sizes, along, gradients(g)):
                part = self.node("Sum", [part, axes], self.shapes[x])
                if kind == "Sub" and found:
                    part = self.elementwise("Neg", part)
                found.append(self._reshaped(part, size, x))
            return found

        return self.differentiable(kind, [a, b], [shape], gradient)

    def add(self, a, b):
        return self._binary("Add", a, b, lambda g: (g, g))

    def sub(self, a, b):
        return self._binary("Sub", a, b, lambda g: (g, g))

    def mul(self, a, b):
        return self._binary("Mul", a, b, lambda g: (self.elementwise("Mul", g, other) for other in (b, a)))

    def div(self, a, b):
        def gradients(g):
            yield self.elementwise("RealDiv", g, b)
            ratio = self.elementwise("RealDiv", self.elementwise("Neg", a), b)
            yield self.elementwise("Mul", g, self.elementwise("RealDiv", ratio, b))

        return self._binary("RealDiv", a, b, gradients)

    def matmul(self, a, b, shape, kind="MatMul"):
        return self.differentiable(kind, [a, b], [shape], lambda g: [
            self.node(kind, [g, b], self.shapes[a]), self.node(kind, [a, g], self.shapes[b])])

    def bias_add(self, x, bias):
        return self.differentiable("BiasAdd", [x, bias], [self.shapes[x]], lambda g: [
            g, self.node("BiasAddGrad", [g], self.shapes[bias])])

    def relu(self, x):
        return self._by_output("Relu", x)

    def rsqrt(self, x):
        return self._by_output("Rsqrt", x)

    def _by_output(self, kind, x):
        y = self.differentiable(kind, [x], [self.shapes[x]], lambda g: [self.elementwise(f"{kind}Grad", g, y)])
        return y

    def square(self, x):
        return self.differentiable("Square", [x], [self.shapes[x]], lambda g: [
            self.elementwise("Mul", g, self.elementwise("Mul", x, self.const()))])

    def softmax(self, x):
        def gradient(g):
            total = self.node("Sum", [self.elementwise("Mul", g, y), self.const()], (*self.shapes[x][:-1], 1))
            return [self.elementwise("Mul", self.elementwise("Sub", g, total), y)]

        y = self.differentiable("Softmax", [x], [self.shapes[x]], gradient)
        return y

    def l2_loss(self, x):
        return self.differentiable("L2Loss", [x], [()], lambda g: [self.elementwise("Mul", x, g)])

    def add_all(self, values):
        return self.differentiable("AddN", values, [self.shapes[values[0]]], lambda g: [g] * len(values))

    # Reductions.

    def sum(self, x, shape=()):
        axes = self.const(len(self.shapes[x]))
        return self.differentiable("Sum", [x, axes], [shape], lambda g: [self._spread(g, x, axes, shape), None])

    def mean(self, x, shape=()):
        axes = self.const(len(self.shapes[x]))

        return self.differentiable("Mean", [x, axes], [shape], lambda g: [self.elementwise(
            "RealDiv", self._spread(g, x, axes, shape), self.const()), None])

    def _spread(self, g, x, axes, shape):
        """The gradient of a sum: its own, repeated."""
        if shape == ():
            ones = self.const(len(self.shapes[x]))
            one = self.node("Reshape", [g, ones], ())
            return self.node("Tile", [one, self.shape(x)], self.shapes[x])
        rank = (len(self.shapes[x]),)
        full, count = self.shape(x), self.const()
        axes = self.elementwise("FloorMod", self.elementwise("Add", axes, count), count)
        everything = self.node("Range", [self.const(), count, self.const()], rank)
        ones = self.node("Fill", [self.const(1), self.const()], self.shapes[axes])
        kept = self.node("DynamicStitch", [everything, axes, full, ones], rank)
        times = self.elementwise("FloorDiv", full, self.elementwise("Maximum", kept, self.const()))
        return self.node("Tile", [self.node("Reshape", [g, kept], shape), times], self.shapes[x])

    # Variables.

    def filled(self, shape):
        """Zeros or ones: a constant if they are few."""
        return self.const(*shape) if math.prod(shape) < 1000 else self.node("Fill", [self.const(1), self.const()], shape)

    def uniform(self, shape, size=None):
        low, high = self.consts(2)
        drawn = self.node("RandomUniform", [self.const(len(shape)) if size is None else size], shape)
        return self.elementwise("Add", self.elementwise("Mul", drawn, self.elementwise("Sub", high, low)), low)

    def normal(self, shape):
        mean, deviation = self.consts(2)
        drawn = self.node("TruncatedNormal", [self.const(len(shape))], shape)
        return self.elementwise("Add", self.elementwise("Mul", drawn, deviation), mean)

    def stored(self, initial):
        """A variable's handle and a read of it."""
        handle = self.node("VariableV2", [], (1,))
        self.node("Assign", [handle, initial], (1,))
        return handle, self.node("Identity", [handle], self.shapes[initial])

    def trained(self, initial):
        handle, read = self.stored(initial)
        self.variables.append((handle, read))
        self._trained.add(read)
        return read

    # The backward pass.

    def gradients(self, loss):
        """What flows back into the read of each trained variable."""
        flows = defaultdict(list)

        def gathered(value):
            if len(flows[value]) > 1:
                total = self._sum_of(flows[value])
                flows[value] = [total]
            return flows[value][0]

        self.const()  # the shape of the loss
        flows[loss] = [self.node("Fill", [self.const(), self.const()], ())]
        for output, inputs, gradient in reversed(self._tape):
            if not flows[output]:
                continue
            found = gradient(gathered(output))
            if sum(each is not None for each in found) > 1:
                found = self._together(found)
            for value, each in zip(inputs, found):
                if each is not None and value in self._trained:
                    flows[value].append(each)
        return [gathered(read) for _, read in self.variables]

    def _together(self, found):
        """None is used before all are there."""
        ready = self.node("NoOp", [each for each in found if each is not None], (1,))
        return [None if each is None else self.node("Identity", [each, ready], self.shapes[each]) for each in found]

    def _sum_of(self, parts):
        if not any(isinstance(part, Slices) for part in parts):
            return self.node("AddN", parts, self.shapes[parts[0]])
        slices = []
        for part in parts:
            if not isinstance(part, Slices):  # a whole gradient has all rows
                rows = self.part(self.node("Shape", [part], (2,)))
                indices = self.node("Range", [self.const(), rows, self.const()], self.shapes[part][:1])
                part = Slices(part, indices)
            slices.append(part)
        count = sum(self.shapes[part.indices][0] for part in slices)
        width = self.shapes[slices[0].values][1]
        return Slices(self.node("ConcatV2", [part.values for part in slices] + [self.const()], (count, width)),
                      self.node("ConcatV2", [part.indices for part in slices] + [self.const()], (count,)))

    # The file format.

    def edges(self):
        """Links between nodes, however many tensors lie on one."""
        maker = {tensor: i for i, op in enumerate(self.ops) for tensor in op["outputs"]}
        return sum(len({maker[tensor] for tensor in op["inputs"]}) for op in self.ops)

    def write(self, path):
        path.write_text(json.dumps({"format": "lowtide-graph", "version": 1, "name": self.name, "tick": "none",
                                    "tensors": self.tensors, "ops": self.ops, "outputs": self.outputs}))
