"""Small ONNX models, and runs of them by ONNX Runtime."""

import random

import numpy as np
import onnx
from onnx import TensorProto, helper

FLOAT = TensorProto.FLOAT


def model_of(nodes, inputs, outputs, constants=(), opset=17, **more):
    """inputs: name -> extents, or (number type, extents).  outputs: names."""
    def declared(name, given):
        kind, extents = given if isinstance(given, tuple) else (FLOAT, given)
        return helper.make_tensor_value_info(name, kind, extents)

    graph = helper.make_graph(nodes, "g", [declared(*one) for one in inputs.items()],
                              [onnx.ValueInfoProto(name=name) for name in outputs], list(constants))
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1), helper.make_opsetid("mine", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8, **more)


def node(kind, inputs, outputs, **attributes):
    """Names are words of a text."""
    return helper.make_node(kind, inputs.split(), outputs.split(), **attributes)


def numbers(name, values, kind=TensorProto.INT64):
    array = np.asarray(values, helper.tensor_dtype_to_np_dtype(kind))
    return onnx.numpy_helper.from_array(array, name)


def saved(model, path):
    """Written with the types of its outputs, which ONNX Runtime asks for."""
    outputs = [output for output in model.graph.output if not output.type.WhichOneof("value")]
    if outputs:
        known = {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.value_info}
        known |= {value.name: value for value in onnx.shape_inference.infer_shapes(model).graph.output if value.type.WhichOneof("value")}
        for output in outputs:
            if output.name in known:
                output.CopyFrom(known[output.name])
    onnx.save(model, str(path))
    return path


def run(path, feeds, optimized=False):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(str(path), options).run(None, feeds)


def random_model(seed, count=24):
    """All values are [batch, 4, 8] or come back to it; shapes are computed in the graph here and there."""
    draw = random.Random(seed)
    values, nodes = ["x"], []
    constants = [numbers("w", np.linspace(-1, 1, 64).reshape(8, 8), FLOAT), numbers("k", np.linspace(-1, 1, 48).reshape(4, 4, 3), FLOAT),
                 numbers("halves", [4, 4]), numbers("two", [2], FLOAT)]

    def add(kind, inputs, outputs, **attributes):
        name = f"n{len(nodes)}" if draw.random() < 0.7 else ""
        nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))

    def some():
        return draw.choice(values[-7:])

    for i in range(count):
        a, b, made = some(), some(), f"v{i}"
        form = draw.randrange(10)
        if form == 0:
            add(draw.choice(["Add", "Mul", "Sub", "Max"]), [a, b], [made])
        elif form == 1:
            add(draw.choice(["Relu", "Sigmoid", "Exp", "Softmax", "Identity", "Dropout"]), [a], [made])
        elif form == 2:
            add("MatMul", [a, "w"], [made])
        elif form == 3:
            add("Conv", [a, "k"], [made], pads=[1, 1])
        elif form == 4:  # to another shape and back, by a shape that the graph computes
            add("Shape", [a], [f"{made}_shape"])
            add("Flatten", [a], [f"{made}_flat"], axis=1)
            add("Neg", [f"{made}_flat"], [f"{made}_neg"])
            add("Reshape", [f"{made}_neg", f"{made}_shape"], [made])
        elif form == 5:
            add("Split", [a, "halves"], [f"{made}_a", f"{made}_b"], axis=2)
            add("Concat", [f"{made}_b", f"{made}_a"], [made], axis=2)
        elif form == 6:
            add("Transpose", [a], [f"{made}_t"], perm=[0, 2, 1])
            add("Tanh", [f"{made}_t"], [f"{made}_u"])
            add("Transpose", [f"{made}_u"], [made], perm=[0, 2, 1])
        elif form == 7:  # the branches read values around them
            add("ReduceMax", [a], [f"{made}_m"], keepdims=0)
            add("Greater", [f"{made}_m", "zero"], [f"{made}_c"])
            then = helper.make_graph([helper.make_node("Add", [a, b], [f"{made}_s"])], "then", [], [_of(f"{made}_s")])
            other = helper.make_graph([helper.make_node("Neg", [b], [f"{made}_d"])], "other", [], [_of(f"{made}_d")])
            add("If", [f"{made}_c"], [made], then_branch=then, else_branch=other)
        elif form == 8:
            add("Unsqueeze", [a, "axis"], [f"{made}_q"])
            add("Mul", [f"{made}_q", "two"], [f"{made}_r"])
            add("Squeeze", [f"{made}_r", "axis"], [made])
        else:
            add("Clip", [a, "", "one"], [made])
        values.append(made)
    constants += [numbers("zero", 0.0, FLOAT), numbers("one", 1.0, FLOAT), numbers("axis", [1])]
    outputs = list(dict.fromkeys([values[-1], some(), some()]))
    return model_of(nodes, {"x": ["batch", 4, 8]}, outputs, constants)


def _of(name):
    return helper.make_tensor_value_info(name, FLOAT, None)
