"""Training graphs at TensorFlow 1's grain: every node that its official models of 2018 put into a graph.

Kumar et al. (NeurIPS 2019, section 4 and Table 1) measured on such graphs: variables with their initialisers and
the optimizer's slots, shapes and constants as nodes, gradients with their control dependencies.  The tape below
writes forward nodes and notes what each one's gradient will be, node for node as `tf.gradients` does.  Every node
takes unit time, and every output is memory of its own (no aliasing), as the paper assumes.  Variables and slots
are inputs of the graph, so they are there all the time.

`resnet(depth)`, `feed_forward(layers)` and `transformer(width, heads, inner)` return graphs as the file format has
them.
"""
from __future__ import annotations

import math
from collections import defaultdict

FLOAT = 4  # bytes


class Tape:
    """One training step in the making.  Values are numbers of tensors; shapes are tuples."""

    def __init__(self, name, slots):
        self._name, self._slots = name, slots
        self._tensors, self._ops, self._shapes = [], [], []
        self._backward, self._gradients, self._variables = [], defaultdict(list), []

    # ---- nodes

    def shape(self, value):
        return self._shapes[value]

    def node(self, kind, inputs=(), *shapes):
        """One node; the numbers of what it puts out, or the number if it is one."""
        outputs = [self._tensor(shape) for shape in shapes]
        self._ops.append({"name": f"{kind}_{len(self._ops)}", "kind": kind, "inputs": list(dict.fromkeys(inputs)),
                          "outputs": outputs, "time": 1})
        return outputs[0] if len(outputs) == 1 else outputs

    def const(self, shape=()):
        return self.node("Const", (), shape)

    def shape_of(self, value):
        return self.node("Shape", [value], (len(self.shape(value)),))

    def _tensor(self, shape):
        self._shapes.append(tuple(shape))
        self._tensors.append({"name": f"t{len(self._tensors)}", "bytes": FLOAT * math.prod(shape)})
        return len(self._tensors) - 1

    def _tuple(self, *gradients):
        """`tuple(gradients)`: none is used before all are there."""
        together = self.node("NoOp", gradients, (0,))
        return [self.node("Identity", [g, together], self.shape(g)) for g in gradients]

    # ---- variables

    def _stored(self, shape, constants):
        """Storage, its handle, its initialiser and what reads it."""
        storage = self._tensor(shape)
        handle = self.node("VariableV2", [storage], (1,))
        parts = [self.const() for _ in range(constants)]
        if constants > 1:  # truncated normal or uniform
            drawn = self.node("TruncatedNormal", parts[:1], shape)
            scaled = self.node("Mul", [drawn, parts[1]], shape)
            parts = [self.node("Add", [scaled, parts[2]], shape)]
        else:
            parts = [self.node("Fill", parts, shape)]
        self.node("Assign", [handle, *parts], (0,))
        return handle, self.node("Identity", [storage, handle], shape)

    def variable(self, shape, random=True, trained=True, decayed=False):
        handle, read = self._stored(shape, 3 if random else 1)
        if trained:
            self._variables.append((handle, read, decayed))
        return read

    # ---- gradients

    def gradient(self, value):
        """What flows back into a value: the sum of what its readers gave."""
        parts = self._gradients[value]
        if not parts:
            return None
        return parts[0] if len(parts) == 1 else self.node("AddN", parts, self.shape(value))

    def give(self, value, gradient):
        self._gradients[value].append(gradient)

    def unary(self, kind, x, shape=None, keeps="output", constants=0):
        """An op whose gradient reads its output, its input or nothing."""
        extra = [self.const((2,)) for _ in range(constants)]
        y = self.node(kind, [x, *extra], shape or self.shape(x))

        def back(g):
            read = {"output": [y], "input": [x], "shape": [self.shape_of(x)] if keeps == "shape" else [], "nothing": []}
            self.give(x, self.node(f"{kind}Grad", [g, *read[keeps], *extra], self.shape(x)))

        self._backward.append((y, back))
        return y

    def binary(self, kind, a, b, reads=True):
        """An op on two that are broadcast; the gradient of either is summed and reshaped."""
        shape = max(self.shape(a), self.shape(b), key=math.prod)
        y = self.node(kind, [a, b], shape)

        def back(g):
            sizes = self.shape_of(a), self.shape_of(b)
            along = self.node("BroadcastGradientArgs", sizes, (4,), (4,))
            found = []
            for x, other, size, axes in ((a, b, sizes[0], along[0]), (b, a, sizes[1], along[1])):
                part = self.node("Mul", [g, other], shape) if reads else g
                summed = self.node("Sum", [part, axes], self.shape(x))
                found.append(self.node("Reshape", [summed, size], self.shape(x)))
            for x, part in zip((a, b), self._tuple(*found), strict=True):
                self.give(x, part)

        self._backward.append((y, back))
        return y

    def matmul(self, a, b, shape, kind="MatMul"):
        y = self.node(kind, [a, b], shape)

        def back(g):
            found = [self.node(kind, [g, b], self.shape(a)), self.node(kind, [a, g], self.shape(b))]
            for x, part in zip((a, b), self._tuple(*found), strict=True):
                self.give(x, part)

        self._backward.append((y, back))
        return y

    def bias(self, x):
        b = self.variable(self.shape(x)[-1:], random=False)
        y = self.node("BiasAdd", [x, b], self.shape(x))

        def back(g):
            for value, part in zip((x, b), self._tuple(g, self.node("BiasAddGrad", [g], self.shape(b))), strict=True):
                self.give(value, part)

        self._backward.append((y, back))
        return y

    # ---- the end

    def finish(self, loss):
        """Backwards from the loss, then the optimizer: the graph."""
        decayed = [read for _, read, decays in self._variables if decays]
        if decayed:
            terms = [self.unary("L2Loss", read, (), keeps="input") for read in decayed]
            total = self.node("AddN", terms, ())
            self._backward.append((total, lambda g: [self.give(term, g) for term in terms]))
            loss = self.binary("Add", loss, self.binary("Mul", total, self.const(), reads=True), reads=False)
        self.give(loss, self.node("Fill", [self.const()], ()))
        for value, back in reversed(self._backward):
            g = self.gradient(value)
            if g is not None:
                back(g)
        rate = self.const()
        for handle, read, _ in self._variables:
            slots = [self._stored(self.shape(read), 1)[0] for _ in range(self._slots)]
            self.node("Apply", [handle, *slots, rate, self.gradient(read)], (0,))
        return {"format": "lowtide-graph", "version": 1, "name": self._name, "tick": "none",
                "tensors": self._tensors, "ops": self._ops, "outputs": [loss]}


# ---- the paper's networks


def feed_forward(layers, batch=4096, width=256):
    """ReLU layers, mean squared error, plain gradient descent."""
    tape = Tape(f"ffn{layers}", slots=0)
    x, wanted = tape.node("RandomNormal", (), (batch, width)), tape.node("RandomNormal", (), (batch, width))
    for layer in range(layers + 1):
        x = tape.bias(tape.matmul(x, tape.variable((width, width)), (batch, width)))
        if layer < layers:
            x = tape.unary("Relu", x)
    square = tape.unary("Square", tape.binary("Sub", x, wanted, reads=False), keeps="input")
    return tape.finish(tape.unary("Mean", square, (), keeps="shape", constants=1))


_BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
           200: (3, 24, 36, 3)}


def resnet(depth, batch=32, size=224):
    """The official ResNet, version 2 (batch norm and ReLU first), ImageNet, momentum, weight decay."""
    tape = Tape(f"resnet{depth}", slots=1)
    x = tape.node("IteratorGetNext", (), (batch, size, size, 3))
    x = _convolve(tape, x, 64, 7, 2)
    x = tape.unary("MaxPool", x, (batch, size // 4, size // 4, 64), keeps="input")
    for stage, blocks in enumerate(_BLOCKS[depth]):
        for block in range(blocks):
            x = _block(tape, x, 64 << stage, 2 if stage and not block else 1, not block, depth >= 50)
    x = tape.unary("Relu", _batch_norm(tape, x))
    x = tape.unary("Mean", x, (batch, tape.shape(x)[-1]), keeps="shape", constants=1)
    x = tape.bias(tape.matmul(x, tape.variable((tape.shape(x)[-1], 1001), decayed=True), (batch, 1001)))
    return tape.finish(_cross_entropy(tape, x))


def _block(tape, x, width, stride, first, bottleneck):
    """Figure 4 of K. He et al. (2016, "Identity mappings"): the signal goes round normalised convolutions."""
    y = tape.unary("Relu", _batch_norm(tape, x))
    wide = 4 * width if bottleneck else width
    round_it = _convolve(tape, y, wide, 1, stride) if first else x
    steps = [(width, 1, 1), (width, 3, stride), (wide, 1, 1)] if bottleneck else [(width, 3, stride), (wide, 3, 1)]
    for i, (channels, kernel, by) in enumerate(steps):
        if i:
            y = tape.unary("Relu", _batch_norm(tape, y))
        y = _convolve(tape, y, channels, kernel, by)
    return tape.binary("Add", y, round_it, reads=False)


def _convolve(tape, x, channels, kernel, stride):
    batch, height, width, deep = tape.shape(x)
    if stride > 1 and kernel > 1:
        x = tape.unary("Pad", x, (batch, height + kernel - 1, width + kernel - 1, deep), keeps="shape", constants=1)
    weight = tape.variable((kernel, kernel, deep, channels), decayed=True)
    tape.const((2,))  # the dilation rate, which nothing reads
    y = tape.node("Conv2D", [x, weight], (batch, height // stride, width // stride, channels))

    def back(g):
        sizes = tape.node("ShapeN", [x, weight], (4,), (4,))
        found = [tape.node("Conv2DBackpropInput", [sizes[0], weight, g], tape.shape(x)),
                 tape.node("Conv2DBackpropFilter", [x, sizes[1], g], tape.shape(weight))]
        for value, part in zip((x, weight), tape._tuple(*found), strict=True):
            tape.give(value, part)

    tape._backward.append((y, back))
    return y


def _batch_norm(tape, x):
    features = tape.shape(x)[-1:]
    scale, shift = tape.variable(features, random=False), tape.variable(features, random=False)
    y, mean, variance, *saved = tape.node("FusedBatchNorm", [x, scale, shift], tape.shape(x), *[features] * 4)
    for found in (mean, variance):  # moving averages
        moving = tape.variable(features, random=False, trained=False)
        move = tape.node("Mul", [tape.node("Sub", [moving, found], features), tape.const()], features)
        tape.node("AssignSub", [moving, move], (0,))

    def back(g):
        for unused in (mean, variance, *saved):
            tape.node("ZerosLike", [unused], features)
        found = tape.node("FusedBatchNormGrad", [g, x, scale, *saved], tape.shape(x), features, features)
        for value, part in zip((x, scale, shift), tape._tuple(*found), strict=True):
            tape.give(value, part)

    tape._backward.append((y, back))
    return y


def _cross_entropy(tape, logits):
    labels = tape.node("OneHot", [tape.const(), tape.const()], tape.shape(logits))
    loss, by_logit = tape.node("SoftmaxCrossEntropyWithLogits", [logits, labels], tape.shape(logits)[:-1],
                               tape.shape(logits))

    def back(g):
        along = tape.node("ExpandDims", [g, tape.const()], (*tape.shape(g), 1))
        tape.give(logits, tape.node("Mul", [along, by_logit], tape.shape(logits)))

    tape._backward.append((loss, back))
    return tape.unary("Mean", loss, (), keeps="shape", constants=1)


def transformer(width=512, heads=8, inner=2048, layers=6, batch=32, length=64, words=33708, name="base"):
    """The official Transformer: six encoder and six decoder layers, shared embedding, Adam.  By default the "base"
    model with its 2,048 tokens a step; "big" has width 1024, 16 heads, 4,096 inside and 4,096 tokens."""
    tape = Tape(f"transformer-{name}", slots=2)
    shape = (batch, length, width)
    table = tape.variable((words, width))
    sizes = {"heads": heads, "inner": inner, "length": length}
    memory = _embed(tape, table, shape)
    for _ in range(layers):
        memory = _around(tape, memory, lambda x: _attend(tape, x, x, **sizes))
        memory = _around(tape, memory, lambda x: _feed(tape, x, **sizes))
    memory = _layer_norm(tape, memory)
    x = _embed(tape, table, shape)
    for _ in range(layers):
        x = _around(tape, x, lambda y: _attend(tape, y, y, **sizes))
        x = _around(tape, x, lambda y: _attend(tape, y, memory, **sizes))
        x = _around(tape, x, lambda y: _feed(tape, y, **sizes))
    x = tape.unary("Reshape", _layer_norm(tape, x), (batch * length, width), keeps="shape", constants=1)
    return tape.finish(_cross_entropy(tape, tape.matmul(x, table, (batch * length, words))))


def _embed(tape, table, shape):
    ids = tape.node("IteratorGetNext", (), shape[:2])
    x = tape.unary("GatherV2", table, shape, keeps="shape", constants=1)
    padding = tape.node("Cast", [tape.node("NotEqual", [ids, tape.const()], shape[:2])], shape[:2])
    x = tape.binary("Mul", x, tape.node("ExpandDims", [padding, tape.const()], (*shape[:2], 1)))
    x = tape.binary("Mul", x, tape.const())
    where = tape.node("Cos", [tape.node("Mul", [tape.const(), tape.const()], shape[1:])], shape[1:])
    return _dropout(tape, tape.binary("Add", x, where, reads=False))


def _dropout(tape, x):
    low, high = tape.const(), tape.const()
    drawn = tape.node("RandomUniform", [tape.shape_of(x)], tape.shape(x))
    scaled = tape.node("Mul", [drawn, tape.node("Sub", [high, low], ())], tape.shape(x))
    mask = tape.node("Floor", [tape.node("Add", [scaled, tape.const()], tape.shape(x))], tape.shape(x))
    return tape.binary("Mul", tape.binary("RealDiv", x, tape.const()), mask)


def _around(tape, x, layer):
    return tape.binary("Add", x, _dropout(tape, layer(_layer_norm(tape, x))), reads=False)


def _layer_norm(tape, x):
    shape, features = tape.shape(x), tape.shape(x)[-1:]
    scale, shift = tape.variable(features, random=False), tape.variable(features, random=False)
    mean = tape.unary("Mean", x, (*shape[:-1], 1), keeps="shape", constants=1)
    off = tape.binary("Sub", x, mean, reads=False)
    variance = tape.unary("Mean", tape.unary("Square", off, keeps="input"), (*shape[:-1], 1), keeps="shape",
                          constants=1)
    by = tape.unary("Rsqrt", tape.binary("Add", variance, tape.const(), reads=False))
    normal = tape.binary("Mul", tape.binary("Sub", x, mean, reads=False), by)
    return tape.binary("Add", tape.binary("Mul", normal, scale), shift, reads=False)


def _dense(tape, x, features, bias=False):
    """A layer on the last of three dimensions: `tensordot`, whose shapes are computed in the graph."""
    batch, length, deep = tape.shape(x)
    size = tape.shape_of(x)
    free, summed = (tape.node("GatherV2", [size, tape.const(), tape.const()], (2,)) for _ in range(2))
    rows = tape.node("Prod", [free, tape.const()], ())
    flat = tape.node("Pack", [rows, tape.node("Prod", [summed, tape.const()], ())], (2,))
    tape.node("ConcatV2", [free, summed, tape.const()], (3,))
    turned = tape.unary("Transpose", x, keeps="nothing", constants=1)
    matrix = tape.node("Reshape", [turned, flat], (batch * length, deep))
    tape._backward.append((matrix, lambda g: tape.give(turned, tape.node(
        "Reshape", [g, tape.shape_of(turned)], tape.shape(turned)))))
    y = tape.matmul(matrix, tape.variable((deep, features)), (batch * length, features))
    y = tape.unary("Reshape", y, (batch, length, features), keeps="shape", constants=1)
    return tape.bias(y) if bias else y


def _heads(tape, x, heads, length):
    batch, _, width = tape.shape(x)
    split = tape.unary("Reshape", x, (batch, length, heads, width // heads), keeps="shape", constants=1)
    return tape.unary("Transpose", split, (batch, heads, length, width // heads), keeps="nothing", constants=1)


def _attend(tape, x, memory, heads, inner, length):
    batch, _, width = tape.shape(x)
    queries, keys, values = (_heads(tape, _dense(tape, of, width), heads, length) for of in (x, memory, memory))
    scores = tape.matmul(tape.binary("Mul", queries, tape.const()), keys, (batch, heads, length, length), "BatchMatMul")
    hidden = tape.node("Mul", [tape.const(), tape.const()], (batch, 1, 1, length))
    weights = tape.unary("Softmax", tape.binary("Add", scores, hidden, reads=False))
    mixed = tape.matmul(_dropout(tape, weights), values, tape.shape(queries), "BatchMatMul")
    together = tape.unary("Transpose", mixed, (batch, length, heads, width // heads), keeps="nothing", constants=1)
    return _dense(tape, tape.unary("Reshape", together, (batch, length, width), keeps="shape", constants=1), width)


def _feed(tape, x, heads, inner, length):
    width = tape.shape(x)[-1]
    return _dense(tape, _dropout(tape, tape.unary("Relu", _dense(tape, x, inner, bias=True))), width, bias=True)
