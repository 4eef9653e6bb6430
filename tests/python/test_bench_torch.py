"""bench/torch: what it measures can be true, and its page says where Lowtide loses."""

import contextlib
import sys

import pytest
from package_support import ROOT

torch = pytest.importorskip("torch")
pytest.importorskip("matplotlib")

sys.path.append(str(ROOT / "bench" / "torch"))

import lowtide.torch
import measure
import models
import report


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


@pytest.mark.parametrize("name", ["gpt6-dropout", "resnet"])
def test_operations_are_counted_as_the_plan_counts_them(name):
    torch.manual_seed(0)
    module, inputs = models.MODELS["cpu"][name].build()

    def step(how):
        return measure.Step(module, inputs, how, contextlib.nullcontext)

    def planned(share):
        return lambda m: lowtide.torch.optimize(m, inputs, budget=share, costs="flops", work=100_000, time=None)

    plain, ours = step(lambda m: m), step(planned("80%"))
    found = lowtide.torch.reports()[-1]
    assert measure.difference(ours.results, plain.results) == ("", 0.0)
    assert plain.operations() == found.own_duration
    assert ours.operations() == found.duration
    assert ours.peak() < plain.peak()


def test_a_checkpoint_a_layer_saves_memory_and_costs_operations():
    torch.manual_seed(0)
    module, inputs = models.MODELS["cpu"]["mixer"].build()
    plain = measure.Step(module, inputs, lambda m: m, contextlib.nullcontext)

    def layers(m):
        m.checkpointed = True
        return m

    other = measure.Step(module, inputs, layers, contextlib.nullcontext)
    assert other.peak() < plain.peak() and other.operations() > plain.operations()
    times = measure.take_turns({"plain": plain, "other": other}, 0, 2)
    assert len(times.of["other"]) == 2 and times.ratio("plain", "plain") == 1


def row(method, setting, beside="", **cells):
    return dict.fromkeys(report.COLUMNS, "") | {"model": "m", "method": method, "setting": setting, "beside": beside,
                                                "equal": "yes", "operations": "0", "time": "0"} | cells


def test_the_page_says_where_it_loses(tmp_path):
    rows = [row("no plan", "", peak=100), row("checkpoint", "a layer", peak=50, operations="20", time="20"),
            row("lowtide", "given", "checkpoint a layer", peak=49, budget=50, operations="25", time="10"),
            row("lowtide", "free", "checkpoint a layer", peak=52, budget=50, operations="5", time="30"),
            row("lowtide", "timed", "checkpoint a layer", budget=50, status="no plan", equal="", operations="", time="")]
    assert report.losses(rows) == [
        ("operations", 5, "given at the peak of checkpoint a layer, +25.0 % against +20.0 %"),
        ("time", 10, "free at the peak of checkpoint a layer, +30.0 % against +20.0 %"),
        ("bytes", 2, "free at the peak of checkpoint a layer, 4.0 % over"),
        ("no plan", 0, "timed at the peak of checkpoint a layer")]
    report.write(rows, tmp_path / "page", {"m": "Model: small"}, "command` on a machine", "2000-01-01", "backend")
    assert "time, 1 row; worst: free" in (tmp_path / "page.md").read_text() and (tmp_path / "page.png").stat().st_size > 5000
