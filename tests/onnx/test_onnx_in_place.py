"""Which kernels of ONNX Runtime reuse their operand, by the memory of a run: what in_place.py says of the runtime "onnxruntime"."""

import ctypes
import re
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import lowtide.onnx
import numpy as np
import onnxruntime
from onnx_models import FLOAT, model_of, node, numbers, saved

SHAPE = [1, 4, 512, 1024]
MIB = 8  # of a value
_MMAP_THRESHOLD = -3  # of mallopt
STATUS, REFERENCES = Path("/proc/self/status"), Path("/proc/self/clear_refs")
STATISTICS = [numbers(name, [1.0] * 4, FLOAT) for name in "stmv"]
# kind -> further operands, with their constants
KINDS = {
    **dict.fromkeys(["Celu", "Elu", "HardSigmoid", "LeakyRelu", "LogSoftmax", "Relu", "Selu", "Shrink", "Sigmoid", "Softmax", "Softplus",
                     "Softsign", "Tanh", "ThresholdedRelu", "Trilu", "Identity", "Flatten"], ("", [])),
    **dict.fromkeys(["Abs", "Ceil", "Erf", "Exp", "Floor", "Log", "Neg", "Reciprocal", "Round", "Sign", "Sin", "Sqrt", "Hardmax"], ("", [])),
    **dict.fromkeys(["Add", "Mul", "Pow", "Max", "PRelu"], ("k", [numbers("k", [2.0], FLOAT)])),
    "Clip": ("lo hi", [numbers("lo", 0.0, FLOAT), numbers("hi", 6.0, FLOAT)]),
    "ScatterElements": ("at new", [numbers("at", [[[[0]]]]), numbers("new", [[[[1.0]]]], FLOAT)]),
    "BatchNormalization": ("s t m v", STATISTICS),
    "Reshape": ("flat", [numbers("flat", [-1])]), "Squeeze": ("axis", [numbers("axis", [0])]),
    "Unsqueeze": ("axis", [numbers("axis", [0])])}


def resident(which):
    return int(re.search(rf"{which}:\s+(\d+)", STATUS.read_text())[1]) / 1024


def used(path, x):
    """MiB that a run takes, with what it gives back."""
    options = onnxruntime.SessionOptions()
    options.enable_cpu_mem_arena = options.enable_mem_pattern = False
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options)
    session.run(None, {"x": x})
    before = resident("VmRSS")
    REFERENCES.write_text("5")  # forgets the peak
    session.run(None, {"x": x})
    return resident("VmHWM") - before


@pytest.mark.skipif(onnxruntime.__version__.split(".")[:2] != ["1", "32"], reason="what in_place.py says is of ONNX Runtime 1.32")
def test_kernels_that_reuse_their_operand(tmp_path):
    try:
        REFERENCES.write_text("5")
    except OSError:
        pytest.skip("the peak of this process's memory cannot be set back here")
    ctypes.CDLL(None).mallopt(_MMAP_THRESHOLD, 2**20)  # so that what is freed leaves the process at once
    x, wrong = np.ones(SHAPE, np.float32), []
    for kind, (further, constants) in KINDS.items():
        nodes = [node("Neg", "x", "a"), node(kind, f"a {further}", "b"), node("Shape", "b", "y")]
        model = model_of(nodes, {"x": SHAPE}, ["y"], constants)
        path = saved(model, tmp_path / f"{kind}.onnx")
        model.graph.output[0].CopyFrom(onnx.ValueInfoProto(name="b"))
        reuses = used(path, x) < 1.5 * MIB
        # with the result as an output of the graph no view is left out, and with a reader behind it no result
        nodes[2] = node("Neg", "b", "y")
        graph = lowtide.onnx.load(saved(model_of(nodes, {"x": SHAPE}, ["y"], constants), path), runtime="onnxruntime").graph
        says = graph.num_ops == 2 or bool(graph.op(1).in_place)
        if says != reuses:
            wrong.append(f"{kind}: {'reuses' if reuses else 'does not reuse'}")
    assert not wrong


def test_generic_runtimes_may_overwrite_more(tmp_path):
    nodes = [node("Exp", "x", "a"), node("Add", "a b", "c"), node("Add", "c c", "d"), node("Softmax", "d", "e"), node("Mul", "e row", "f"),
             node("MatMul", "f w", "y")]
    constants = [numbers("row", [1.0] * 8, FLOAT), numbers("w", np.ones((8, 8)), FLOAT)]
    path = saved(model_of(nodes, {"x": [8, 8], "b": [8, 8]}, ["y"], constants), tmp_path / "model.onnx")
    pairs = {runtime: [len(op.in_place) for op in lowtide.onnx.load(path, runtime=runtime).graph.ops] for runtime in ("generic", "onnxruntime")}
    assert pairs == {"generic": [0, 1, 0, 1, 1, 0], "onnxruntime": [0, 0, 0, 1, 0, 0]}
