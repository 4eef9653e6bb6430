"""`python -m lowtide.onnx`, and the page that shows it."""

import json
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

import lowtide.onnx
from lowtide.onnx.__main__ import main
from onnx_models import FLOAT, model_of, node, numbers, saved

import lowtide

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
from blocks import ROOT, blocks

PAGE = ROOT / "docs/how-to/plan-an-onnx-model.md"
LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nodes = [node("Tile", "x eight", "large"), node("Exp", "x", "a"), node("Tile", "a eight", "b"), node("ReduceSum", "b axis", "c"),
             node("ReduceSum", "large axis", "d"), node("MatMul", "c w", "e"), node("Add", "e d", "y")]
    constants = [numbers("eight", [1, 8]), numbers("axis", [1]), numbers("w", [[1.0]], FLOAT)]
    return str(saved(model_of(nodes, {"x": ["batch", 64]}, ["y"], constants), tmp_path / "model.onnx"))


def test_a_table(path, capsys):
    assert main([path, "--dim", "batch=2", "--work", "5000"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("model.onnx: 7 ops, weights 28 B; without these:") and "  proven smallest\n" in shown
    for line in ("as given", "in place", "order", "order, in place", "recomputed", "lowtide", "greedy, by size"):
        assert f"\n{line} " in shown
    assert main([path, "--dim", "batch=2", "--work", "5000", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [row["what"] for row in told["peaks"]] == ["as given", "in place", "order", "order, in place", "recomputed"]
    assert told["peaks"][0]["peak"] > told["peaks"][3]["peak"] == told["arena"]["live_peak"] <= told["arena"]["bytes"]


def test_all_files(path, capsys):
    Path("names.txt").write_text("x\nlarge\nno such value\n")
    assert main([path, "--dim", "batch=2", "--budget", "100%", "--work", "5000", "-o", "planned.onnx", "--graph", "g.graph.json.gz",
                 "--plan", "p.plan.json", "--arena", "a.json", "--tflite-micro", "o.bin", "--tensors", "names.txt",
                 "--executorch", "e.json"]) == 0
    assert capsys.readouterr().out.startswith("model.onnx: peak ")
    graph, plan = lowtide.Graph.load("g.graph.json.gz"), lowtide.Plan.load("p.plan.json")
    assert lowtide.verify(graph, plan).peak <= graph.own_peak
    assert lowtide.onnx.load("planned.onnx", {"batch": 2}).graph.num_ops == 7
    assert len(Path("o.bin").read_bytes()) == 24 and Path("o.bin").read_bytes()[-4:] == b"\xff" * 4
    assert "large" in json.loads(Path("e.json").read_text())["allocation_info"]
    assert {place["value"] for place in json.loads(Path("a.json").read_text())["places"]} >= {"x", "large", "y"}


@pytest.mark.parametrize(("options", "code", "said"), [
    (["--dim", "batch=2", "--budget", "100"], 1, "no plan keeps this step within 100 B"),
    ([], 2, "the extents of the input 'x' are open: set them, as in --dim batch=1"),
    (["--dim", "batch=2", "--time", "-1"], 2, "time must be a number of seconds, 0 or more, not -1.0"),
    (["--dim", "batch"], 2, "--dim batch: that must be NAME=N"),
    (["--dim", "batch=2", "--budget", "0.5"], 2, "budget"),
    (["--dim", "batch=2", "--work", "100", "-o", "nowhere/planned.onnx"], 2, "nowhere/planned.onnx")])
def test_what_is_said_of_wrong_ones(options, code, said, path, capsys):
    assert main([path, *options]) == code
    shown = capsys.readouterr().err
    assert shown.startswith("lowtide.onnx: ") and said in shown and "Traceback" not in shown


def test_options_that_do_not_exist(path, capsys):
    for wrong in (["--runtime", "tensorrt"], ["--tensors", "names.txt"], ["--device", "abacus"]):
        with pytest.raises(SystemExit):
            main([path, *wrong])
    assert "--tensors needs --tflite-micro" in capsys.readouterr().err


def test_the_page(tmp_path, monkeypatch, capsys):
    """docs/how-to/plan-an-onnx-model.md, top to bottom, with less work."""
    monkeypatch.chdir(tmp_path)
    ran = 0
    for language, block in re.findall(r"^```(sh|python)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE):
        if language == "python":
            exec(compile(block, str(PAGE), "exec"), {"print": lambda *words: None})
            ran += 1
            continue
        for line in block.replace("\\\n", " ").splitlines():
            words = shlex.split(line)
            if words[0] == "cp":
                shutil.copy(LIGHT / Path(words[1]).name, tmp_path)
            elif words[:3] == ["build/venv/bin/python", "-m", "lowtide.onnx"]:
                assert main([*words[3:], *([] if "--time" in words else ["--work", "3000"])]) == 0, capsys.readouterr().err
                ran += 1
    assert ran >= 5 and blocks(PAGE, "sh")
