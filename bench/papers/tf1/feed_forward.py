"""Dense layers with ReLU between them, random inputs and targets, mean squared error, gradient descent."""
from .graph import Graph
from .optimizers import descend


def ffn(layers, batch=4096, width=1024):
    graph = Graph(f"FFN of {layers} layers")
    x, target = (graph.normal((batch, width)) for _ in range(2))
    for layer in range(layers + 1):
        kernel = graph.trained(graph.uniform((width, width)))
        bias = graph.trained(graph.filled((width,)))
        x = graph.bias_add(graph.matmul(x, kernel, (batch, width)), bias)
        x = graph.relu(x) if layer < layers else x
    descend(graph, graph.mean(graph.square(graph.sub(x, target))))
    return graph
