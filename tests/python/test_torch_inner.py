"""inner="auto": eager kernels on a CPU, what is faster as measured on a GPU; the report says which and why."""

import warnings
from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.clusters import cluster as clusters
from lowtide.torch.graphs import captured_graph, inner, planning
from lowtide.torch.settings import Settings
from torch import nn
from torch._inductor import config
from torch_run import alone, equal, fresh, needs_compiler, train, twin


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """The choice is made as on a GPU, where fused kernels take half of the time; gives the comparisons."""
    monkeypatch.setattr(captured_graph, "device_among", lambda _: torch.device("cuda"))
    compared = []
    monkeypatch.setattr(planning, "compare", lambda *graphs: compared.append(graphs) or inner.compare(times(10), times(5)))
    return compared


@pytest.fixture
def no_compiler(monkeypatch):
    """Inductor finds no compiler for the CPU."""
    monkeypatch.setattr(clusters, "_known", {})
    monkeypatch.setattr(clusters, "_said", False)
    with config.patch({"cpp.cxx": ("nonexistent",)}):
        yield


def times(duration):
    return SimpleNamespace(duration=duration)


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


class Perceptron(nn.Module):
    """Its wide values may be made and read in parts."""

    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 512), nn.Linear(512, 32)

    def forward(self, x):
        return self.down(nn.functional.gelu(nn.functional.dropout(self.up(x), 0.1))).square().mean()


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Pointwise(), Pointwise()

    def forward(self, x):
        y = x * self.a(x)
        torch._dynamo.graph_break()
        return self.b(y)


def kinds(graph):
    return [graph.op(op).kind for op in graph.order]


def pointwise():
    return Pointwise(), (torch.randn(4096, 32),)


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
    assert 0 < share <= 100 and report.exactness.as_eager
    assert equal(train(mine, inputs, step), expected)
    assert planned(module, inputs, inner="eager")[2].inner == "eager kernels (inner='eager')"


@needs_compiler
def test_fused_kernels_run_where_they_are_faster(as_on_a_gpu):
    module, inputs = fresh(pointwise)
    mine, step, report = planned(module, inputs)
    assert report.inner == "fused kernels (inner='auto': fused ones take 50 % less time than eager ones, as measured)"
    ((eager, fused),) = as_on_a_gpu
    assert "aten.relu" in kinds(eager) and "lowtide.cluster" in kinds(fused)
    assert report.fused_kernels and not report.exactness.as_eager
    other, named, _ = planned(module, inputs, inner="fused")
    assert equal(train(mine, inputs, step), train(other, inputs, named))


def test_eager_kernels_run_where_fused_ones_save_little(as_on_a_gpu, uncompiled, monkeypatch):
    monkeypatch.setattr(planning, "compare", lambda *_: inner.compare(times(100), times(98)))
    module, inputs = fresh(pointwise)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, report = planned(module, inputs)
    assert report.inner.startswith("eager kernels (inner='auto': fused ones take 2 % less time than eager ones, as measured; ")
    assert not report.fused_kernels and equal(train(mine, inputs, step), expected)
    with pytest.raises(inner.EagerIsFast, match="20 % more time"):
        inner.compare(times(100), times(120))


def test_steps_that_may_run_in_parts_are_compared_too(as_on_a_gpu, uncompiled):
    module, inputs = fresh(lambda: (Perceptron(), (torch.randn(512, 32),)))
    techniques = ["recompute", "in_place", "split", "hoist", "substitute"]
    whole, step, _ = planned(module, inputs, techniques=techniques, time=None, work=20_000)
    expected = train(whole, inputs, step)
    mine, step, report = planned(module, inputs, "50%", techniques=techniques, time=None, work=20_000)
    assert report.inner.startswith("fused kernels (inner='auto': ") and len(as_on_a_gpu) == 2
    assert report.transforms and report.peak <= report.budget
    for a, b in zip(train(mine, inputs, step), expected, strict=True):
        torch.testing.assert_close(a, b)


def test_eager_kernels_run_where_no_plan_over_fused_ones_keeps_the_budget(as_on_a_gpu, uncompiled):
    module, inputs = fresh(pointwise)  # whose backward reads the result of each relu, all of them made by one cluster
    search = {"time": None, "work": 20_000}
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, report = planned(module, inputs, "4MiB", **search)
    assert report.inner.startswith("eager kernels (inner='auto': no plan over fused kernels keeps the budget; ")
    assert len(as_on_a_gpu) == 1 and report.peak <= 4 << 20
    assert equal(train(mine, inputs, step), expected)
    with pytest.raises(lowtide.torch.BudgetError, match="no plan keeps this step") as refused:
        planned(module, inputs, "1MiB", **search)
    assert refused.value.smallest < 5 << 20  # of eager kernels
    with pytest.raises(lowtide.torch.BudgetError, match="no plan keeps this step") as refused:
        planned(module, inputs, "4MiB", inner="fused", **search)
    assert refused.value.smallest > 5 << 20


def test_a_graph_is_compared_once_when_it_is_planned_with_others(as_on_a_gpu, uncompiled):
    module, inputs = fresh(lambda: (Breaks(), (torch.randn(64, 32),)))
    before = len(lowtide.torch.reports())
    planned(module, inputs)
    found = [report.inner for report in lowtide.torch.reports()[before:]]
    assert len(as_on_a_gpu) == len(found) > 1 and all("as measured" in words for words in found)


def test_a_forward_alone_is_compared_too(as_on_a_gpu, uncompiled):
    module, inputs = fresh(pointwise)
    with torch.no_grad():
        _, step, report = planned(module, inputs)
        torch.testing.assert_close(step(*inputs), module(*inputs))
    assert len(as_on_a_gpu) == 1 and "as measured" in report.inner


def test_no_clusters_are_no_reason_to_warn_where_nobody_asked_for_them(as_on_a_gpu, monkeypatch):
    def fails(*_):
        raise RuntimeError("a pass of Inductor")

    monkeypatch.setattr("lowtide.torch.clusters.rewrite.prepared", fails)
    module, inputs = fresh(pointwise)
    _, step, report = planned(module, inputs)
    assert "no clusters of its ops could be formed: RuntimeError: a pass of Inductor" in report.inner
    assert torch.equal(step(*inputs), module(*inputs))


def test_eager_kernels_run_where_no_cluster_can_be_compiled(no_compiler):
    module, inputs = fresh(pointwise)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    with pytest.warns(lowtide.torch.LowtideWarning, match="runs on eager kernels, since Inductor can compile no cluster of its ops: .*nonexistent") as said:
        mine, step, report = planned(module, inputs, "4MiB", inner="fused", time=None, work=20_000)  # which no plan over clusters keeps
    assert len([w for w in said if w.category is lowtide.torch.LowtideWarning]) == 1  # and what PyTorch says of itself as Inductor is imported
    assert report.inner.startswith("eager kernels (inner='fused': Inductor can compile no cluster of its ops: ")
    assert report.exactness.as_eager and not report.fused_kernels and report.peak <= 4 << 20
    assert equal(train(mine, inputs, step), expected)


def test_the_graphs_of_a_model_say_once_that_no_cluster_can_be_compiled(no_compiler):
    module, inputs = fresh(lambda: (Breaks(), (torch.randn(64, 32),)))
    before = len(lowtide.torch.reports())
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", lowtide.torch.LowtideWarning)
        mine, step, _ = planned(module, inputs, inner="fused")
        step(*inputs).backward()
    found = [report.inner for report in lowtide.torch.reports()[before:]]
    assert len(found) > 1 and all("can compile no cluster" in words for words in found)
    assert len([w for w in said if "eager kernels" in str(w.message)]) == 1


def test_open_sizes_stay_open_where_no_cluster_can_be_compiled(no_compiler):
    module = Pointwise()
    torch._dynamo.reset()
    options = {"budget": "1GiB", "fallback": "error", "inner": "fused"}
    before, step = len(lowtide.torch.reports()), torch.compile(module, backend="lowtide", dynamic=True, options=options)
    with pytest.warns(lowtide.torch.LowtideWarning, match="can compile no cluster"):
        step(torch.randn(64, 32)).backward()
    for n in (96, 48):
        x = torch.randn(n, 32)
        assert torch.equal(step(x), module(x))
    (report,) = lowtide.torch.reports()[before:]
    assert "can compile no cluster" in report.inner


def test_whole_steps_run_on_eager_kernels_where_no_cluster_can_be_compiled(no_compiler):
    module, inputs = fresh(pointwise)
    torch._dynamo.reset()
    with pytest.warns(lowtide.torch.LowtideWarning, match="can compile no cluster"):
        step = lowtide.torch.step(module, torch.optim.SGD(module.parameters(), 0.1), inputs, budget="4MiB", inner="fused", time=None, work=20_000)
        step(*inputs)
    assert "can compile no cluster" in lowtide.torch.reports()[-1].inner


def test_a_compiler_is_needed_for_graphs_of_clusters_with_times_of_this_machine_alone(no_compiler):
    module, inputs = fresh(pointwise)
    assert "lowtide.cluster" in kinds(lowtide.torch.capture(module, inputs, fused=True))
    with pytest.raises(lowtide.torch.CaptureError, match="can compile no cluster of its ops: .*; fused=False"):
        lowtide.torch.capture(module, inputs, fused=True, costs="measured")
    with pytest.raises(lowtide.torch.CaptureError, match="can compile no cluster of its ops: .*; fused=False"):
        lowtide.torch.explain(module, inputs, fused=True)


def test_no_compiler_is_no_reason_to_warn_where_nobody_asked_for_clusters(as_on_a_gpu, no_compiler):
    module, inputs = fresh(pointwise)
    _, step, report = planned(module, inputs)
    assert report.inner.startswith("eager kernels (inner='auto': Inductor can compile no cluster of its ops: ")
    assert torch.equal(step(*inputs), module(*inputs)) and not as_on_a_gpu


@pytest.mark.parametrize("techniques", [["recompute", "in_place"], ["recompute", "in_place", "split", "hoist"]])
@pytest.mark.parametrize("kernels", ["eager", "fused"])
def test_the_smallest_budget_that_a_refusal_names_is_kept(kernels, techniques, uncompiled):
    module, inputs = fresh(lambda: (Perceptron(), (torch.randn(512, 32),)))
    options = {"inner": kernels, "techniques": techniques, "costs": "cpu", "time": None, "work": 5000}
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(module, inputs, 1, **options)
    assert planned(module, inputs, refused.value.smallest, **options)[2].peak <= refused.value.smallest


@pytest.mark.parametrize("options, words", [
    ({"costs": "a100"}, "costs='a100' measure no kernels"),
    ({"layout": "exact"}, "layout='exact' knows no temporaries"),
])
def test_what_the_caller_says_may_leave_nothing_to_compare(options, words, monkeypatch):
    gpu = torch.device("cuda")
    choice = inner.first_choice(Settings(1, **options), gpu)
    assert not choice.fused and words in choice.why
    assert inner.first_choice(Settings(1), gpu) == inner.Choice(True)
    with monkeypatch.context() as patch:
        patch.setattr(inner, "ranks", lambda: 2)
        assert "several ranks" in inner.first_choice(Settings(1), gpu).why
    torch.use_deterministic_algorithms(True)
    try:
        assert "bits of eager execution" in inner.first_choice(Settings(1), gpu).why
    finally:
        torch.use_deterministic_algorithms(False)


def test_open_sizes_are_compared_once(as_on_a_gpu, uncompiled):
    module = Pointwise()
    torch._dynamo.reset()
    before, step = len(lowtide.torch.reports()), torch.compile(module, backend="lowtide", dynamic=True, options={"budget": "1GiB", "fallback": "error"})
    for n in (64, 96, 48):
        x = torch.randn(n, 32)
        step(x).backward()
        torch.testing.assert_close(step(x), module(x))
    (report,) = lowtide.torch.reports()[before:]
    ((eager, fused),) = as_on_a_gpu
    assert "aten.relu" in kinds(eager) and "lowtide.cluster" in kinds(fused) and "as measured" in report.inner


def test_eager_kernels_with_open_sizes_where_fused_ones_save_little(as_on_a_gpu, uncompiled, monkeypatch):
    monkeypatch.setattr(planning, "compare", lambda *_: inner.compare(times(100), times(98)))
    module = Pointwise()
    torch._dynamo.reset()
    before, step = len(lowtide.torch.reports()), torch.compile(module, backend="lowtide", dynamic=True, options={"budget": "1GiB", "fallback": "error"})
    for n in (64, 96, 48):
        x = torch.randn(n, 32)
        assert torch.equal(step(x), module(x))
    (report,) = lowtide.torch.reports()[before:]
    assert "fused ones take 2 % less time" in report.inner and not report.fused_kernels
