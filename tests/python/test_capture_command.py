"""lowtide.torch.capture's command, and the files that captures are written to."""

import gzip
import json
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from capture_support import Mlp, captured, square
from lowtide.torch import CaptureError, capture
from lowtide.torch.__main__ import main
from torch import nn

import lowtide


def test_two_captures_give_the_same_bytes(tmp_path):
    """Also with one that fails in the middle of a module between them."""
    for i in range(2):
        with pytest.raises(CaptureError, match="TypeError"):
            captured(lambda: nn.Sequential(nn.ReLU(), nn.Linear(4, 4)), 2, 4, loss=lambda m, x: m(3))
        capture(lambda: (Mlp(), (torch.empty(32, 8),), square)).save(tmp_path / f"{i}.graph.json.gz")
    first, second = ((tmp_path / f"{i}.graph.json.gz").read_bytes() for i in range(2))
    assert first == second and first[4:8] == bytes(4)
    assert json.loads(gzip.decompress(first))["ops"]


def test_command_line(tmp_path, capsys):
    (tmp_path / "my_models.py").write_text(
        "import torch\n"
        "def net(batch=2):\n"
        "    return torch.nn.Linear(4, 4), (torch.ones(batch, 4),), lambda m, x: m(x).sum()\n"
        "def fixed():\n"
        "    return net(1)\n"
        "thing = 3\n")
    model, out = tmp_path / "my_models.py", tmp_path / "out.graph.json"
    assert main([f"{model}:net", "--batch", "5", "--device", "l4", "-o", str(out)]) == 0
    graph = json.loads(out.read_text())
    assert graph["tensors"][2]["shape"] == [5, 4] and "batch 5" in graph["name"] and "L4" in graph["name"]
    assert "ops" in capsys.readouterr().out
    assert graph["ops"][0]["attributes"]["source"] == "my_models.py:3"
    for model_name, more, message in [
        ("resnet51", [], "neither a built-in example nor"),
        (f"{tmp_path}/none.py:net", [], "there is no file"),
        (f"{model}:thing", [], "has no function thing"),
        (f"{model}:fixed", ["--batch", "3"], "does not take a batch size"),
        ("no_such_module:net", [], "cannot be imported"),
        (f"{model}:net", ["--in-parts"], "in_parts=True is for fused=True"),
    ]:
        assert main([model_name, *more, "-o", str(out)]) == 2
        assert message in capsys.readouterr().err
    assert main([f"{model}:net", "-o", str(tmp_path / "none" / "x.json")]) == 2
    assert main([f"{model}:net", "--optimizer", "adamw", "-o", str(out)]) == 0
    assert lowtide.Graph.load(out).resident_bytes == 2 * 4 * (16 + 4)
    assert main([f"{model}:net", "--optimizer", "shampoo", "-o", str(out)]) == 2
    assert "no rule for the state of optimizer 'shampoo'" in capsys.readouterr().err


def test_fused_graphs_of_the_command_line(tmp_path):
    (tmp_path / "dropped.py").write_text(
        "import torch\n"
        "def net():\n"
        "    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 4))\n"
        "    return model, (torch.ones(8, 4),), lambda m, x: m(x).sum()\n")
    drawn = []
    for more in ([], ["--in-parts"]):
        assert main([f"{tmp_path / 'dropped.py'}:net", "--fused", *more, "-o", str(tmp_path / "out.graph.json")]) == 0
        graph = lowtide.Graph.load(tmp_path / "out.graph.json")
        drawn.append([op.name for op in map(graph.op, graph.order) if op.name.startswith("fused_inductor_random")])
    within, apart = drawn
    assert len(apart) == 1 and apart[0].endswith("_random_gt") and apart[0] not in within


def test_the_command_is_the_package(tmp_path):
    (tmp_path / "net.py").write_text(
        "import torch\n"
        "def net():\n"
        "    return torch.nn.Linear(4, 4), (torch.ones(2, 4),), lambda m, x: m(x).sum()\n")
    out = tmp_path / "net.graph.json.gz"
    done = subprocess.run([sys.executable, "-m", "lowtide.torch", "net:net", "-o", str(out)], cwd=tmp_path,
                          capture_output=True, text=True, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"{out}: {lowtide.Graph.load(out).num_ops} ops, 8 tensors, {out.stat().st_size} bytes\n"
