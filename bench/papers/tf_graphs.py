"""Training graphs at the grain of TensorFlow 1, as Kumar et al. (NeurIPS 2019) measured: one node an operation, one
tensor a node, one tick each. Variables, their reads and the optimizer's updates are nodes, as there; so are the shapes
and control dependencies of gradients, which hold no bytes to speak of.
"""
import json

FLOAT = 4
TINY = 4  # a shape, a scalar, a control dependency


class Net:
    """Nodes as they are added; gradients are written as the reverse of what the forward notes."""

    def __init__(self, name):
        self.name, self.size, self.inputs, self.names = name, [], [], []
        self.tape, self.updates = [], []

    def node(self, name, inputs, size=TINY):
        self.names.append(name)
        self.inputs.append(list(dict.fromkeys(inputs)))
        self.size.append(size)
        return len(self.size) - 1

    def variable(self, name, size, casts=False):
        """A variable's read, and what its gradient goes through later. The variable itself is no temporary."""
        read = self.node(f"{name}/read", [])
        value = self.node(f"{name}/value", [read], size)
        return self.node(f"{name}/cast", [value], size) if casts else value

    def gate(self, name, outputs):
        """TensorFlow's tuple: nobody reads one gradient of an op before all of them are there."""
        group = self.node(f"{name}/tuple/group_deps", outputs)
        return [self.node(f"{name}/tuple/control_dependency", [output, group], self.size[output])
                for output in outputs]

    def update(self, name, gradient, slots):
        for slot in range(slots):
            scale = self.node(f"{name}/scale_{slot}", [gradient], self.size[gradient])
            gradient = scale
        self.updates.append(self.node(f"{name}/apply", [gradient]))

    def add_gradient(self, gradients, value, gradient):
        if value in gradients:
            gradient = self.node(f"gradients/AddN_{value}", [gradients[value], gradient], self.size[value])
        gradients[value] = gradient

    def finish(self, loss):
        gradients = {loss: self.node("gradients/Fill", [self.node("gradients/Shape", [loss])], self.size[loss])}
        for output, step in reversed(self.tape):
            if output in gradients:
                step(gradients.pop(output), lambda value, gradient: self.add_gradient(gradients, value, gradient))
        self.node("train_op", self.updates + [loss])

    def edges(self):
        return sum(len(inputs) for inputs in self.inputs)

    def write(self, path):
        # Duplicates of tensors are the point of rematerialization; the order is that of construction.
        graph = {
            "format": "lowtide-graph", "version": 1, "name": self.name, "tick": "none",
            "tensors": [{"name": name, "bytes": size} for name, size in zip(self.names, self.size)],
            "ops": [{"name": name, "inputs": inputs, "outputs": [i], "time": 1}
                    for i, (name, inputs) in enumerate(zip(self.names, self.inputs))],
            "outputs": [len(self.size) - 1],
        }
        path.write_text(json.dumps(graph))

    # Layers.
    def elementwise(self, name, inputs, size, saved=True):
        """An op whose gradient reads what it made (or what it read, if that is all)."""
        output = self.node(name, inputs, size)

        def step(gradient, give):
            for value in inputs:
                back = self.node(f"gradients/{name}_grad", [gradient, output if saved else value], self.size[value])
                give(value, back)

        self.tape.append((output, step))
        return output

    def add(self, name, a, b, size):
        output = self.node(name, [a, b], size)

        def step(gradient, give):
            shapes = [self.node(f"gradients/{name}_grad/Shape", [value]) for value in (a, b)]
            ranges = self.node(f"gradients/{name}_grad/BroadcastGradientArgs", shapes)
            sums = [self.node(f"gradients/{name}_grad/Sum", [gradient, ranges], self.size[value]) for value in (a, b)]
            shaped = [self.node(f"gradients/{name}_grad/Reshape", [total, shape], self.size[value])
                      for total, shape, value in zip(sums, shapes, (a, b))]
            for value, back in zip((a, b), self.gate(f"gradients/{name}_grad", shaped)):
                give(value, back)

        self.tape.append((output, step))
        return output

    def reshape(self, name, x, size=None):
        size = size or self.size[x]
        shape = self.node(f"{name}/shape", [self.node(f"{name}/Shape", [x])])
        output = self.node(name, [x, shape], size)

        def step(gradient, give):
            shape = self.node(f"gradients/{name}_grad/Shape", [x])
            give(x, self.node(f"gradients/{name}_grad/Reshape", [gradient, shape], self.size[x]))

        self.tape.append((output, step))
        return output

    def product(self, name, a, b, size):
        output = self.node(name, [a, b], size)

        def step(gradient, give):
            left = self.node(f"gradients/{name}_grad/MatMul", [gradient, b], self.size[a])
            right = self.node(f"gradients/{name}_grad/MatMul_1", [a, gradient], self.size[b])
            for value, back in zip((a, b), self.gate(f"gradients/{name}_grad", [left, right])):
                give(value, back)

        self.tape.append((output, step))
        return output

    def trained(self, name, size, slots, casts=False):
        value = self.variable(name, size, casts)

        def step(gradient, _):
            back = self.node(f"gradients/{name}/cast_grad", [gradient], size) if casts else gradient
            self.update(f"{name}/train", back, slots)

        self.tape.append((value, step))
        return value

    def dense(self, name, x, rows, width_in, width_out, slots=0, bias=True):
        y = self.product(f"{name}/MatMul", x, self.trained(f"{name}/kernel", width_in * width_out * FLOAT, slots),
                         rows * width_out * FLOAT)
        if bias:
            y = self.add(f"{name}/BiasAdd", y, self.trained(f"{name}/bias", width_out * FLOAT, slots),
                         rows * width_out * FLOAT)
        return y


def ffn(layers, batch=4096, width=1024):
    """Dense layers with ReLU, squared error, gradient descent."""
    net = Net(f"FFN of {layers} layers")
    x = net.node("x", [], batch * width * FLOAT)
    target = net.node("y", [], batch * width * FLOAT)
    for i in range(layers):
        x = net.dense(f"dense_{i}", x, batch, width, width)
        x = net.elementwise(f"relu_{i}", [x], batch * width * FLOAT)
    error = net.elementwise("loss/sub", [x, target], batch * width * FLOAT)
    square = net.elementwise("loss/square", [error], batch * width * FLOAT, saved=False)
    net.finish(net.elementwise("loss/mean", [square], TINY, saved=False))
    return net


RESNETS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3),
           200: (3, 24, 36, 3)}


def resnet(depth, batch=32):
    """Version 2 of the official model for ImageNet: batch norm and ReLU before each convolution, momentum, decay."""
    net = Net(f"ResNet-{depth}")
    image = 112

    def conv(name, x, side, channels_in, channels, kernel):
        size = batch * channels * side * side * FLOAT
        weight = net.trained(f"{name}/kernel", kernel * kernel * channels_in * channels * FLOAT, 3, True)
        padded = net.elementwise(f"{name}/Pad", [x], net.size[x], saved=False) if kernel > 1 else x
        return net.product(f"{name}/Conv2D", padded, weight, size)

    def norm_relu(name, x):
        size, channels = net.size[x], 4 * 256
        gamma, beta = (net.trained(f"{name}/{each}", channels * FLOAT, 3, True) for each in ("gamma", "beta"))
        statistics = net.node(f"{name}/moments", [x], 2 * channels * FLOAT)
        y = net.node(f"{name}/FusedBatchNorm", [x, statistics, gamma, beta], size)
        for moving in ("moving_mean", "moving_variance"):
            old = net.node(f"{name}/{moving}/read", [], channels * FLOAT)
            difference = net.node(f"{name}/{moving}/sub", [old, statistics], channels * FLOAT)
            scaled = net.node(f"{name}/{moving}/mul", [difference], channels * FLOAT)
            net.updates.append(net.node(f"{name}/{moving}/assign", [scaled]))

        def step(gradient, give):
            back = net.node(f"gradients/{name}/FusedBatchNormGrad", [gradient, x, statistics, gamma], size)
            parts = [net.node(f"gradients/{name}/{each}", [gradient, x, statistics], channels * FLOAT)
                     for each in ("gamma", "beta")]
            gated = net.gate(f"gradients/{name}", [back] + parts)
            for value, part in zip((x, gamma, beta), gated):
                give(value, part)

        net.tape.append((y, step))
        return net.elementwise(f"{name}/Relu", [y], size)

    x = net.node("images", [], batch * 3 * 224 * 224 * FLOAT)
    x = conv("initial_conv", x, image, 3, 64, 7)
    image //= 2
    x = net.elementwise("initial_max_pool", [x], batch * 64 * image * image * FLOAT)
    channels, bottleneck = 64, depth >= 50
    for stage, blocks in enumerate(RESNETS[depth]):
        width = 64 << stage
        out = 4 * width if bottleneck else width
        for block in range(blocks):
            name = f"stage{stage}/block{block}"
            side = image // 2 if stage > 0 and block == 0 else image
            short = x
            y = norm_relu(f"{name}/bn0", x)
            if block == 0:
                short = conv(f"{name}/projection", y, side, channels, out, 1)
            if bottleneck:
                y = conv(f"{name}/conv1", y, image, channels, width, 1)
                y = conv(f"{name}/conv2", norm_relu(f"{name}/bn1", y), side, width, width, 3)
                y = conv(f"{name}/conv3", norm_relu(f"{name}/bn2", y), side, width, out, 1)
            else:
                y = conv(f"{name}/conv1", y, side, channels, width, 3)
                y = conv(f"{name}/conv2", norm_relu(f"{name}/bn1", y), side, width, out, 3)
            x = net.add(f"{name}/add", y, short, batch * out * side * side * FLOAT)
            channels, image = out, side
    x = norm_relu("final_bn", x)
    x = net.elementwise("final_mean", [x], batch * channels * FLOAT, saved=False)
    x = net.dense("final_dense", x, batch, channels, 1001, 3)
    log = net.elementwise("loss/LogSoftmax", [x], batch * 1001 * FLOAT)
    net.finish(net.elementwise("loss/value", [log], TINY))
    return net


def transformer(size, batch=25, length=64, vocabulary=33708, layers=6):
    """The official model: each dropout and layer norm in its elementwise steps, Adam."""
    width, hidden, heads = {"base": (512, 2048, 8), "big": (1024, 4096, 16)}[size]
    rows = batch * length
    net = Net(f"Transformer {size}")
    full = rows * width * FLOAT
    pairs = batch * heads * length * length * FLOAT

    def dropout(name, x):
        count = net.size[x]
        shape = net.node(f"{name}/Shape", [x])
        uniform = net.node(f"{name}/random_uniform", [shape], count)
        scaled = net.node(f"{name}/random_uniform/mul", [uniform], count)
        moved = net.node(f"{name}/add", [scaled], count)
        mask = net.node(f"{name}/Floor", [moved], count)
        kept = net.elementwise(f"{name}/div", [x], count, saved=False)
        y = net.node(f"{name}/mul", [kept, mask], count)
        net.tape.append((y, lambda gradient, give: give(
            kept, net.node(f"gradients/{name}/mul_grad", [gradient, mask], count))))
        return y

    def layer_norm(name, x):
        few = rows * FLOAT
        mean = net.elementwise(f"{name}/mean", [x], few, saved=False)
        centred = net.add(f"{name}/sub", x, mean, full)
        square = net.elementwise(f"{name}/square", [centred], full, saved=False)
        variance = net.elementwise(f"{name}/variance", [square], few, saved=False)
        root = net.elementwise(f"{name}/Rsqrt", [variance], few)
        normal = net.product(f"{name}/mul", centred, root, full)
        scaled = net.product(f"{name}/scale", normal, net.trained(f"{name}/gamma", width * FLOAT, 5), full)
        return net.add(f"{name}/bias", scaled, net.trained(f"{name}/beta", width * FLOAT, 5), full)

    def dense(name, x, width_in, width_out, bias):
        flat = net.reshape(f"{name}/Reshape", x)
        y = net.dense(name, flat, rows, width_in, width_out, 5, bias)
        return net.reshape(f"{name}/Reshape_1", y)

    def attention(name, x, memory, bias):
        def split(part, source):
            y = dense(f"{name}/{part}", source, width, width, False)
            return net.elementwise(f"{name}/{part}/transpose", [net.reshape(f"{name}/{part}/split", y)], full, False)

        query, key, value = split("q", x), split("k", memory), split("v", memory)
        query = net.elementwise(f"{name}/q/scale", [query], full, saved=False)
        logits = net.product(f"{name}/logits", query, key, pairs)
        logits = net.elementwise(f"{name}/bias", [logits, bias], pairs, saved=False) if bias is not None else logits
        weights = dropout(f"{name}/dropout", net.elementwise(f"{name}/Softmax", [logits], pairs))
        mixed = net.product(f"{name}/mix", weights, value, full)
        joined = net.reshape(f"{name}/join", net.elementwise(f"{name}/transpose", [mixed], full, saved=False))
        return dense(f"{name}/output", joined, width, width, False)

    def feed_forward(name, x):
        y = dense(f"{name}/filter", x, width, hidden, True)
        y = dropout(f"{name}/relu_dropout", net.elementwise(f"{name}/Relu", [y], rows * hidden * FLOAT))
        return dense(f"{name}/output", y, hidden, width, True)

    def sublayer(name, x, body):
        y = dropout(f"{name}/post_dropout", body(layer_norm(f"{name}/norm", x)))
        return net.add(f"{name}/residual", x, y, full)

    table = net.trained("embedding", vocabulary * width * FLOAT, 5)

    def embed(name):
        ids = net.node(f"{name}/ids", [], rows * FLOAT)
        y = net.node(f"{name}/Gather", [ids, table], full)
        net.tape.append((y, lambda gradient, give: give(table, net.node(f"gradients/{name}/Gather", [gradient, ids], full))))
        y = net.elementwise(f"{name}/scale", [y], full, saved=False)
        return dropout(f"{name}/dropout", net.add(f"{name}/positions", y, net.node(f"{name}/signal", [], full), full))

    x = embed("inputs")
    padding = net.node("inputs/bias", [], batch * length * FLOAT)
    for i in range(layers):
        x = sublayer(f"encoder{i}/self", x, lambda y, n=f"encoder{i}/attention": attention(n, y, y, None))
        x = sublayer(f"encoder{i}/ffn", x, lambda y, n=f"encoder{i}/dense": feed_forward(n, y))
    memory = layer_norm("encoder/norm", x)
    x = embed("targets")
    for i in range(layers):
        x = sublayer(f"decoder{i}/self", x, lambda y, n=f"decoder{i}/attention": attention(n, y, y, None))
        x = sublayer(f"decoder{i}/cross", x, lambda y, n=f"decoder{i}/cross": attention(n, y, memory, None))
        x = sublayer(f"decoder{i}/ffn", x, lambda y, n=f"decoder{i}/dense": feed_forward(n, y))
    x = layer_norm("decoder/norm", x)
    logits = net.product("logits/MatMul", x, table, rows * vocabulary * FLOAT)
    del padding
    scores = net.elementwise("loss/softmax_cross_entropy", [logits], rows * vocabulary * FLOAT)
    net.finish(net.elementwise("loss/mean", [scores], TINY, saved=False))
    return net
