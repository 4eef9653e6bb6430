"""What the graph of an ONNX model holds."""

import pytest

onnx = pytest.importorskip("onnx")

import lowtide.onnx
import numpy as np
from onnx import TensorProto, helper
from onnx_models import model_of, node, numbers, saved

FLOAT, INT8 = TensorProto.FLOAT, TensorProto.INT8


@pytest.fixture
def load(tmp_path):
    """Writes a model and loads it."""
    def loaded(model, dims=None, **more):
        return lowtide.onnx.load(saved(model, tmp_path / "model.onnx"), dims, **more)

    return loaded


def sizes(model):
    return {t.name: t.bytes for t in model.graph.tensors}


def test_constants_are_folded_and_weights_are_held(load):
    """A weight that ConstantOfShape makes, as in the light models of the package onnx, a shape that is computed, and a default."""
    nodes = [node("ConstantOfShape", "shape", "w"), node("Transpose", "w", "t"), node("MatMul", "x t", "a"), node("Shape", "x", "s"),
             node("Gather", "s zero", "n"), node("Concat", "n rest", "to", axis=0), node("Reshape", "a to", "b"), node("Add", "b one", "y")]
    constants = [numbers("shape", [64, 32]), numbers("zero", [0]), numbers("rest", [-1]), numbers("one", [1.0], FLOAT)]
    model = load(model_of(nodes, {"x": ["batch", 32], "one": [1]}, ["y"], constants), {"batch": 4})
    assert [op.name for op in model.graph.ops] == ["MatMul_2", "Add_7"]
    assert sizes(model) == {"x": 512, "t": 8192, "a": 1024, "one": 4, "y": 1024}
    assert model.weights == 8196 and [t.name for t in model.graph.tensors if t.role == "parameter"] == ["t", "one"]
    assert all(t.stays for t in model.graph.tensors if t.producer is None)


def test_small_constants_are_computed_for_shapes(load):
    nodes = [node("Shape", "x", "s"), node("Slice", "s one two", "n"), node("Mul", "n n", "nn"), node("ConstantOfShape", "nn", "big"),
             node("Add", "x scale", "a"), node("Expand", "a wide", "y"), node("ReduceSum", "big", "r"), node("Add", "r x", "z")]
    constants = [numbers("one", [1]), numbers("two", [2]), numbers("scale", [2.0], FLOAT), numbers("wide", [7, 2, 5])]
    model = load(model_of(nodes, {"x": [2, 5]}, ["y", "z"], constants))
    assert sizes(model)["y"] == 7 * 2 * 5 * 4 and sizes(model)["r"] == 4


def test_views_are_their_operand_unless_an_output_needs_a_copy(load):
    nodes = [node("Exp", "x", "a"), node("Flatten", "a", "b"), node("Identity", "b", "c"), node("Dropout", "c", "d mask"),
             node("Neg", "d", "e"), node("Reshape", "e flat", "y")]
    model = load(model_of(nodes, {"x": [2, 3, 4]}, ["y"], [numbers("flat", [24])]))
    assert [op.kind for op in model.graph.ops] == ["aten.exp", "aten.neg", "onnx.Reshape"]
    assert model.graph.op(2).in_place == [(2, 4)]


def test_number_types_have_their_bits(load):
    kinds = {"BFLOAT16": 2, "FLOAT16": 2, "FLOAT8E4M3FN": 1, "FLOAT8E5M2": 1, "INT8": 1, "DOUBLE": 8, "BOOL": 1, "UINT4": 0.5, "INT4": 0.5}
    nodes = [node("Cast", "x", f"y{i}", to=TensorProto.DataType.Value(kind)) for i, kind in enumerate(kinds)]
    model = load(model_of(nodes, {"x": [3, 3]}, [f"y{i}" for i in range(len(kinds))], opset=21))
    assert [sizes(model)[f"y{i}"] for i in range(len(kinds))] == [int(-(-9 * size // 1)) for size in kinds.values()]
    assert [t.dtype for t in model.graph.tensors[1:]] == ["bf16", "f16", "f8e4m3fn", "f8e5m2", "i8", "f64", "bool", "u4", "i4"]


def test_a_quantized_graph(load):
    nodes = [node("QuantizeLinear", "x scale zero", "q"), node("QLinearConv", "q scale zero w scale zero scale zero", "c", pads=[1] * 4),
             node("QLinearAdd", "c scale zero q scale zero scale zero", "a", domain="com.microsoft"), node("DequantizeLinear", "a scale zero", "y")]
    constants = [numbers("scale", 0.1, FLOAT), numbers("zero", 0, INT8), numbers("w", np.ones((4, 4, 3, 3)), INT8)]
    model = load(model_of(nodes, {"x": [1, 4, 8, 8]}, ["y"], constants))
    assert {name: sizes(model)[name] for name in "xqcay"} == {"x": 1024, "q": 256, "c": 256, "a": 256, "y": 1024}
    assert '"flops":18432' in model.graph.op(1).attributes.replace(" ", "")


def test_operators_of_onnx_runtime(load):
    """Of those whose shapes onnx does not know."""
    own = {"domain": "com.microsoft"}
    nodes = [node("QLinearConcat", "s z q s z q s z", "cat", axis=1, **own), node("QLinearGlobalAveragePool", "cat s z s z", "pool", **own),
             node("QLinearAveragePool", "cat s z s z", "mean", kernel_shape=[2, 2], strides=[2, 2], **own), node("Flatten", "pool", "flat"),
             node("QGemm", "flat s z w s z", "gemm", **own), node("Gelu", "gemm", "gelu", **own), node("FusedConv", "x k", "conv", activation="Relu", **own),
             node("MatMulNBits", "gelu packed scales", "bits", K=6, N=32, bits=4, block_size=32, **own),
             node("DynamicQuantizeMatMul", "bits wide scale1", "dyn", **own), node("FusedMatMul", "x x", "fused", transA=1, **own)]
    constants = [numbers("s", 0.1, FLOAT), numbers("z", 0, INT8), numbers("w", np.ones((8, 6)), INT8), numbers("k", np.ones((5, 4, 3, 3)), FLOAT),
                 numbers("packed", np.ones((32, 1, 16)), TensorProto.UINT8), numbers("scales", np.ones(32), FLOAT),
                 numbers("wide", np.ones((32, 7)), INT8), numbers("scale1", [1.0], FLOAT)]
    model = load(model_of(nodes, {"q": (INT8, [2, 4, 6, 6]), "x": [1, 4, 8, 8]}, ["mean", "conv", "dyn", "fused"], constants))
    found = {t.name: t.shape for t in model.graph.tensors}
    assert {name: found[name] for name in ("cat", "pool", "mean", "gemm", "gelu", "conv", "bits", "dyn", "fused")} == {
        "cat": [2, 8, 6, 6], "pool": [2, 8, 1, 1], "mean": [2, 8, 3, 3], "gemm": [2, 6], "gelu": [2, 6], "conv": [1, 5, 6, 6], "bits": [2, 32],
        "dyn": [2, 7], "fused": [1, 4, 8, 8]}
    assert model.graph.tensor(0).dtype == "i8" and sizes(model)["gemm"] == 48


def test_an_operator_before_onnx_had_it(load):
    """ONNX Runtime's optimizer writes LayerNormalization into models of older operator sets."""
    model = load(model_of([node("LayerNormalization", "x w", "y")], {"x": [2, 8]}, ["y"], [numbers("w", np.ones(8), FLOAT)], opset=12))
    assert sizes(model)["y"] == 64


def test_quantized_weights_are_held_as_they_are_stored(load):
    nodes = [node("DequantizeLinear", "w scale zero", "f"), node("MatMul", "x f", "y")]
    constants = [numbers("scale", 0.1, FLOAT), numbers("zero", 0, INT8), numbers("w", np.ones((16, 16)), INT8)]
    model = load(model_of(nodes, {"x": [4, 16]}, ["y"], constants))
    assert model.weights == 256 and model.graph.tensor(1).dtype == "i8" and model.graph.op(0).kind == "onnx.MatMul"


def test_outputs_may_be_inputs_and_constants(load, tmp_path):
    model = load(model_of([node("Exp", "x", "a"), node("Identity", "x", "y"), node("ConstantOfShape", "n", "c")], {"x": [4]},
                          ["a", "y", "c", "x"], [numbers("n", [6])]))
    assert [model.graph.tensor(t).name for t in model.graph.outputs] == ["a", "y", "c", "x"]
    model.save(tmp_path / "planned.onnx", model.plan(work=100, time=None))
    assert lowtide.onnx.load(tmp_path / "planned.onnx").graph.num_ops == 2


def test_kinds_of_the_table_can_be_split_and_others_plan(load):
    nodes = [node("Conv", "x k bias", "a", pads=[1] * 4), node("Relu", "a", "b"), node("Mine", "b", "c", domain="mine"),
             node("Flatten", "c", "d"), node("Gemm", "d w bias2", "y", transB=1)]
    constants = [numbers("k", np.ones((8, 3, 3, 3)), FLOAT), numbers("bias", np.ones(8), FLOAT), numbers("w", np.ones((10, 512)), FLOAT),
                 numbers("bias2", np.ones(10), FLOAT)]
    given = model_of(nodes, {"x": [4, 3, 8, 8]}, ["y"], constants)
    given.graph.value_info.append(helper.make_tensor_value_info("c", FLOAT, [4, 8, 8, 8]))
    model = load(given)
    assert [op.kind for op in model.graph.ops] == ["aten.convolution", "aten.relu", "onnx.mine.Mine", "aten.addmm"]
    assert [op.recomputable for op in model.graph.ops] == [True, True, False, True]
    reached = model.graph.dimensions([(0, 0)])
    assert reached["ops"][0] and reached["ops"][1] and model.plan(work=100, time=None).plan
    weight = model.graph.op(3).operands[2]
    assert weight["shape"] == [512, 10] and weight["strides"] == [1, 512]


def test_every_op_has_a_price_and_operations(load):
    nodes = [node("MatMul", "x w", "a"), node("Einsum", "a a", "e", equation="bij,bkj->bik"), node("ConvTranspose", "e k", "y")]
    constants = [numbers("w", np.ones((16, 8)), FLOAT), numbers("k", np.ones((4, 2, 3)), FLOAT)]
    model = load(model_of(nodes, {"x": [2, 4, 16]}, ["y"], constants), device="a100")
    counts = [int(op.attributes.partition('"flops":')[2].strip(' }')) for op in model.graph.ops]
    assert counts == [2 * 2 * 4 * 8 * 16, 2 * 2 * 4 * 4 * 8, 2 * 2 * 4 * 4 * 2 * 3]
    assert all(op.time > 0 for op in model.graph.ops)
    assert lowtide.priced_on(model.graph, "h100").duration > 0


def test_random_draws_run_once_and_in_order(load):
    nodes = [node("RandomNormalLike", "x", "a"), node("Add", "x a", "b"), node("RandomNormalLike", "b", "c"), node("Add", "b c", "y")]
    model = load(model_of(nodes, {"x": [4]}, ["y"]))
    assert [op.recomputable for op in model.graph.ops] == [False, True, False, True] and model.graph.op(2).after == [0]


def test_sub_graphs_are_one_op(load):
    """A loop whose body holds two values beside what it carries and a weight; a scan over rows; a condition."""
    def proto(name, kind=FLOAT, extents=None):
        return helper.make_tensor_value_info(name, kind, extents)

    body = helper.make_graph([node("Exp", "h", "e"), node("Mul", "e w", "f"), node("Add", "f x", "g"), node("Identity", "go", "on")], "body",
                             [proto("i", TensorProto.INT64, []), proto("go", TensorProto.BOOL, []), proto("h")], [proto("on", TensorProto.BOOL), proto("g"), proto("f")],
                             [numbers("w", np.ones(8), FLOAT)])
    rows = helper.make_graph([node("Add", "s row", "t"), node("Neg", "t", "u")], "rows", [proto("s"), proto("row")], [proto("t"), proto("u")])
    nodes = [node("Loop", "three yes x", "h2 all", body=body), node("Scan", "zeros all", "sum each", body=rows, num_scan_inputs=1),
             node("Add", "sum h2", "y")]
    constants = [numbers("three", 3), numbers("yes", True, TensorProto.BOOL), numbers("zeros", np.zeros(8), FLOAT)]
    model = load(model_of(nodes, {"x": [8]}, ["y", "each"], constants))
    assert [op.name for op in model.graph.ops] == ["Loop_0", "Scan_1", "Add_2"]
    assert {name: sizes(model)[name] for name in ("h2", "all", "sum", "each")} == {"h2": 32, "all": 96, "sum": 32, "each": 96}
    loop = model.graph.op(0)
    assert loop.workspace == 64 and not loop.recomputable
    assert [model.graph.tensor(t).name for t in loop.inputs] == ["three", "yes", "x", "h2/weights"]


def test_a_branch_that_cannot_run_does_not_count(load):
    """As in silero-vad, whose branches take inputs of different lengths."""
    def proto(name, extents=None):
        return helper.make_tensor_value_info(name, FLOAT, extents)

    long = helper.make_graph([node("Reshape", "x wide", "a")], "long", [], [proto("a")], [numbers("wide", [2, 8])])
    short = helper.make_graph([node("MatMul", "x m", "b")], "short", [], [proto("b")], [numbers("m", np.ones((3, 9)), FLOAT)])
    nodes = [node("ReduceMax", "x", "r", keepdims=0), node("Cast", "r", "c", to=TensorProto.BOOL),
             helper.make_node("If", ["c"], ["y"], then_branch=short, else_branch=long)]
    assert sizes(load(model_of(nodes, {"x": [16]}, ["y"])))["y"] == 64


def test_functions_are_inlined(load):
    made = helper.make_function("mine", "Twice", ["a"], ["b"], [node("Exp", "a", "e"), node("Exp", "e", "b")], [helper.make_opsetid("", 17)])
    model = load(model_of([node("Twice", "x", "y", domain="mine")], {"x": [4]}, ["y"], functions=[made]))
    assert [op.kind for op in model.graph.ops] == ["aten.exp", "aten.exp"]


def test_nodes_in_any_order_are_sorted(load):
    nodes = [node("Add", "a b", "y"), node("Exp", "x", "a"), node("Neg", "a", "b")]
    assert [op.kind for op in load(model_of(nodes, {"x": [4]}, ["y"])).graph.ops] == ["aten.exp", "aten.neg", "aten.add"]


def test_dimensions_by_name_axis_or_shape(load):
    given = model_of([node("Relu", "x", "a"), node("NonZero", "a", "y")], {"x": ["batch", -1, 4]}, ["y"])
    for dims in ({"batch": 2, "x.1": 3, "y.1": 24}, {"x": (2, 3, 4), "y": (3, 24)}):
        assert sizes(load(given, dims)) == {"x": 96, "a": 96, "y": 24 * 3 * 8}


def test_inputs_that_may_be_freed(load):
    given = model_of([node("Relu", "x", "a"), node("Tile", "a three", "y")], {"x": [64]}, ["y"], [numbers("three", [3])])
    assert load(given).graph.op(0).in_place == []
    model = load(given, free_inputs=True)
    assert model.graph.op(0).in_place == [(0, 1)] and model.graph.tensor(0).releasable
    assert model.plan(work=100, time=None).peak == 8 + 256 + 768


def test_a_training_graph_is_taken_as_it_is(load):
    """Gradients of com.microsoft, of which onnx knows nothing but what the model says."""
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("ReluGrad", "dy b", "da", domain="com.microsoft"),
             node("Transpose", "x", "xt"), node("MatMul", "xt da", "dw"), node("Mine", "dw", "update", domain="com.microsoft")]
    given = model_of(nodes, {"x": [8, 16], "dy": [8, 4]}, ["update"], [numbers("w", np.ones((16, 4)), FLOAT)])
    given.graph.value_info.append(helper.make_tensor_value_info("update", FLOAT, [16, 4]))
    model = load(given)
    assert model.graph.num_ops == 6 and sizes(model)["dw"] == 256 and sizes(model)["update"] == 256
