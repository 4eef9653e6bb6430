"""Clusters for all sizes: a graph is traced and planned once, and no cluster is compiled for a second size."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import sympy
import torch.nn.functional as F
from lowtide.frontend.errors import CaptureError
from lowtide.torch.clusters import cluster as clusters
from lowtide.torch.clusters.open_cluster import OpenCluster
from lowtide.torch.compat.versions import before
from lowtide.torch.device.meter import bytes_held, peak_rise
from lowtide.torch.graphs import captured_graph
from lowtide.torch.tracing.symbolic_layouts import Lies, SymbolicLayouts
from torch import nn
from torch._dynamo.source import ConstantSource
from torch._subclasses import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import DimDynamic, ShapeEnv
from torch_run import alone, equal, gradients, needs_compiler, twin
from torch_zoo import Gpt


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


@pytest.fixture
def compiled(monkeypatch):
    """What Inductor compiles: True for each cluster with symbols."""
    monkeypatch.setattr(clusters, "_known", {})
    found, compile_kernels = [], clusters.compile_kernels

    def counting(module, inputs, *rest):
        found.append(any(isinstance(value, torch.SymInt) for value in inputs))
        return compile_kernels(module, inputs, *rest)

    monkeypatch.setattr(clusters, "compile_kernels", counting)
    return found


@pytest.fixture
def traced(monkeypatch):
    """The graphs of which clusters were formed."""
    found, form = [], captured_graph.with_clusters
    monkeypatch.setattr(captured_graph, "with_clusters", lambda ready, **rest: found.append(ready) or form(ready, **rest))
    return found


class Steps:
    """Steps of a twin of a module under a plan for all sizes; plans: how many it took."""

    def __init__(self, module, budget, dynamic=True, **options):
        torch._dynamo.reset()
        self.module, self._before = twin(module), len(lowtide.torch.reports())
        options = {"budget": budget, "inner": "fused", "costs": "cpu", "work": 20_000, "time": None, "fallback": "error"} | options
        self.step = torch.compile(self.module, backend="lowtide", dynamic=dynamic, options=options)

    @property
    def plans(self):
        return len(lowtide.torch.reports()) - self._before

    def results(self, *inputs):
        """Of a step: the loss, gradients and buffers."""
        self.module.zero_grad()
        torch.manual_seed(1)
        loss = self.step(*inputs)
        loss.backward()
        return [loss.detach(), *gradients(self.module), *(t.clone() for t in self.module.buffers())]

    def peak(self, *inputs):
        self.module.zero_grad()
        return bytes_held(self.module, *inputs) + peak_rise(lambda: self.step(*inputs).backward())


def tokens(*shape):
    return torch.randint(128, shape), torch.randint(128, shape)


@needs_compiler
def test_a_transformer_is_traced_planned_and_compiled_once(compiled, traced):
    module, batches = Gpt(d=32, layers=1, length=16, p=0.1), [tokens(*shape) for shape in ((9, 16), (6, 12), (4, 12), (5, 7))]
    roomy = Steps(module, "1GiB")
    expected = [roomy.results(*batches[0])]
    clusters_once = len(compiled)
    assert 0 < clusters_once == len(clusters._known) and any(compiled)
    expected += [roomy.results(*batch) for batch in batches[1:]]
    assert (roomy.plans, len(traced), len(compiled)) == (1, 1, clusters_once)
    budget = int(0.88 * lowtide.torch.reports()[-1].own_peak)
    tight = Steps(module, budget)
    assert equal(sum((tight.results(*batch) for batch in batches), []), sum(expected, []))
    assert lowtide.torch.reports()[-1].again and (tight.plans, len(traced)) == (1, 2)
    assert max(tight.peak(*batch) for batch in batches) <= budget
    assert len({id(cluster) for cluster in clusters._known.values()}) == clusters_once  # of other sizes, and of the other plan


class Images(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)

    def forward(self, x):
        y = self.norm(self.a(x)).relu()
        return F.max_pool2d(y + self.b(y).sigmoid(), 2).square().mean()


@needs_compiler
def test_images_of_other_numbers_and_sizes_need_no_other_kernels(compiled, traced):
    odd = 10 if before(2, 12) else 9  # which that version's trace of pooling tells from even ones
    module, batches = Images(), [torch.randn(n, 3, h, h) for n, h in ((4, 8), (6, 8), (9, 12), (5, odd))]
    roomy = Steps(module, "1GiB")
    expected = roomy.results(batches[0])
    once = len(compiled)
    for batch in batches[1:]:
        expected += roomy.results(batch)
    assert (roomy.plans, len(traced), len(compiled)) == (1, 1, once)
    graph = lowtide.torch.reports()[-1].graph
    read = [operand for op in graph.order if "aten.convolution" in graph.op(op).kind for operand in graph.op(op).operands
            if operand["argument"] in ("input", "grad_output")]
    assert read and all(operand["strides"][1] == 1 for operand in read)  # channels last
    plain, others = twin(module), []
    for batch in batches:
        plain.zero_grad()
        plain(batch).backward()
        others += [*gradients(plain), *(t.clone() for t in plain.buffers())]
    losses = set(range(0, len(expected), len(expected) // len(batches)))
    for got, other in zip((t for i, t in enumerate(expected) if i not in losses), others, strict=True):
        torch.testing.assert_close(got, other, rtol=1e-3, atol=1e-4)
    tight = Steps(module, "90%")
    assert equal(sum((tight.results(batch) for batch in batches), []), expected)
    assert lowtide.torch.reports()[-1].again and len(compiled) == once


class Rows(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        return self.b(F.silu(self.a(x))).square().mean()


@needs_compiler
def test_a_size_for_which_the_code_is_not_right_is_compiled_for_once_more(compiled, traced):
    module, batches = Rows(), [torch.randn(n, 16) for n in (8, 12, 700, 900, 10)]
    steps, counts = Steps(module, "1GiB"), []
    plain = twin(module)
    for batch in batches:
        plain.zero_grad()
        loss = plain(batch)
        loss.backward()
        for got, expected in zip(steps.results(batch), [loss, *gradients(plain)], strict=True):
            torch.testing.assert_close(got, expected)
        counts.append(len(compiled))
    assert counts[0] == counts[1] < counts[2] == counts[3] == counts[4] < 2 * counts[0]  # one sum is laid out otherwise
    assert (steps.plans, len(traced)) == (1, 1)


@needs_compiler
def test_clusters_write_in_place_at_all_sizes(compiled):
    class Gates(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

        def forward(self, x):
            for layer in self.layers:
                x = F.silu(layer(x))
            return x.square().mean()

    module, batches = Gates(), [torch.randn(n, 64) for n in (256, 200, 96)]
    roomy = Steps(module, "1GiB")
    expected = [roomy.results(batch) for batch in batches]
    tight = Steps(module, int(0.7 * lowtide.torch.reports()[-1].own_peak))
    got = [tight.results(batches[0])]
    once, report = len(compiled), lowtide.torch.reports()[-1]
    assert any(key[0] == "compute_in_place" for key in report.plan.steps)
    got += [tight.results(batch) for batch in batches[1:]]
    assert equal(sum(got, []), sum(expected, [])) and tight.plans == 1 and len(compiled) == once
    for batch in batches:
        assert tight.peak(batch) <= report.budget


def test_a_size_that_is_equal_to_others_by_chance(uncompiled, traced):
    module, batches = Rows(), [torch.randn(n, 16) for n in (16, 8, 32)]
    steps, plain = Steps(module, "1GiB", dynamic=None), twin(module)
    for batch in batches:
        torch._dynamo.mark_dynamic(batch, 0)
        plain.zero_grad()
        loss = plain(batch)
        loss.backward()
        for got, expected in zip(steps.results(batch), [loss, *gradients(plain)], strict=True):
            torch.testing.assert_close(got, expected)
    assert (steps.plans, len(traced)) == (1, 1)


class Sizes(nn.Module):
    """Sizes in arithmetic, as arguments of operators, and among the results."""

    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(16, 16), nn.Embedding(64, 16)

    def forward(self, x):
        n = x.shape[0]
        y = self.layer(x).tanh() * (n * 2) / (n + 1) + self.table(torch.arange(n)) + torch.zeros(n, 16)
        y = (y + n).view(n // 2, 2, 16).mean(1)
        return y, n, n // 2, x.new_full((n,), n)


def test_sizes_in_arithmetic_and_among_results(uncompiled, traced):
    module = Sizes()
    steps = Steps(module, "1GiB")
    mine, step = steps.module, steps.step
    for n in (8, 12, 20, 12):
        x = torch.randn(n, 16)
        got, expected = step(x), module(x)
        torch.testing.assert_close(got, expected)
        for of, results in ((mine, got), (module, expected)):
            of.zero_grad()
            results[0].square().sum().backward()
        torch.testing.assert_close(gradients(mine), gradients(module))
    assert len(traced) == 1


def test_forwards_alone(uncompiled, traced):
    module = Rows()
    step = Steps(module, "1GiB").step
    with torch.no_grad():
        for n in (4, 6, 9):
            x = torch.randn(n, 16)
            torch.testing.assert_close(step(x), module(x))
    assert len(traced) == 1 and lowtide.torch.reports()[-1].fused_kernels


class Breaks(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Rows(), Rows()

    def forward(self, x):
        y = x * self.a(x)
        torch._dynamo.graph_break()
        return self.b(y)


def test_several_graphs_share_a_budget_at_all_sizes(uncompiled, traced):
    module = Breaks()
    steps, plain = Steps(module, "1GiB"), twin(module)
    for n in (6, 9, 4, 12):
        x = torch.randn(n, 16)
        plain.zero_grad()
        loss = plain(x)
        loss.backward()
        for got, expected in zip(steps.results(x), [loss, *gradients(plain)], strict=True):
            torch.testing.assert_close(got, expected)
    assert len(traced) <= 4  # two graphs, planned again together


def test_what_lies_otherwise_at_another_size_is_read_as_it_lies(uncompiled):
    module = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 8), nn.Tanh())
    steps = Steps(module, "1GiB")
    mine, step = steps.module, steps.step

    def laid_out(t):
        return t.t().contiguous().t() if t.dim() == 2 else t

    for n in (6, 9):
        x = torch.randn(n, 16)
        for of, call in ((mine, step), (module, module)):
            of.zero_grad()
            with torch.autograd.graph.saved_tensors_hooks(laid_out, lambda t: t):
                call(x).square().sum().backward()
        torch.testing.assert_close(gradients(mine), gradients(module))


def test_equal_layers_are_one_cluster_whatever_their_size(uncompiled):
    class Deep(nn.Module):
        def __init__(self, depth):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(16, 16) for _ in range(depth))

        def forward(self, x):
            for layer in self.layers:
                x = F.silu(layer(x))
            return x.square().mean()

    keys = []
    for depth, n in ((3, 6), (5, 10)):
        Steps(Deep(depth), "1GiB").results(torch.randn(n, 16))
        graph = lowtide.torch.reports()[-1].graph
        keys.append({graph.op(op).arguments["key"] for op in graph.order if graph.op(op).kind == "lowtide.cluster"})
    assert keys[0] == keys[1]


def test_a_size_that_no_tracing_serves_has_a_plan_of_its_own(uncompiled, traced):
    class Pairs(Rows):
        def forward(self, x):
            return super().forward(x if x.shape[0] % 2 else x.view(-1, 2, 16).sum(1))

    module = Pairs()
    steps = Steps(module, "1GiB")
    for n in (6, 8, 7, 9, 10):
        x = torch.randn(n, 16)
        torch.testing.assert_close(steps.results(x)[0], module(x).detach())
    assert len(traced) <= 3


def sine():
    """A cluster of a tensor with rows of a size."""
    graph, n = torch.fx.Graph(), sympy.Symbol("size0", integer=True, positive=True)
    size, x = graph.placeholder("size0"), graph.placeholder("x")
    made = graph.call_function(torch.ops.aten.sin.default, (x,))
    graph.output((made,))
    like = Lies((n, sympy.Integer(4)), (sympy.Integer(4), sympy.Integer(1)), sympy.Integer(0), torch.float32, torch.device("cpu"))
    return OpenCluster("sine", torch.fx.GraphModule({}, graph), [n], {size: n, x: like, made: like}, (3,), True)


def test_tensors_that_do_not_lie_as_they_should_at_that_size_are_computed_op_by_op(monkeypatch):
    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: lambda given: pytest.fail("nothing runs compiled"))
    cluster = sine()
    cluster.compile()
    given = torch.randn(4, 5).t()
    site = clusters.Site(cluster)
    (result,) = site.checked([5, given])
    assert torch.equal(result, given.sin()) and result.stride() == (4, 1)
    assert [t.shape for t in cluster.lies((7,))[0]] == [(7, 4)]


def test_a_cluster_that_cannot_be_compiled_for_another_size_runs_there_op_by_op(monkeypatch):
    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: lambda given: [given[1].sin()])
    cluster = sine()
    cluster.compile()
    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: pytest.fail("it has code for these"))
    x = torch.randn(6, 4)
    assert torch.equal(cluster.run([6, x])[0], x.sin()) and cluster.serves((6,))
    assert not cluster.serves((1,))  # PyTorch's symbols of sizes are 2 at least
    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: 1 / 0)
    assert torch.equal(cluster.run([1, x[:1]])[0], x[:1].sin()) and cluster.code((1,)) is None


def test_layouts_at_other_sizes_follow_what_is_read():
    """In another order of dimensions, and parts of what lies so."""
    env = ShapeEnv()
    n = env.create_symintnode(env.create_symbol(4, ConstantSource("n"), DimDynamic.DYNAMIC, None), hint=4, source=None)
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    part = graph.call_function(torch.ops.aten.slice.Tensor, (x, 1, 0, 2))
    joint = torch.fx.GraphModule({}, graph)
    with FakeTensorMode(shape_env=env):
        x.meta["val"] = torch.empty_strided((n, 3, n), (3 * n, n, 1))
        part.meta["val"] = x.meta["val"][:, :2]
    symbol = n.node.expr
    layouts = SymbolicLayouts(joint, {symbol: x}, {symbol: 4})
    with FakeTensorMode():
        x.meta["val"] = torch.empty_strided((4, 3, 4), (12, 1, 3))
        part.meta["val"] = x.meta["val"][:, :2]
    assert layouts.of(x).strides == (3 * symbol, 1, 3) and layouts.of(x).bytes == 12 * symbol**2
    assert layouts.of(part).shape == (symbol, 2, symbol) and layouts.of(part).strides == (3 * symbol, 1, 3)
    layouts = SymbolicLayouts(joint, {symbol: x}, {symbol: 4})
    with FakeTensorMode():
        x.meta["val"] = torch.empty_strided((4, 3, 4), (0, 1, 7))
    with pytest.raises(CaptureError, match="x: it is not known how it lies at other sizes"):
        layouts.of(x)
