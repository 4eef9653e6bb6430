"""The JSON Schemas of both formats against the documented examples, real graphs and wrong documents."""

import copy
import gzip
import json
import re
import sys
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
REFERENCE = ROOT / "docs" / "reference"
sys.path.insert(0, str(HERE))
import verify as oracle


def schema(name):
    document = json.loads((REFERENCE / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


DEVICES = schema("device")
SCHEMAS = {"lowtide-graph": schema("graph"), "lowtide-plan": schema("plan")}
BLOCKS = re.findall(r"```json\n(.*?)```", (REFERENCE / "formats.md").read_text(), re.DOTALL)
GRAPH, PLAN, SPLIT = (json.loads(block) for block in BLOCKS)
EXAMPLES = sorted((ROOT / "examples").glob("*.graph.json*"))


def changed(document, path, *value):
    """A copy of the document with the value at `path` replaced, or removed if there is none."""
    result = copy.deepcopy(document)
    *way, last = path
    place = result
    for key in way:
        place = place[key]
    if value:
        place[last] = value[0]
    else:
        del place[last]
    return result


def test_documented_example_holds():
    SCHEMAS["lowtide-graph"].validate(GRAPH)
    SCHEMAS["lowtide-plan"].validate(PLAN)
    result = oracle.verify(GRAPH, PLAN)
    assert result.ok, result


def test_transforms():
    plan = PLAN | {"transform_hash": PLAN["graph_hash"], "transforms": [SPLIT, {"kind": "hoist", "tangent": 4}]}
    SCHEMAS["lowtide-plan"].validate(plan)
    for path, value in [
        (["transform_hash"], []),
        (["transforms", 0, "kind"], ["fuse"]),
        (["transforms", 0, "ops"], [[]]),
        (["transforms", 0, "ops"], [[0, 0]]),
        (["transforms", 0, "parts"], [1]),
        (["transforms", 0, "axes"], [[]]),
        (["transforms", 0, "axes", 0, "dim"], []),
        (["transforms", 0, "prices"], []),
        (["transforms", 0, "prices", 0], [[0, 420]]),
        (["transforms", 0, "joins", 0, 1], [-1]),
        (["transforms", 0, "exact"], [1]),
        (["transforms", 1, "tangent"], []),
    ]:
        assert not SCHEMAS["lowtide-plan"].is_valid(changed(plan, path, *value)), (path, value)
    apart = changed(plan, ["transforms", 0, "prices"], [SPLIT["prices"]] * 2)
    SCHEMAS["lowtide-plan"].validate(apart)


def test_documented_device_holds():
    blocks = map(json.loads, re.findall(r"```json\n(.*?)```", (REFERENCE / "devices.md").read_text(), re.DOTALL))
    (device,) = [block for block in blocks if block["format"] == "lowtide-device"]
    DEVICES.validate(device)
    for path, value in [
        (["operations_per_second", "f32"], [0]),
        (["operations_per_second", "fp16"], [1]),
        (["operations_per_second", "f32"], []),
        (["bytes_per_second"], [-1]),
        (["bytes_per_second"], []),
        (["memory_bytes"], [1.5]),
        (["bandwidth"], [1]),
        (["host_link", "latency_ns"], []),
        (["host_link", "speed"], [1]),
    ]:
        assert not DEVICES.is_valid(changed(device, path, *value)), (path, value)


def test_documented_hash():
    small = {
        "format": "lowtide-graph",
        "version": 1,
        "tensors": [{"bytes": 8}, {"bytes": 4}],
        "ops": [{"inputs": [0], "outputs": [1], "time": 5}],
        "outputs": [1],
    }
    SCHEMAS["lowtide-graph"].validate(small)
    assert oracle.Graph(small).hash() in (REFERENCE / "formats.md").read_text()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_real_graphs(path):
    document = oracle.read(path)
    SCHEMAS["lowtide-graph"].validate(document)
    oracle.Graph(document)


@pytest.mark.parametrize(
    "path, value",
    [
        (["remark"], "unknown keys only warn"),
        (["tensors", 0, "remark"], 1.5),
        (["ops", 0, "remark"], None),
        (["ops", 0, "outputs"], []),
        (["ops", 0, "inputs"], [0, 0]),
        (["ops", 0, "mutates"], [0]),
        (["tensors", 0, "bytes"], 2**63 - 1),
        (["tensors", 0, "shape"], []),
        (["ops", 0, "attributes"], {"scale": 0.5}),
        (["outputs"], []),
    ],
)
def test_right_graphs(path, value):
    SCHEMAS["lowtide-graph"].validate(changed(GRAPH, path, value))


@pytest.mark.parametrize(
    "path, value",
    [
        (["remark"], "unknown keys only warn"),
        (["budget"], None),
        (["order"], "given"),
        (["steps"], []),
        (["claims"], {"status": "unknown", "duration": None, "peak": None, "bound": None}),
        (["claims"], {}),
        (["found_by"], {"history": [[1.5, 123]]}),
    ],
)
def test_right_plans(path, value):
    SCHEMAS["lowtide-plan"].validate(changed(PLAN, path, value))


def test_minimal_plan_needs_no_machine():
    minimal = {key: PLAN[key] for key in ("format", "version", "graph_hash")}
    SCHEMAS["lowtide-plan"].validate(minimal | {"steps": [["compute", 0], ["free", 0]]})


@pytest.mark.parametrize(
    "path, value",
    [
        (["format"], ["lowtide-plan"]),
        (["version"], [2]),
        (["version"], ["1"]),
        (["version"], [True]),
        (["format"], []),
        (["tensors"], []),
        (["ops"], []),
        (["outputs"], []),
        (["name"], [7]),
        (["tick"], ["s"]),
        (["resident_bytes"], [-1]),
        (["resident_bytes"], [None]),
        (["tensors", 0, "bytes"], []),
        (["tensors", 0, "bytes"], [1.5]),
        (["tensors", 0, "bytes"], ["100"]),
        (["tensors", 0, "bytes"], [2**63]),
        (["tensors", 0, "bytes"], [True]),
        (["tensors", 0, "role"], ["output"]),
        (["tensors", 0, "releasable"], [1]),
        (["tensors", 0, "shape"], [[-1]]),
        (["tensors", 0], [100]),
        (["ops", 0, "time"], []),
        (["ops", 0, "time"], [-1]),
        (["ops", 0, "workspace"], [0.5]),
        (["ops", 0, "inputs"], []),
        (["ops", 0, "inputs"], [0]),
        (["ops", 0, "inputs"], [["batch"]]),
        (["ops", 0, "outputs"], [[1, 1]]),
        (["ops", 0, "recomputable"], ["no"]),
        (["ops", 0, "after"], [[-1]]),
        (["ops", 0, "mutates"], [0]),
        (["ops", 0, "kind"], [None]),
        (["ops", 0, "attributes"], [[]]),
        (["outputs"], [5]),
        (["order"], [[0, 0, 1, 2, 3]]),
    ],
)
def test_wrong_graphs(path, value):
    assert not SCHEMAS["lowtide-graph"].is_valid(changed(GRAPH, path, *value))


@pytest.mark.parametrize(
    "path, value",
    [
        (["format"], ["lowtide-graph"]),
        (["version"], [0]),
        (["version"], []),
        (["graph_hash"], []),
        (["graph_hash"], ["sha256:" + "0" * 63]),
        (["graph_hash"], ["0" * 64]),
        (["graph_hash"], ["sha256:" + "A" * 64]),
        (["graph_name"], [None]),
        (["budget"], [-1]),
        (["budget"], ["60%"]),
        (["budget"], [2**63]),
        (["order"], ["any"]),
        (["order"], [None]),
        (["steps"], []),
        (["steps"], [None]),
        (["steps", 0], [["copy", 0]]),
        (["steps", 0], [["compute"]]),
        (["steps", 0], [["compute", 0, 1]]),
        (["steps", 0], [["compute", -1]]),
        (["steps", 0], [["compute", "embed"]]),
        (["steps", 0], [[0, "compute"]]),
        (["steps", 0], [{"compute": 0}]),
        (["steps", 0], ["compute 0"]),
        (["machine"], []),
        (["machine", "host_to_device"], []),
        (["machine", "device_to_host", "latency"], []),
        (["machine", "device_to_host", "bytes"], [0]),
        (["machine", "device_to_host", "ticks"], [0.5]),
        (["transforms"], [[{}]]),
        (["transforms"], [["split"]]),
        (["transforms"], [[{"kind": "split", "exact": "yes"}]]),
        (["transforms"], [[{"kind": "split", "parts": 0}]]),
        (["claims"], [[]]),
        (["claims", "status"], ["proven"]),
        (["claims", "duration"], [-1]),
        (["claims", "peak"], [714.5]),
        (["claims", "bound"], ["105"]),
        (["found_by"], ["auto"]),
    ],
)
def test_wrong_plans(path, value):
    assert not SCHEMAS["lowtide-plan"].is_valid(changed(PLAN, path, *value))


def test_compressed_documents_read_the_same(tmp_path):
    path = tmp_path / "graph"
    path.write_bytes(gzip.compress(BLOCKS[0].encode()))
    assert oracle.read(path) == GRAPH
