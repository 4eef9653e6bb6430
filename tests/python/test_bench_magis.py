"""bench/papers/magis: its workloads are the paper's, its chains POFO's, and its answers keep what they promise."""

import csv
import runpy
import sys

import pytest
from package_support import BINARY, ROOT

torch = pytest.importorskip("torch")

MAGIS = ROOT / "bench" / "papers" / "magis"
sys.path.append(str(MAGIS))

import chain
import workloads
from pofo import Pofo


@pytest.mark.parametrize("name", workloads.PAPER)
def test_builders_are_as_the_paper_has_them(name):
    work = workloads.PAPER[name]
    with torch.device("meta"):
        model, inputs, _ = work.build(3)
    assert all(parameter.dim() > 1 for parameter in model.parameters()), "a bias, or a norm with weights"
    assert not any(isinstance(m, (torch.nn.Embedding, torch.nn.Dropout)) for m in model.modules())
    assert [len(x) for x in inputs] == [3, 3]
    # about the published sizes, in millions of weights: U-Net raises by a 3 x 3 convolution instead of a 2 x 2 one
    published = {"resnet50": 23.5, "bert": 85, "vit": 85.5, "unet": 31, "unetpp": 36, "gptneo": 1208, "btlm": 2517}
    assert sum(p.numel() for p in model.parameters()) / 1e6 == pytest.approx(published[name], rel=0.15)


def three_layers(skip=False):
    """f1 makes an inner tensor, too, which its backward reads: t0 (input) -> t1, t2 -> t3 -> t4, and back."""
    size = [7, 10, 20, 30, 40, 1, 2, 3]
    ops = [([0], [1, 2], 5, "forward"), ([1], [3], 6, "forward"), ([3] + [1] * skip, [4], 7, "forward"),
           ([4, 3], [5], 11, "backward"), ([5, 3, 1], [6], 12, "backward"), ([6, 2, 1], [7], 13, "backward")]
    return {"tensors": [{"bytes": b} for b in size], "outputs": [7],
            "ops": [{"inputs": i, "outputs": o, "time": t, "phase": p} for i, o, t, p in ops]}


def test_a_chain_has_the_layers_of_its_graph():
    of, beside = chain.chain(three_layers(), 10)
    assert beside == 7
    assert of.size == [0, 10, 30, 40]
    assert of.kept == [0, 30, 30, 40]  # the first layer keeps its inner tensor
    assert of.need_forward == [0, 30, 30, 40]
    assert sum(of.forward) == 18 and sum(of.backward) == 36
    assert Pofo(of, 1000, 1, 1000).duration() == of.total()
    # 112 bytes are in use at most; with fewer, something is computed again or waited for
    assert Pofo(of, 95, 1e-6, 95).duration() > of.total()
    assert Pofo(of, 60, 1, 60).duration() == float("inf")


def test_skip_connections_make_one_layer_of_what_they_span():
    of, _ = chain.chain(three_layers(skip=True), 10)
    assert of.size == [0, 10, 40]


def test_long_chains_are_cut_into_as_many_layers_as_are_allowed():
    of, _ = chain.chain(three_layers(), 2)
    assert of.layers <= 2 and of.total() == 54


def test_the_command_keeps_what_it_promises(tmp_path, monkeypatch):
    out = tmp_path / "magis"
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    monkeypatch.setattr(sys, "argv", [
        "run.py", "--only", "tiny-resnet", "--costs", "waves", "--systems", "xla", "pofo", "auto", "--ablation", "--work", "20000",
        "--threads", "1", "--lowtide", BINARY, "-o", str(out)])
    runpy.run_path(str(MAGIS / "run.py"), run_name="__main__")
    with open(f"{out}.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == (3 + 7) * 6
    found = 0
    for row in rows:
        own = int(row["own_peak"])
        if not row["overhead_percent"]:
            assert row["question"].startswith("time") and not row["peak"]
            continue
        found += 1
        if row["question"].startswith("memory"):
            assert float(row["overhead_percent"]) <= int(row["question"].split("+")[1].split()[0]) + 1e-3
            assert float(row["ratio"]) <= 1 and (row["system"] == "pofo" or row["floor_ratio"] <= row["ratio"])
        else:
            assert int(row["peak"]) <= own * int(row["question"].split()[2]) // 100
            assert not row["bound_percent"] or float(row["bound_percent"]) <= float(row["overhead_percent"]) + 1e-3
    assert found > 30
    text = out.with_suffix(".md").read_text()
    assert "| auto: all |" in text and "| POFO |" in text and "auto without split" in text
    assert "(figures 13 to 15)" in text and "(figure 16)" in text
