"""lowtide.torch.explain: what each budget costs, in the terminal and on the page."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.errors import size_text
from lowtide.frontend.planning.taken import helps
from torch_run import fresh
from torch_zoo import Gpt

import lowtide


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_explain_says_what_each_budget_costs(capsys, tmp_path):
    module, inputs = fresh(lambda: (Gpt(layers=3, p=0.1), (torch.randint(128, (8, 64)), torch.randint(128, (8, 64)))))
    found = lowtide.torch.explain(module, inputs, costs="flops", points=5, time=1.0, optimizer="adamw")
    text = capsys.readouterr().out
    assert all(word in text for word in ("costs nothing", "at most 1 %", "smallest", "by module", "blocks."))
    default, every = text.split('techniques="all"')
    assert sum(line.startswith("smallest") for line in default.splitlines()) == 1
    assert all(len(line) <= 100 for line in text.splitlines())
    assert found.free.duration == found.curve.graph.duration and found.smallest.peak <= found.half.peak
    assert found.cheap.peak <= found.free.peak <= found.curve.own_peak and found.cheap.overhead <= 0.01
    assert found.half.budget == max(p.budget for p in [*found.curve.points, found.smallest]
                                    if p.plan is not None and 2 * p.budget <= found.curve.own_peak)  # as the page says
    assert f"at {100 * found.half.budget / found.curve.own_peak:.1f} %" in text
    again = sum(count for _, count, _ in found.modules(found.half))
    assert again == len(found.half.plan.sequence) - found.curve.graph.num_ops
    assert sum(share for *_, share in found.modules(found.half)) == pytest.approx(found.half.overhead)
    changed = found.every_technique
    assert changed.free.peak <= found.free.peak and changed.cheap.peak <= found.cheap.peak
    assert (-changed.half.budget, changed.half.duration) <= (-found.half.budget, found.half.duration)
    assert changed.smallest.peak <= found.smallest.peak and changed.modules(changed.smallest)
    transforms = [point.plan.transforms for point in changed.curve.points if point.plan is not None and point.plan.transforms]
    assert all(f"{len(t[-1]['ops'])} ops in {t[-1]['parts']} parts" in every for t in transforms if t[-1]["kind"] == "split")
    found.save_html(tmp_path / "curve.html")
    page = (tmp_path / "curve.html").read_text()
    assert "Gpt training" in page and '"beside":{"techniques"' in page
    with pytest.raises(ValueError, match="beside.*another graph"):
        found.curve.to_html(beside=lowtide.curve(lowtide.generate("chain", ops=6), points=2, work=1))
    state = torch.get_rng_state()
    lowtide.torch.explain(module, inputs, points=2, time=0.2, show=False)
    assert torch.equal(torch.get_rng_state(), state) and capsys.readouterr().out == ""


def test_for_a_gpu_it_says_what_the_allocator_reserves_and_what_would_help(capsys):
    def build():
        return Gpt(layers=4, d=512), (torch.randint(128, (128, 64)), torch.randint(128, (128, 64))), lambda model, *given: model(*given)

    found = lowtide.torch.explain(build, costs="a100", points=3, time=1.0)
    text = capsys.readouterr().out
    assert found.allocator == "" and "PyTorch's allocator reserves, by its model:" in text
    behind = text.split("by its model:")[1].splitlines()
    assert [line.split("  ")[0] for line in behind[1:3]] == ["costs nothing", "at most 1 %"]
    told = found.reserved(found.smallest)
    asked = lowtide.footprint(found.curve.graph, found.smallest.plan)
    assert (told.reserved, list(told.better)) == (asked.reserved, asked.better)
    named = [outcome for outcome in (found.free, found.cheap, found.half, found.smallest) if outcome is not None]
    assert all(f"{size_text(one.reserved):>9}{helps(one)}\n" in text for one in map(found.reserved, named))
    assert all(len(line) <= 100 for line in text.splitlines())
    module, inputs = fresh(lambda: (Gpt(layers=1), (torch.randint(128, (2, 8)), torch.randint(128, (2, 8)))))
    on_cpu = lowtide.torch.explain(module, inputs, costs="flops", points=2, time=0.2, show=False)
    assert on_cpu.allocator is None and on_cpu.reserved(on_cpu.smallest) is None and "reserves" not in str(on_cpu)
