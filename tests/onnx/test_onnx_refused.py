"""Files and options that are refused: one sentence with the place and the remedy."""

import subprocess
import sys

import pytest

onnx = pytest.importorskip("onnx")

import lowtide.onnx
import numpy as np
from onnx import TensorProto, helper
from onnx_models import FLOAT, model_of, node, numbers, saved

import lowtide


def refusal(model, folder, dims=None, **more):
    path = folder / "model.onnx"
    if isinstance(model, bytes):
        path.write_bytes(model)
    else:
        onnx.save(model, path)
    with pytest.raises(lowtide.onnx.ModelError) as raised:
        lowtide.onnx.load(path, dims, **more)
    text = str(raised.value)
    assert "\n" not in text and str(path) in text or more
    return text


RELU = [node("Relu", "x", "y", name="first")]


def test_files_that_are_no_model(tmp_path):
    whole = model_of(RELU, {"x": [4]}, ["y"]).SerializeToString()
    assert "no ONNX model, or is cut off" in refusal(whole[:-20], tmp_path)
    assert "no ONNX model" in refusal(b"", tmp_path)
    assert "no ONNX model" in refusal(b"\x80\x02}q\x00", tmp_path)
    assert "imports no operator set" in refusal(helper.make_model(onnx.GraphProto(), opset_imports=[]), tmp_path)
    assert "has no nodes" in refusal(model_of([], {"x": [4]}, ["x"]), tmp_path)
    with pytest.raises(FileNotFoundError):
        lowtide.onnx.load(tmp_path / "missing.onnx")


def test_more_than_a_protobuf_holds(tmp_path):
    path = tmp_path / "model.onnx"
    with path.open("wb") as file:  # a hole: no bytes are written
        file.truncate(2**31)
    with pytest.raises(lowtide.onnx.ModelError, match="less than 2 GiB: write its weights beside it"):
        lowtide.onnx.load(path)


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_a_file_that_is_cut_anywhere_is_a_model_or_is_refused(cut, tmp_path):
    nodes = [node("MatMul", "x w", "a"), node("Relu", "a", "b"), node("Reshape", "b shape", "y")]
    whole = model_of(nodes, {"x": [4, 8]}, ["y"], [numbers("w", np.ones((8, 2)), FLOAT), numbers("shape", [8])]).SerializeToString()
    path = tmp_path / "model.onnx"
    for text in (whole[:len(whole) * cut // 100], whole[:cut] + bytes([255 - whole[cut]]) + whole[cut + 1:]):
        path.write_bytes(text)
        try:
            lowtide.onnx.load(path)
        except lowtide.Error as error:
            assert "\n" not in str(error)


def test_graphs_that_no_order_can_run(tmp_path):
    ring = [node("Add", "x b", "a", name="first"), node("Neg", "a", "b"), node("Exp", "b", "y")]
    assert "read each other's results in a cycle" in refusal(model_of(ring, {"x": [4]}, ["y"]), tmp_path)
    text = refusal(model_of([node("Add", "x lost", "y", name="sum")], {"x": [4]}, ["y"]), tmp_path)
    assert "node 'sum' (Add) reads 'lost', which is no input of the graph and no node makes" in text
    twice = [node("Exp", "x", "y"), node("Neg", "x", "y")]
    assert "node 1 (Neg, which makes 'y') makes 'y', which node 0" in refusal(model_of(twice, {"x": [4]}, ["y"]), tmp_path)
    assert "its output 'z' is made by no node" in refusal(model_of(RELU, {"x": [4]}, ["y", "z"]), tmp_path)


def test_types_without_a_size(tmp_path):
    assert "'x' holds strings" in refusal(model_of([node("Identity", "x", "y")], {"x": (TensorProto.STRING, [4])}, ["y"]), tmp_path)
    assert "number type 99" in refusal(model_of(RELU, {"x": (99, [4])}, ["y"]), tmp_path)
    sequence = helper.make_model(helper.make_graph(
        [node("SequenceAt", "x i", "y")], "g", [helper.make_tensor_sequence_value_info("x", FLOAT, None)],
        [onnx.ValueInfoProto(name="y")], [numbers("i", 0)]), opset_imports=[helper.make_opsetid("", 17)])
    assert "'x' is a sequence, not a tensor" in refusal(sequence, tmp_path)


def test_open_dimensions_are_named_with_what_to_type(tmp_path):
    text = refusal(model_of(RELU, {"x": ["batch", -1, 4], "m": ["a b"]}, ["y"]), tmp_path)
    assert "inputs 'x', 'm' are open: set them, as in --dim batch=1 --dim x.1=1 --dim 'a b=1'" in text
    assert "--dim x=1x128" in refusal(model_of(RELU, {"x": None}, ["y"]), tmp_path)
    text = refusal(model_of([node("NonZero", "x", "n"), node("Cast", "n", "y", to=FLOAT)], {"x": [4]}, ["y"]), tmp_path)
    assert "'n', which node 0 (NonZero, which makes 'n') makes, has no known extent in dimension 1 of 2: set --dim n.1=N" in text
    text = refusal(model_of([node("Mine", "x", "y", name="own", domain="mine")], {"x": [4]}, ["y"]), tmp_path)
    assert "'y', which node 'own' (Mine) makes, has no number type that can be inferred: add its type and shape" in text
    text = refusal(model_of(RELU, {"x": ["batch"]}, ["y"]), tmp_path, {"batch": 1, "length": 3})
    assert "no dimension 'length' to set: its inputs have batch, and by axis x.0 to x.0" in text
    for wrong in (-1, 1.5, "4", True):
        with pytest.raises(lowtide.onnx.ModelError, match="'batch' is set to"):
            lowtide.onnx.load(tmp_path / "model.onnx", {"batch": wrong})


def test_shapes_that_do_not_fit(tmp_path):
    text = refusal(model_of([node("MatMul", "x w", "y", name="product")], {"x": ["n", "m"]}, ["y"],
                            [numbers("w", np.ones((8, 2)), FLOAT)]), tmp_path, {"n": 1, "m": 7})
    assert "node 'product' (MatMul) does not fit the shapes of what it reads" in text


def test_external_data_has_to_be_there(tmp_path):
    given = model_of([node("MatMul", "x w", "y")], {"x": [2, 64]}, ["y"], [numbers("w", np.ones((64, 64)), FLOAT)])
    path = tmp_path / "model.onnx"
    onnx.save(given, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
    data = tmp_path / "weights.bin"
    data.write_bytes(data.read_bytes()[:-1])
    with pytest.raises(lowtide.onnx.ModelError, match="data of 'w' ends at byte 16384 of .*weights.bin, which has 16383"):
        lowtide.onnx.load(path)
    data.unlink()
    with pytest.raises(lowtide.onnx.ModelError, match="data of 'w' lies in .*weights.bin, which is missing: put that file beside"):
        lowtide.onnx.load(path)
    broken = onnx.load(path, load_external_data=False)
    for location in ("/etc/passwd", "../weights.bin", ""):
        broken.graph.initializer[0].external_data[0].value = location
        assert "must be a path below the model's folder" in refusal(broken, tmp_path)


def test_options(tmp_path):
    path = saved(model_of(RELU, {"x": [4]}, ["y"]), tmp_path / "model.onnx")
    for more, said in (({"runtime": "tensorrt"}, "runtime must be one of generic, onnxruntime"),
                       ({"device": "abacus"}, "device must be one of a10, ")):
        with pytest.raises(lowtide.onnx.ModelError, match=said):
            lowtide.onnx.load(path, **more)
    model = lowtide.onnx.load(path)
    with pytest.raises(lowtide.onnx.BudgetError, match="no plan of it can take less than 32 B"):
        model.plan(20, work=100, time=None)
    with pytest.raises(lowtide.onnx.ModelError, match="techniques recompute and in_place alone, not offload, split;"):
        model.plan("100%", techniques="split,offload,recompute")
    with pytest.raises(ValueError, match="order must be"):
        model.plan(order="any")


@pytest.mark.parametrize(("package", "said"), [
    ("raise ImportError('no module')", "lowtide.onnx needs the package onnx, which cannot be imported (no module): pip install 'onnx>="),
    ("__version__ = '1.2.0'", "lowtide.onnx needs onnx 1.19 or later, not 1.2.0: pip install 'onnx>=")])
def test_a_package_that_is_missing_or_too_old(package, said, tmp_path):
    (tmp_path / "onnx.py").write_text(package)
    done = subprocess.run([sys.executable, "-c", "import lowtide; lowtide.onnx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and f"UnsupportedOnnxError: {said}" in done.stderr
    done = subprocess.run([sys.executable, "-m", "lowtide.onnx", "model.onnx"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and done.stderr.startswith(f"lowtide.onnx: {said}") and done.stderr.count("\n") == 1
