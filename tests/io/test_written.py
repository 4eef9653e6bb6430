"""The files that the command writes: they follow the schemas, and the second verifier agrees with them."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

jsonschema = pytest.importorskip("jsonschema")

ROOT = Path(__file__).parents[2]
BINARY = os.environ.get("LOWTIDE_BIN", ROOT / "build/release/lowtide")
sys.path.insert(0, str(ROOT / "tests" / "oracles"))
import verify as oracle

GRAPHS = sorted((ROOT / "tests/fuzz/seeds").glob("*.graph.json")) + sorted((ROOT / "examples").glob("*.graph.json.gz"))


def run(*arguments):
    done = subprocess.run([BINARY, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stdout


def check(name, path):
    data = path.read_bytes()
    document = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    schema = json.loads((ROOT / "docs/reference" / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    return document


@pytest.mark.parametrize("source", GRAPHS, ids=lambda path: path.name.split(".")[0])
def test_written_files(source, tmp_path):
    graph, packed, plan = tmp_path / "g.graph.json", tmp_path / "g.graph.json.gz", tmp_path / "g.plan.json"
    run("convert", source, graph)
    run("convert", source, packed)
    document = check("graph", graph)
    assert check("graph", packed) == document
    hosted = any(tensor.get("home") == "host" for tensor in document["tensors"])
    run("plan", graph, "--budget", "100%", "--solver", "given", "-o", plan, *(["--link", "1GB/s"] if hosted else []))
    result = oracle.verify(document, check("plan", plan))
    assert result.ok, result
    run("verify", graph, plan)
    # What is read and written again is the same to the byte.
    again = tmp_path / "again.graph.json"
    run("convert", packed, again)
    assert again.read_bytes() == graph.read_bytes()
