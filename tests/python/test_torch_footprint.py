"""Budgets of the bytes that PyTorch's caching allocator reserves, by its model."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.errors import size_text
from lowtide.torch import settings
from torch import nn
from torch_run import equal, twin

EXPANDABLE = "expandable_segments:True"


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(4) for part in (
            nn.Linear(128, 512), nn.GELU(), nn.Linear(512, 128), nn.LayerNorm(128))))

    def forward(self, x):
        return self.layers(x).square().mean()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def planned(module, x, **options):
    step = lowtide.torch.optimize(module, x, costs="flops", fallback="error", time=None, work=20_000, **options)
    return step, lowtide.torch.reports()[-1]


@pytest.mark.parametrize("allocator", [None, EXPANDABLE])
def test_what_is_reserved_keeps_the_budget_where_it_limits_that(allocator, tmp_path):
    torch.manual_seed(0)
    module, x = Net(), torch.randn(16384, 128)
    plain = twin(module)
    _, live = planned(module, x, budget="60%", allocator=allocator)
    step, report = planned(module, x, budget="60%", footprint="reserved", allocator=allocator)
    assert live.peak <= live.budget == report.budget
    assert report.peak <= report.reserved <= report.budget
    asked = lowtide.footprint(report.graph, report.plan, allocator=allocator or "")
    assert asked.reserved == report.reserved, "the report's figure is that of what runs"
    assert live.reserved is None if allocator is None else live.reserved > live.budget, "else this shows nothing"
    assert "reserved" in str(report)
    assert report.better == asked.better
    report.save_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert f"{'with ' + allocator + ' ' if allocator else ''}reserves " in page and "by its model" in page
    if allocator is None:  # which loses so much between blocks that it is said
        assert live.better == []
        torch._dynamo.reset()
        _, by_default = planned(module, x, budget="60%", allocator="")
        saved = by_default.reserved - dict(by_default.better)[EXPANDABLE]
        assert f"; {EXPANDABLE} saves {size_text(saved)})" in str(by_default)
    losses = [run(x) for run in (step, plain)]
    for loss in losses:
        loss.backward()
    assert equal([losses[0], *(p.grad for p in module.parameters())], [losses[1], *(p.grad for p in plain.parameters())])


def test_a_budget_below_what_any_plan_reserves_says_the_least():
    module, x = Net(), torch.randn(16384, 128)
    with pytest.raises(lowtide.torch.BudgetError) as caught:
        planned(module, x, budget="act:1%")
    smallest = caught.value.smallest  # of live bytes: what is reserved is more
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.BudgetError, match="no plan was found for which the allocator reserves") as caught:
        planned(module, x, budget=smallest, footprint="reserved")
    assert caught.value.smallest > caught.value.budget
    torch._dynamo.reset()
    _, report = planned(module, x, budget=caught.value.smallest, footprint="reserved")
    assert report.reserved <= caught.value.smallest


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"footprint": "arena"}, ValueError, "'live' or 'reserved', not 'arena'"),
    ({"allocator": "expandable_segments:maybe"}, ValueError, "right would be True or False"),
    ({"allocator": 3}, TypeError, "expandable_segments:True"),
    ({"allocator": "backend:cudaMallocAsync", "footprint": "reserved"}, ValueError, "cudaMallocAsync"),
])
def test_wrong_options_are_said_before_anything_is_traced(options, error, words):
    with pytest.raises(error, match=words):
        lowtide.torch.optimize(Net(), torch.randn(4, 128), budget="60%", **options)


def test_on_a_gpu_the_settings_are_those_of_the_process(monkeypatch):
    monkeypatch.setattr(settings, "allocator_settings", lambda: EXPANDABLE)
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    for options, device, expected in (
            ({}, gpu, EXPANDABLE), ({"allocator": "max_split_size_mb:64"}, gpu, "max_split_size_mb:64"), ({}, cpu, None),
            ({"footprint": "reserved"}, cpu, ""), ({"footprint": "reserved"}, gpu, EXPANDABLE)):
        assert settings.Settings("60%", **options).allocator_on(device) == expected
