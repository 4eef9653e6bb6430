"""The official Transformer of 2018: six encoder and six decoder layers, one embedding for both and for the logits,
dropout, smoothed labels, Adam with a warm-up. Every decoder layer reads what the encoder put out; masks, and where
words are, are computed once and read in every layer."""
from .graph import Graph, Slices
from .optimizers import adam

SIZES = {"base": (512, 8, 2048, 2048), "big": (1024, 16, 4096, 4096)}  # width, heads, within a layer, tokens a step


def transformer(size):
    return _Transformer(f"Transformer {size}", *SIZES[size]).graph


class _Transformer:
    def __init__(self, name, width, heads, inner, tokens, length=64, words=33708, layers=6):
        self.graph, self.width, self.heads, self.inner, self.words = Graph(name), width, heads, inner, words
        self.batch, self.length, self.rows = tokens // length, length, tokens
        graph = self.graph
        ids, targets = graph.node("IteratorGetNext", [], *[(self.batch, self.length)] * 2)
        hidden = self._hidden(ids)
        self.table = graph.trained(graph.normal((words, width)))
        embedded = self._embed(ids)
        padding = self._padding(ids)
        memory = self._dropout(graph.add(embedded, self._positions(graph.size(embedded))))
        for _ in range(layers):
            memory = self._around(memory, lambda y: self._attend(y, y, hidden))
            memory = self._around(memory, lambda y: self._without_padding(y, padding))
        memory = self._layer_norm(memory)
        x = self._shift(self._embed(targets))
        length = graph.size(x)
        x = self._dropout(graph.add(x, self._positions(length)))
        future = self._future(length)
        for _ in range(layers):
            x = self._around(x, lambda y: self._attend(y, y, future))
            x = self._around(x, lambda y: self._attend(y, memory, hidden))
            x = self._around(x, lambda y: self._between(y, lambda z: self._dense(z, self.inner, True)))
        adam(graph, self._loss(self._logits(self._layer_norm(x)), targets), self._rate)

    # Masks and embeddings.

    def _padding(self, ids):
        return self.graph.elementwise("Cast", self.graph.elementwise("Equal", ids, self.graph.const()))

    def _hidden(self, ids):
        """What attention adds to logits of words that are none."""
        graph = self.graph
        bias = graph.elementwise("Mul", self._padding(ids), graph.const())
        for ones in ((1,), (1, 1)):
            bias = graph.node("ExpandDims", [bias, graph.const()], (self.batch, *ones, self.length))
        return bias

    def _future(self, length):
        """What the decoder adds to logits of words to come."""
        graph, square = self.graph, (self.length, self.length)
        ones = graph.node("Fill", [graph.pack(length, length), graph.const()], square)
        band = graph.node("MatrixBandPart", [ones, *graph.consts(2)], square)
        band = graph.node("Reshape", [band, graph.pack(length, length, consts=2)], (1, 1, *square))
        return graph.elementwise("Mul", graph.elementwise("Sub", graph.const(), band), graph.const())

    def _positions(self, length):
        graph = self.graph
        position = graph.node("Range", [length, *graph.consts(2)], (self.length,))
        scales = graph.node("Range", graph.consts(3), (self.width // 2,))
        increment = graph.node("RealDiv", [graph.const(), graph.node("Sub", graph.consts(2), ())], ())
        scales = graph.elementwise("Exp", graph.elementwise("Mul", scales, graph.elementwise("Neg", increment)))
        position = graph.node("ExpandDims", [graph.elementwise("Cast", position), graph.const()], (self.length, 1))
        scales = graph.node("ExpandDims", [scales, graph.const()], (1, self.width // 2))
        times = graph.node("Mul", [position, scales], (self.length, self.width // 2))
        waves = [graph.elementwise(kind, times) for kind in ("Sin", "Cos")]
        return graph.node("ConcatV2", [*waves, graph.const()], (self.length, self.width))

    def _embed(self, ids):
        graph = self.graph

        def gradient(g):
            count = graph.node("ExpandDims", [graph.node("Size", [ids], ()), graph.const()], (1,))
            shape = graph.node("ConcatV2", [count, graph.part(graph.shape(self.table), 1), graph.const()], (2,))
            return [Slices(graph.node("Reshape", [g, shape], (self.rows, self.width)),
                           graph.node("Reshape", [ids, count], (self.rows,))), None, None]

        x = graph.differentiable("GatherV2", [self.table, ids, graph.const()], [(self.batch, self.length, self.width)],
                                 gradient)
        x = graph.mul(x, graph.const())
        there = graph.elementwise("Sub", graph.const(), self._padding(ids))
        return graph.mul(x, graph.node("ExpandDims", [there, graph.const()], (self.batch, self.length, 1)))

    def _shift(self, x):
        """To the right by one word."""
        graph, shape = self.graph, self.graph.shapes[x]
        longer = graph.pad(x, (self.batch, self.length + 1, self.width))
        bounds = graph.consts(3)
        return graph.differentiable("StridedSlice", [longer, *bounds], [shape], lambda g: [graph.node(
            "StridedSliceGrad", [graph.shape(longer), *bounds, g], graph.shapes[longer]), None, None, None])

    # Layers.

    def _around(self, x, layer):
        return self.graph.add(x, self._dropout(layer(self._layer_norm(x))))

    def _layer_norm(self, x):
        graph, features = self.graph, (self.width,)
        scale, shift = (graph.trained(graph.filled(features)) for _ in range(2))
        narrow = (*graph.shapes[x][:2], 1)
        mean = graph.mean(x, narrow)
        variance = graph.mean(graph.square(graph.sub(x, mean)), narrow)
        off = graph.sub(x, mean)
        normal = graph.mul(off, graph.rsqrt(graph.add(variance, graph.const())))
        return graph.add(graph.mul(normal, scale), shift)

    def _dropout(self, x):
        graph = self.graph
        keep = graph.const()
        drawn = graph.uniform(graph.shapes[x], graph.shape(x))
        mask = graph.elementwise("Floor", graph.elementwise("Add", drawn, keep))
        return graph.mul(graph.div(x, keep), mask)

    def _dense(self, x, features, bias):
        """A product on the last of three dimensions (tensordot)."""
        graph = self.graph
        batch, length, deep = graph.shapes[x]
        kernel = graph.trained(graph.uniform((deep, features)))
        offset = graph.trained(graph.filled((features,))) if bias else None
        matrix = graph.reshape(graph.transpose(x, (batch, length, deep)), graph.const(2), (batch * length, deep))
        kernel = graph.reshape(graph.transpose(kernel, (deep, features)), graph.const(2), (deep, features))
        y = graph.matmul(matrix, kernel, (batch * length, features))
        y = graph.reshape(y, graph.const(3), (batch, length, features))
        return graph.bias_add(y, offset) if bias else y

    def _between(self, x, layer):
        graph = self.graph
        return self._dense(self._dropout(graph.relu(layer(x))), self.width, True)

    def _without_padding(self, x, padding):
        """The dense layers of an encoder layer, of words only. As many are left here as there were."""
        graph, shape, flat = self.graph, self.graph.shapes[x], (self.rows, self.width)
        sizes = [graph.size(x), graph.size(x)]
        mask = graph.node("Reshape", [padding, graph.const()], (self.rows,))
        words = graph.node("Where", [graph.elementwise("Less", mask, graph.const())], (self.rows, 1))
        words = graph.elementwise("Cast", words)
        x = graph.reshape(x, graph.const(2), flat)
        x = graph.differentiable("GatherNd", [x, words], [flat], lambda g, x=x: [
            graph.node("ScatterNd", [words, g, graph.shape(x)], flat), None])
        x = graph.expand(x, (1, *flat))
        x = self._between(x, lambda z: self._dense(z, self.inner, True))
        x = graph.differentiable("Squeeze", [x], [flat], lambda g, x=x: [graph.node(
            "Reshape", [g, graph.shape(x)], graph.shapes[x])])
        whole = graph.pack(graph.elementwise("Mul", *sizes), consts=1)
        x = graph.differentiable("ScatterNd", [words, x, whole], [flat], lambda g: [
            None, graph.node("GatherNd", [g, words], flat), None])
        return graph.reshape(x, graph.pack(*sizes, consts=1), shape)

    def _attend(self, x, memory, bias):
        graph = self.graph
        query, key, value = (self._dense(of, self.width, False) for of in (x, memory, memory))
        query, key, value = (self._split(each) for each in (query, key, value))
        pairs = (self.batch, self.heads, self.length, self.length)
        logits = graph.matmul(graph.mul(query, graph.const()), key, pairs, "BatchMatMul")
        weights = self._dropout(graph.softmax(graph.add(logits, bias)))
        mixed = graph.matmul(weights, value, graph.shapes[query], "BatchMatMul")
        sizes = [graph.size(mixed), graph.size(mixed)]
        mixed = graph.transpose(mixed, (self.batch, self.length, self.heads, self.width // self.heads))
        mixed = graph.reshape(mixed, graph.pack(*sizes, consts=1), (self.batch, self.length, self.width))
        return self._dense(mixed, self.width, False)

    def _split(self, x):
        graph, deep = self.graph, self.width // self.heads
        sizes = graph.pack(graph.size(x), graph.size(x), consts=2)
        x = graph.reshape(x, sizes, (self.batch, self.length, self.heads, deep))
        return graph.transpose(x, (self.batch, self.heads, self.length, deep))

    # The end.

    def _logits(self, x):
        graph = self.graph
        sizes = [graph.size(x), graph.size(x)]
        x = graph.reshape(x, graph.const(2), (self.rows, self.width))
        x = graph.matmul(x, self.table, (self.rows, self.words))
        return graph.reshape(x, graph.pack(*sizes, consts=1), (self.batch, self.length, self.words))

    def _loss(self, logits, targets):
        graph, words = self.graph, (self.batch, self.length)
        sizes = [graph.size(logits), graph.size(targets)]
        longest = graph.node("Maximum", sizes, ())
        more = [graph.node("Sub", [longest, size], ()) for size in sizes]
        logits = graph.pad(logits, graph.shapes[logits], graph.pack(more[0], consts=5))
        targets = graph.node("Pad", [targets, graph.pack(more[1], consts=3)], words)
        truth = graph.node("OneHot", [targets, *graph.consts(3)], (*words, self.words))
        shape, rank = graph.shape(logits), graph.const()
        flat = [self._flat(each, rank) for each in (logits, truth)]
        losses = self._cross_entropy(*flat)
        last = graph.pack(graph.node("Sub", [rank, graph.const()], ()))
        losses = graph.reshape(losses, graph.node("Slice", [shape, graph.const(1), last], (2,)), words)
        losses = graph.sub(losses, graph.const())  # what smoothed labels cannot do without
        weights = graph.elementwise("Cast", graph.elementwise("NotEqual", targets, graph.const()))
        return graph.div(graph.sum(graph.mul(losses, weights)), graph.sum(weights))

    def _flat(self, x, rank):
        """All dimensions but the last as one."""
        graph = self.graph
        begin = graph.pack(graph.node("Sub", [rank, graph.const()], ()))
        last = graph.node("Slice", [graph.shape(x), begin, graph.const(1)], (1,))
        to = graph.node("ConcatV2", [graph.const(1), last, graph.const()], (2,))
        return graph.reshape(x, to, (self.rows, self.words))

    def _cross_entropy(self, logits, truth):
        graph = self.graph

        def gradient(g):
            graph.elementwise("ZerosLike", by_logit)
            found = []
            for each in (by_logit, None):  # the labels get one, too
                each = graph.elementwise("Neg", graph.elementwise("LogSoftmax", logits)) if each is None else each
                column = graph.node("ExpandDims", [g, graph.const()], (self.rows, 1))
                found.append(graph.elementwise("Mul", column, each))
            return found

        loss, by_logit = graph.differentiable("SoftmaxCrossEntropyWithLogits", [logits, truth],
                                              [(self.rows,), graph.shapes[logits]], gradient)
        return loss

    def _rate(self, step):
        """Rises for some steps, then falls with their root."""
        graph = self.graph
        step, warm_up = graph.elementwise("Cast", step), graph.const()
        rising = graph.elementwise("Minimum", graph.elementwise("RealDiv", step, warm_up), graph.const())
        falling = graph.elementwise("Rsqrt", graph.elementwise("Maximum", step, warm_up))
        return graph.elementwise("Mul", graph.elementwise("Mul", graph.const(), rising), falling)
