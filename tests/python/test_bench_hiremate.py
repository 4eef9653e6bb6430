"""bench/papers/hiremate: its models are the paper's, they run under a budget, and its command keeps what it promises."""

import csv
import runpy
import sys

import pytest
from package_support import BINARY, ROOT

torch = pytest.importorskip("torch")

HIREMATE = ROOT / "bench" / "papers" / "hiremate"
sys.path.append(str(HIREMATE))

import table4
from ask import activations, published
from executed import executed

import lowtide


def test_models_have_about_the_published_sizes():
    # in millions of weights; of complex ones the real and the imaginary part
    sizes = {"unet": 7.76, "regnet32": 107.8, "resnet101": 44.5, "transformer6": 44.1, "gpt24": 209,
             "fno3d": 2 * 4 * 4 * 64**2 * 16**3 / 1e6, "ufno": 2 * 6 * 4 * 36**2 * 10**3 / 1e6 + 2.8}
    assert list(table4.MODELS) == [row["model"] for row in published("table4")]
    for name, model in table4.MODELS.items():
        if name in sizes:
            with torch.device("meta"):
                module, _ = model.full()
            weights = sum(p.numel() * (1 + p.is_complex()) for p in module.parameters())
            assert weights / 1e6 == pytest.approx(sizes[name], rel=0.03), name


@pytest.mark.parametrize("name", ["fno1d", "transformer6"])
def test_they_train_within_a_budget(name, monkeypatch):
    """The others, the same way, are in the benchmark's part `executed`."""
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    made = executed(table4.MODELS[name], "act:60%", work=30_000)
    assert made["equal"]
    assert made["peak"] <= made["budget"] < made["eager_peak"]


def test_gradients_of_parameters_may_count_nothing():
    graph = table4.capture(table4.Model("small", table4.MODELS["fno1d"].small, None))
    bare = lowtide.Graph.from_dict(activations(graph.to_dict()))
    weights = sum(t.bytes for t in graph.tensors if t.role == "parameter")
    assert bare.num_ops == graph.num_ops and bare.input_bytes == graph.input_bytes
    assert graph.own_peak - weights <= bare.own_peak <= graph.own_peak
    assert lowtide.plan(bare, "act:60%", work=1000).peak < bare.own_peak


def test_the_command_keeps_what_it_promises(tmp_path, monkeypatch):
    out = tmp_path / "hiremate"
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    monkeypatch.setattr(sys, "argv", [
        "run.py", "--parts", "4a", "4b", "4c", "--only", "fno1d", "--systems", "auto", "--work", "5000", "--threads", "1",
        "--lowtide", BINARY, "-o", str(out)])
    runpy.run_path(str(HIREMATE / "run.py"), run_name="__main__")
    with open(f"{out}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["part"], row["memory"]) for row in rows] == [("4b", ""), ("4c", "activations"), ("4c", "with gradients")]
    assert all(float(row["bound_percent"]) <= float(row["overhead_percent"]) for row in rows[1:])
    text = out.with_suffix(".md").read_text()
    assert "| fno1d | activations | 53.1 % | 14.70 | 150 |" in text


@pytest.mark.parametrize("arguments, words", [
    (["--parts", "4b", "5"], "5: no such part"),
    (["--parts", "4b", "--data", "nowhere"], "no folder hiremate"),
    (["--parts", "4b", "--lowtide", "nowhere"], "no such command"),
])
def test_the_command_says_what_is_wrong_before_it_begins(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["run.py", "--only", "fno1d", "--lowtide", BINARY, "-o", str(tmp_path / "out"), *arguments])
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(HIREMATE / "run.py"), run_name="__main__")
    assert ended.value.code == 2 and words in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
