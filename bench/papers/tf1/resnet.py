"""The official ResNet of 2018 for ImageNet, version 2: batch norm and ReLU before each convolution (K. He et al.,
"Identity Mappings in Deep Residual Networks", 2016), channels first, momentum, decay of what is not batch norm's."""
from .graph import Graph
from .optimizers import momentum

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
          200: (3, 24, 36, 3)}


def resnet(depth, batch=32):
    return _ResNet(depth, batch).graph


class _ResNet:
    def __init__(self, depth, batch):
        self.graph, self.batch, self._bottleneck, self._decayed = Graph(f"ResNet-{depth}"), batch, depth >= 50, []
        graph = self.graph
        images, labels = graph.node("IteratorGetNext", [], (batch, 224, 224, 3), (batch,))
        x = self._convolve(graph.transpose(images, (batch, 3, 224, 224)), 64, 7, 2)
        x = self._max_pool(x, (batch, 64, 56, 56))
        for stage, blocks in enumerate(BLOCKS[depth]):
            for block in range(blocks):
                x = self._block(x, 64 << stage, 2 if stage and not block else 1, not block)
        x = graph.relu(self._batch_norm(x))
        channels = graph.shapes[x][1]
        x = graph.mean(x, (batch, channels, 1, 1))
        x = graph.reshape(x, graph.const(2), (batch, channels))
        kernel, bias = graph.trained(graph.uniform((channels, 1001))), graph.trained(graph.filled((1001,)))
        x = graph.bias_add(graph.matmul(x, kernel, (batch, 1001)), bias)
        loss = graph.mean(self._cross_entropy(x, labels))
        decay = graph.add_all([graph.l2_loss(each) for each in [*self._decayed, kernel, bias]])
        momentum(graph, graph.add(loss, graph.mul(decay, graph.const())), boundaries=4)

    def _block(self, x, width, stride, first):
        wide = 4 * width if self._bottleneck else width
        steps = [(width, 3, stride), (width, 3, 1)]
        if self._bottleneck:
            steps = [(width, 1, 1), (width, 3, stride), (wide, 1, 1)]
        y = self.graph.relu(self._batch_norm(x))
        past = self._convolve(y, wide, 1, stride) if first else x
        for i, (channels, kernel, by) in enumerate(steps):
            y = self.graph.relu(self._batch_norm(y)) if i else y
            y = self._convolve(y, channels, kernel, by)
        return self.graph.add(y, past)

    def _convolve(self, x, channels, kernel, stride):
        graph = self.graph
        _, deep, side, _ = graph.shapes[x]
        shape = (self.batch, channels, side // stride, side // stride)
        if stride > 1:  # so much at each end, whatever the size
            x = graph.pad(x, (self.batch, deep, side + kernel - 1, side + kernel - 1))
        weight = graph.trained(graph.normal((kernel, kernel, deep, channels)))
        self._decayed.append(weight)
        graph.const(2)  # the dilation, which nothing reads

        def gradient(g):
            sizes = graph.node("ShapeN", [x, weight], (4,), (4,))
            return [graph.node("Conv2DBackpropInput", [sizes[0], weight, g], graph.shapes[x]),
                    graph.node("Conv2DBackpropFilter", [x, sizes[1], g], graph.shapes[weight])]

        return graph.differentiable("Conv2D", [x, weight], [shape], gradient)

    def _batch_norm(self, x):
        graph = self.graph
        features = graph.shapes[x][1:2]
        scale, shift = (graph.trained(graph.filled(features)) for _ in range(2))
        moving = [graph.stored(graph.filled(features)) for _ in range(2)]

        def gradient(g):
            for statistic in statistics:  # nothing flows back into them
                graph.elementwise("ZerosLike", statistic)
            return graph.node("FusedBatchNormGrad", [g, x, scale, *statistics[2:]], graph.shapes[x], *[features] * 4)

        y, *statistics = graph.differentiable("FusedBatchNorm", [x, scale, shift, *graph.consts(2)],
                                              [graph.shapes[x]] + [features] * 4, gradient)
        factor = graph.const()
        for (handle, read), statistic in zip(moving, statistics):
            decay = graph.elementwise("Sub", graph.const(), factor)
            change = graph.elementwise("Mul", graph.elementwise("Sub", read, statistic), decay)
            graph.averages.append(graph.node("AssignSub", [handle, change], (1,)))
        return y

    def _max_pool(self, x, shape):
        graph = self.graph
        y = graph.differentiable("MaxPool", [x], [shape],
                                 lambda g: [graph.node("MaxPoolGrad", [x, y, g], graph.shapes[x])])
        return y

    def _cross_entropy(self, logits, labels):
        graph = self.graph

        def gradient(g):
            graph.elementwise("ZerosLike", by_logit)
            column = graph.node("ExpandDims", [g, graph.const()], (self.batch, 1))
            return [graph.elementwise("Mul", column, by_logit), None]

        loss, by_logit = graph.differentiable("SparseSoftmaxCrossEntropyWithLogits", [logits, labels],
                                              [(self.batch,), graph.shapes[logits]], gradient)
        return loss
