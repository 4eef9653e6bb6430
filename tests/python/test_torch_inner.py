"""inner="auto": eager kernels on a CPU, what is faster as measured on a GPU; the report says which and why."""

import shutil

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.graphs import captured_graph, inner, planning
from lowtide.torch.settings import Settings
from torch import nn
from torch_run import alone, equal, fresh, train, twin

needs_compiler = pytest.mark.skipif(not shutil.which("g++"), reason="Inductor needs a C++ compiler on a CPU")


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """The choice is made as on a GPU, of kernels that are measured here; gives the comparisons."""
    monkeypatch.setattr(captured_graph, "device_among", lambda _: torch.device("cuda"))
    compared = []
    monkeypatch.setattr(planning, "compare", lambda *graphs: compared.append(graphs) or inner.compare(*graphs))
    return compared


class Pointwise(nn.Module):
    """Steps that take their time in ops that become one kernel."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(32, 32)

    def forward(self, x):
        x = self.layer(x)
        for _ in range(12):
            x = (x * 1.5 + 0.5).relu()
        return x.square().mean()


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Pointwise(), Pointwise()

    def forward(self, x):
        y = x * self.a(x)
        torch._dynamo.graph_break()
        return self.b(y)


class Products(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(256, 256, bias=False) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x.sum()


def pointwise():
    return Pointwise(), (torch.randn(32768, 32),)


def planned(module, inputs, budget="1GiB", **options):
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget=budget, fallback="error", **options)
    return mine, step, lowtide.torch.reports()[-1]


def test_a_cpu_runs_the_kernels_of_eager_execution_and_says_what_others_could_shorten():
    module, inputs = fresh(pointwise)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, report = planned(module, inputs)
    assert report.inner.startswith("eager kernels (inner='auto': bit-identical to eager execution, and nothing to compile; ")
    share = int(report.inner.split("; ")[1].split(" %")[0])
    assert share > 50 and report.exactness.as_eager
    assert equal(train(mine, inputs, step), expected)
    assert planned(module, inputs, inner="eager")[2].inner == "eager kernels (inner='eager')"


@needs_compiler
def test_fused_kernels_run_where_they_are_faster(as_on_a_gpu):
    module, inputs = fresh(pointwise)
    mine, step, report = planned(module, inputs)
    assert report.inner.startswith("fused kernels (inner='auto': fused ones take ") and report.inner.endswith(" less time than eager ones, as measured)")
    assert len(as_on_a_gpu) == 1 and report.fused_kernels and not report.exactness.as_eager
    other, named, _ = planned(module, inputs, inner="fused")
    assert equal(train(mine, inputs, step), train(other, inputs, named))


def test_eager_kernels_run_where_fused_ones_save_nothing(as_on_a_gpu):
    module, inputs = fresh(lambda: (Products(), (torch.randn(256, 256),)))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, report = planned(module, inputs)
    assert report.inner.startswith("eager kernels (inner='auto': fused ones take ") and " than eager ones, as measured" in report.inner
    assert len(as_on_a_gpu) == 1 and not report.fused_kernels
    assert equal(train(mine, inputs, step), expected)


def test_a_graph_is_compared_once_when_it_is_planned_with_others(as_on_a_gpu, monkeypatch):
    monkeypatch.setattr(planning, "compare", lambda *graphs: as_on_a_gpu.append(graphs) or "compared")
    monkeypatch.setattr("lowtide.torch.clusters.cluster.compile_kernels", lambda *_: None)
    module, inputs = fresh(lambda: (Breaks(), (torch.randn(64, 32),)))
    planned(module, inputs)
    found = [report for report in lowtide.torch.reports() if "compared" in report.inner]
    assert len(as_on_a_gpu) == len(found) > 1


def test_a_forward_alone_is_compared_too(as_on_a_gpu):
    module, inputs = fresh(lambda: (Products(), (torch.randn(256, 256),)))
    with torch.no_grad():
        _, step, report = planned(module, inputs)
        assert torch.equal(step(*inputs), module(*inputs))
    assert len(as_on_a_gpu) == 1 and "as measured" in report.inner


def test_no_clusters_are_no_reason_to_warn_where_nobody_asked_for_them(as_on_a_gpu, monkeypatch):
    def fails(*_):
        raise RuntimeError("a pass of Inductor")

    monkeypatch.setattr("lowtide.torch.clusters.rewrite.prepared", fails)
    module, inputs = fresh(pointwise)
    _, step, report = planned(module, inputs)
    assert "no clusters of its ops could be formed: RuntimeError: a pass of Inductor" in report.inner
    assert torch.equal(step(*inputs), module(*inputs))


@pytest.mark.parametrize("options, words", [
    ({"costs": "a100"}, "costs='a100' measure no kernels"),
    ({"techniques": "default,split,hoist"}, "techniques name hoist, split"),
    ({"layout": "exact"}, "layout='exact' knows no temporaries"),
])
def test_what_the_caller_says_may_leave_nothing_to_compare(options, words):
    gpu = torch.device("cuda")
    choice = inner.first_choice(Settings(1, **options), gpu, False)
    assert not choice.fused and words in choice.why
    assert inner.first_choice(Settings(1), gpu, False) == inner.Choice(True)
    assert "all sizes" in inner.first_choice(Settings(1), gpu, True).why
    torch.use_deterministic_algorithms(True)
    try:
        assert "bits of eager execution" in inner.first_choice(Settings(1), gpu, False).why
    finally:
        torch.use_deterministic_algorithms(False)
