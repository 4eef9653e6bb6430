"""Plans over clusters: each is one op that Inductor compiled, and a planned step has the bits of the step without a plan."""

import json
import subprocess
import sys
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.frontend.errors import LowtideWarning
from lowtide.torch.clusters import cluster as clusters
from lowtide.torch.clusters import overwriting, prepare, writers
from lowtide.torch.compat import cpp_kernels, inductor
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.graphs import planning
from torch import nn
from torch._inductor.async_compile import AsyncCompile
from torch_run import alone, deterministic, equal, fresh, needs_compiler, train, twin
from torch_zoo import Cnn, DropoutMlp

import lowtide


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


def planned(module, inputs, budget, **options):
    """A twin of the module under a plan, and its report."""
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget=budget, inner="fused", costs="cpu", fallback="error", **options)
    return mine, step, lowtide.torch.reports()[-1]


def kinds(graph):
    return [graph.op(op).kind for op in graph.order]


def attributes_of(op):
    return json.loads(op.attributes)


def clusters_of(graph):
    return [graph.op(op) for op in graph.order if graph.op(op).kind == "lowtide.cluster"]


@needs_compiler
def test_a_plan_over_clusters_keeps_bits_and_budget(tmp_path):
    module, inputs = fresh(lambda: (DropoutMlp(), (torch.randn(256, 256),)))
    whole = twin(module)
    expected = train(whole, inputs, torch.compile(whole))
    roomy, step, _ = planned(module, inputs, "1GiB")
    unplanned = train(roomy, inputs, step)
    assert equal(unplanned, expected)  # Inductor draws the same masks, and fuses the same here
    tight, step, report = planned(module, inputs, "85%")
    assert equal(train(tight, inputs, step), unplanned)
    assert report.again and report.peak <= report.budget
    assert report.exactness.equal and not report.exactness.as_eager and "identical to the same fused kernels" in str(report)
    kernels = report.fused_kernels
    assert report.inner.startswith("fused") and f"; {len(kernels)} fused kernels, bit-identical" in str(report)
    assert all(kernel.ops and kernel.borders and kernel.phase in ("forward", "backward") for kernel in kernels)
    assert sum(kernel.runs - 1 for kernel in kernels) <= sum(names.total() for names in report.again.values())
    assert any(kernel.like > 1 for kernel in kernels)
    report.save_html(tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert f"{len(kernels)} fused kernels" in page and kernels[0].name in page and page.rstrip().endswith("</html>")
    assert page.index("<main") < page.index(f"{len(kernels)} fused kernels") < page.index("<footer") and page.count("<main") == 1
    tight.zero_grad()
    assert peak_rise(lambda: step(*inputs).backward()) <= report.peak - report.inputs


@needs_compiler
def test_saved_tensors_that_a_hook_has_laid_out_otherwise_are_read_as_they_lie():
    module, inputs = fresh(lambda: (nn.Sequential(nn.Linear(256, 64), nn.Tanh(), nn.Linear(64, 32), nn.Tanh()), (torch.randn(64, 256),)))
    mine, step, _ = planned(module, inputs, "1GiB")

    def gradients():
        mine.zero_grad()
        step(*inputs).square().mean().backward()
        return [p.grad.clone() for p in mine.parameters()]

    gradients()
    expected = gradients()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.t().contiguous().t() if t.dim() == 2 else t, lambda t: t):
        for got, other in zip(gradients(), expected, strict=True):
            torch.testing.assert_close(got, other)
    assert equal(gradients(), expected)


class Sized(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x, factor=1.0):
        return (self.b(nn.functional.gelu(self.a(x))) * factor).square().mean()


def test_sizes_numbers_and_forwards_alone(uncompiled):
    module = Sized()
    step = lowtide.torch.optimize(module, budget="1GiB", inner="fused", fallback="error", costs="cpu")
    for n, factor in ((4, 1.0), (5, 1.0), (6, 1.0), (6, 2.5), (6, 3.5)):
        x = torch.randn(n, 16)
        step(x, factor).backward()
        torch.testing.assert_close(step(x, factor), module(x, factor))
    with torch.no_grad():
        torch.testing.assert_close(step(x), module(x))
    assert "erf" in lowtide.torch.reports()[-1].fused_kernels[0].ops


class Gates(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.silu(layer(x))
        return x.square().mean()


@needs_compiler
def test_clusters_write_over_inputs_that_die():
    module, inputs = fresh(lambda: (Gates(), (torch.randn(256, 64),)))
    roomy, step, unplanned = planned(module, inputs, "1GiB")
    expected = train(roomy, inputs, step)
    tight, step, report = planned(module, inputs, int(unplanned.own_peak * 0.7))
    over = [key[1] for key in report.plan.steps if key[0] == "compute_in_place"]
    assert over and all(report.graph.op(op).kind == "lowtide.cluster" for op in over)
    assert equal(train(tight, inputs, step), expected)
    tight.zero_grad()
    rise = peak_rise(lambda: step(*inputs).backward())
    assert report.peak - report.inputs - 64 <= rise <= report.peak - report.inputs  # to the byte, but for the autograd engine's scalars
    tight.zero_grad()
    warnings.filterwarnings("ignore", "lowtide: the budget is not kept", lowtide.torch.OverBudgetWarning)  # by what is retained
    loss = step(*inputs)
    loss.backward(retain_graph=True)  # which reads what is saved again
    first = [p.grad.clone() for p in tight.parameters()]
    tight.zero_grad()
    loss.backward()
    assert equal(first, [p.grad for p in tight.parameters()])


@needs_compiler
def test_kernels_are_compiled_in_one_source_with_the_bits_of_each_by_itself(monkeypatch):
    sources, begun, single, bind = [], cpp_kernels._begun, [], AsyncCompile.cpp_pybinding
    monkeypatch.setattr(cpp_kernels, "_begun", lambda kernels, submit: sources.append(kernels) or begun(kernels, submit))
    monkeypatch.setattr(AsyncCompile, "cpp_pybinding", lambda *rest: single.append(rest) or bind(*rest))
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))

    def trained():
        monkeypatch.setattr(clusters, "_known", {})
        monkeypatch.setattr(cpp_kernels, "_loaded", {})
        made, step, _ = planned(module, inputs, "1GiB")
        return train(made, inputs, step)

    together = trained()
    assert len(set(kernel.name for kernels in sources for kernel in kernels)) >= 4 * (len(sources) - 1) + 2 and not single
    monkeypatch.setattr(cpp_kernels.CppKernel, "function", None)  # as where their source is refused
    assert equal(trained(), together) and single


@needs_compiler
def test_an_interrupt_while_kernels_are_compiled_leaves_no_code_without_them(monkeypatch):
    load = inductor.load_together

    def interrupted(_):
        monkeypatch.setattr(inductor, "load_together", load)
        raise KeyboardInterrupt

    monkeypatch.setattr(inductor, "load_together", interrupted)
    monkeypatch.setattr(clusters, "_known", {})
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))
    with pytest.raises(KeyboardInterrupt):
        planned(module, inputs, "1GiB")
    mine, step, report = planned(module, inputs, "1GiB")
    assert report.fused_kernels
    for got, expected in zip(train(mine, inputs, step), train(module, inputs, module), strict=True):
        torch.testing.assert_close(got, expected)


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

    def forward(self, x):
        for layer, bend in zip(self.layers, (F.silu, F.gelu, F.mish, F.softsign, F.hardswish, F.tanh), strict=True):
            x = bend(layer(x))
        return x.square().mean()


@needs_compiler
def test_only_clusters_that_have_to_write_in_place_are_compiled_to_do_so(monkeypatch):
    tried, make = [], overwriting._twin
    monkeypatch.setattr(overwriting, "_twin", lambda cluster, *rest: tried.append(cluster) or make(cluster, *rest))
    module, inputs = fresh(lambda: (Several(), (torch.randn(256, 64),)))
    roomy, step, unplanned = planned(module, inputs, "1GiB")
    expected = train(roomy, inputs, step)
    tight, step, report = planned(module, inputs, int(unplanned.own_peak * 0.7))
    over = {report.graph.op(key[1]).arguments["key"] for key in report.plan.steps if key[0] == "compute_in_place"}
    could = [c for c in map(clusters.known_cluster, {op.arguments["key"] for op in clusters_of(report.graph)})
             if overwriting._candidates(c, ())]
    assert {c.key for c in tried} == over and 0 < len(over) < len(could)
    assert equal(train(tight, inputs, step), expected)


@needs_compiler
def test_what_an_interrupt_has_left_uncompiled_may_write_in_place_later(monkeypatch):
    compiled = overwriting._compiled

    def interrupted(_):
        monkeypatch.setattr(overwriting, "_compiled", compiled)
        raise KeyboardInterrupt

    monkeypatch.setattr(overwriting, "_compiled", interrupted)
    monkeypatch.setattr(clusters, "_known", {})
    module, inputs = fresh(lambda: (Several(), (torch.randn(256, 64),)))
    budget = int(planned(module, inputs, "1GiB")[2].own_peak * 0.7)
    with pytest.raises(KeyboardInterrupt):
        planned(module, inputs, budget)
    _, _, report = planned(module, inputs, budget)
    assert any(step[0] == "compute_in_place" for step in report.plan.steps)


@needs_compiler
def test_a_step_whose_clusters_write_nowhere_in_place_is_not_planned_again(monkeypatch):
    asked, plan = [], planning.plan_program
    monkeypatch.setattr(planning, "plan_program", lambda program, *rest: asked.append(program.graph.hash) or plan(program, *rest))
    monkeypatch.setattr(overwriting, "_twin", lambda *_: None)
    module, inputs = fresh(lambda: (nn.Sequential(*(layer for _ in range(4) for layer in (nn.Linear(48, 48), nn.Softsign()))),
                                    (torch.randn(256, 48),)))
    _, _, roomy = planned(module, inputs, "1GiB")
    asked.clear()
    with pytest.raises(lowtide.torch.BudgetError):
        planned(module, inputs, roomy.floor // 2)
    assert len(set(asked)) > 1 and asked.count(asked[0]) == 1  # that of clusters as if they wrote in place is another graph


@needs_compiler
def test_statistics_move_once_and_norms_run_again():
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))
    roomy, step, _ = planned(module, inputs, "1GiB")
    unplanned = train(roomy, inputs, step)
    plain = twin(module)
    for got, expected in zip(unplanned, train(plain, inputs, plain), strict=True):
        torch.testing.assert_close(got, expected, rtol=1e-3, atol=1e-4)
    tight, step, report = planned(module, inputs, "85%")
    assert equal(train(tight, inputs, step), unplanned)
    assert report.again


def test_a_cluster_that_cannot_be_compiled_runs_op_by_op_with_the_same_masks(uncompiled, monkeypatch):
    monkeypatch.setattr(clusters, "_said", False)
    monkeypatch.setattr(clusters.Cluster, "is_refused", property(lambda self: self is next(iter(clusters._known.values()))))
    module, inputs = fresh(lambda: (DropoutMlp(), (torch.randn(256, 256),)))
    with pytest.warns(lowtide.torch.LowtideWarning, match="could not compile 1 of .* clusters of ops, which run op by op: "
                                                          "RuntimeError: no compiler here; inner='eager'"):
        roomy, step, _ = planned(module, inputs, "1GiB")
    unplanned = train(roomy, inputs, step)
    tight, step, report = planned(module, inputs, "90%")  # and no second warning
    assert report.again and equal(train(tight, inputs, step), unplanned)


def test_a_graph_without_clusters_runs_on_eager_kernels(uncompiled, monkeypatch):
    def fails(*_):
        raise RuntimeError("a pass of Inductor")

    monkeypatch.setattr("lowtide.torch.clusters.rewrite.prepared", fails)
    module, inputs = Sized(), (torch.randn(8, 16),)
    with pytest.warns(lowtide.torch.LowtideWarning, match="eager kernels, since no clusters of its ops could be formed: RuntimeError: a pass of"):
        step = lowtide.torch.optimize(module, inputs, budget="1GiB", inner="fused", fallback="error", costs="cpu")
    assert torch.equal(step(*inputs), module(*inputs))
    report = lowtide.torch.reports()[-1]
    assert report.exactness.as_eager and not report.fused_kernels
    assert report.inner == "eager kernels (inner='fused': no clusters of its ops could be formed: RuntimeError: a pass of Inductor)"


def test_what_lies_otherwise_than_the_graph_says_is_computed_all_the_same(monkeypatch):
    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: pytest.fail("nothing runs compiled"))
    graph = torch.fx.Graph()
    x = graph.placeholder("x")
    graph.output((graph.call_function(torch.ops.aten.sin.default, (x,)),))
    with torch._subclasses.FakeTensorMode():
        like = torch.empty(3, 4)
    cluster = clusters.Cluster("sine", torch.fx.GraphModule({}, graph), [like], [like], True)
    given = torch.randn(4, 3).t()
    (result,), run = cluster.first_run([given])
    assert torch.equal(result, given.sin()) and result.stride() == like.stride()
    assert torch.equal(run([given])[0], given.sin())


@pytest.mark.parametrize("is_shared", [False, True])
def test_a_result_in_the_memory_of_an_input_that_has_died_is_the_code_s_own(monkeypatch, is_shared):
    """Allocators give the same memory out again; a result that shares an input's storage is copied, and its cluster runs op by op."""
    graph = torch.fx.Graph()
    graph.output((graph.call_function(torch.ops.aten.sin.default, (graph.placeholder("x"),)),))
    with torch._subclasses.FakeTensorMode():
        like = torch.empty(64)

    def code(given):
        t = given.pop()
        pointer = t.data_ptr()
        if is_shared:
            return [t.sin_()]
        expected = t.sin()
        del t
        made = []
        while len(made) < 1000 and not (made and made[-1].data_ptr() == pointer):
            made.append(torch.empty(64))
        return [made[-1].copy_(expected)]

    monkeypatch.setattr(clusters, "compile_kernels", lambda *_: code)
    cluster = clusters.Cluster("sine", torch.fx.GraphModule({}, graph), [like], [like], True)
    kept = torch.randn(64)
    (result,), run = cluster.first_run([kept.clone()])
    assert torch.equal(result, kept.sin())
    assert (cluster.why_not == "results share a storage" and run == cluster.op_by_op) == is_shared
    assert is_shared or run is code


class Blocks(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.LayerNorm(32), nn.Linear(32, 64), nn.GELU(), nn.Linear(64, 32), nn.Dropout(0.1))
                                    for _ in range(depth))

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return x.square().mean()


def test_equal_layers_are_equal_clusters():
    def distinct(depth):
        graph = lowtide.torch.capture(Blocks(depth), torch.randn(8, 32), fused=True)
        found = clusters_of(graph)
        return len(found), len({op.arguments["key"] for op in found})

    (few, keys), (many, same) = distinct(4), distinct(7)
    assert many > few and keys == same


def test_what_a_pass_has_the_forward_read_of_the_backward_is_of_the_forward(monkeypatch):
    def captured():
        graph = lowtide.torch.capture(nn.Sequential(nn.Linear(8, 8), nn.Softplus()), torch.randn(4, 2, 8), lambda m, x: m(x).mean(), fused=True)
        return [(op.name, op.phase) for op in map(graph.op, graph.order)]

    expected, passes = captured(), prepare.joint_passes

    def with_a_view_of_the_backward(joint, mode):
        joint = passes(joint, mode)
        view = next(node for node in joint.graph.nodes if "addmm" in str([n.target for n in node.all_input_nodes]))
        view.meta["partitioner_tag"] = "is_backward"
        return joint

    monkeypatch.setattr(prepare, "joint_passes", with_a_view_of_the_backward)
    assert captured() == expected


def test_clusters_end_where_kernels_of_libraries_stand_and_at_the_barrier():
    graph = lowtide.torch.capture(Blocks(2), torch.randn(8, 32), fused=True)
    assert not {"aten.gelu", "aten.native_dropout", "aten.add"} & set(kinds(graph))
    assert kinds(graph).count("aten.mm") + kinds(graph).count("aten.addmm") == 4 + 8
    assert kinds(graph).count("aten.randint") == 1  # all seeds in one draw
    gelu = next(op for op in clusters_of(graph) if "erf" in attributes_of(op)["ops"] and op.phase == "forward")
    assert any("addmm (a library's kernel)" in border for border in attributes_of(gelu)["borders"])
    assert all(op.phase in ("forward", "backward") for op in clusters_of(graph))


def test_gradients_of_biases_are_results_of_clusters_and_no_views():
    graph = lowtide.torch.capture(Blocks(2), torch.randn(8, 32), fused=True)
    shapes = [tuple(graph.tensor(made).shape) for op in clusters_of(graph) if op.phase == "backward" for made in op.outputs]
    assert {(32,), (64,)} <= set(shapes) and not {(1, 32), (1, 64)} & set(shapes)


def test_statistics_have_clusters_of_their_own():
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))
    graph = lowtide.torch.capture(module, inputs, fused=True)
    barrier = next(graph.op(op) for op in graph.order if graph.op(op).kind == "lowtide.barrier")
    written = [op for op in clusters_of(graph) if set(op.outputs) <= set(barrier.inputs) and op.phase == "forward"]
    assert written and not any(set(op.outputs) & set(other.inputs) for op in written for other in clusters_of(graph))


def test_buffers_of_equal_layers_are_changed_by_equal_clusters(monkeypatch):
    monkeypatch.setattr(writers, "_EQUAL", 4)

    def keys(depth):
        layers = [layer for _ in range(depth) for layer in (nn.Linear(8, 8), nn.BatchNorm1d(8))]
        graph = lowtide.torch.capture(nn.Sequential(*layers), torch.randn(4, 8), lambda model, x: model(x).sum(), fused=True)
        return {op.arguments["key"] for op in clusters_of(graph)}

    assert keys(5) == keys(9)


def test_gradients_of_weights_are_laid_out_by_eager_kernels_and_join_no_cluster(uncompiled):
    module, inputs = fresh(lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))))
    _, _, report = planned(module, inputs, "1GiB")
    graph = report.graph
    backward = {op.index: set(op.outputs) for op in map(graph.op, graph.order) if op.kind == "aten.convolution_backward"}
    assert len(backward) > 1 and kinds(graph).count("aten.clone") >= len(backward)
    for op in clusters_of(graph):
        assert set(attributes_of(op)["ops"]) != {"clone"}
        assert all(len(made & set(op.inputs)) < 2 for made in backward.values())


def test_a_copy_of_what_is_made_of_no_input_stays_a_cluster(uncompiled):
    """Clusters that read it make it for themselves, and an op for itself would have nothing to read."""
    class Mixing(nn.Linear):
        def forward(self, x):
            ramp = torch.arange(64, device=x.device).to(x.dtype).view(8, 8)
            return ((super().forward(x) @ ramp).relu() @ ramp.t().contiguous()).sum()

    module, inputs = fresh(lambda: (Mixing(8, 8), (torch.randn(16, 8),)))
    with warnings.catch_warnings():
        warnings.simplefilter("error", LowtideWarning)
        _, _, report = planned(module, inputs, "1GiB")
    assert "clone" in {name for op in clusters_of(report.graph) for name in attributes_of(op)["ops"]}


def test_what_a_pass_has_folded_away_is_no_op(uncompiled):
    class Off(nn.Sequential):
        def forward(self, x):
            return super().forward(x).square().mean() + 0 * torch.bucketize(x, torch.linspace(-1, 1, 4)).float().mean()

    graph = lowtide.torch.capture(Off(nn.Linear(8, 8), nn.Tanh()), torch.randn(4, 8), fused=True)
    assert all(op.outputs for op in clusters_of(graph)) and "aten.bucketize" not in kinds(graph)


def test_the_first_capture_of_a_process_may_pool():
    script = ("import torch, lowtide.torch as l; m = torch.nn.Sequential(torch.nn.Conv2d(1, 2, 3), torch.nn.MaxPool2d(2)); "
              "l.capture(m, torch.randn(1, 1, 8, 8), lambda m, x: m(x).sum(), fused=True)")  # Inductor imports parts of itself late
    subprocess.run([sys.executable, "-c", script], check=True)


class Bag(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.out = nn.Embedding(64, 32), nn.Linear(32, 64)

    def forward(self, x):
        return nn.functional.cross_entropy(self.out(self.table(x).tanh()), x)


def test_sums_with_atomics_run_once():
    graph = lowtide.torch.capture(Bag(), torch.randint(64, (16,)), fused=True)
    atomic = [op for op in clusters_of(graph) if any("index_put" in name or "scatter" in name for name in attributes_of(op)["ops"])]
    assert atomic and not any(op.recomputable for op in atomic)


def test_gradients_that_atomics_add_up_are_named(monkeypatch):
    def exactness():
        lowtide.torch.optimize(Bag(), torch.randint(64, (16,)), budget="1TiB", inner="fused")
        return lowtide.torch.reports()[-1].exactness

    with alone(monkeypatch):
        found = exactness()
        assert found.atomic == ("table.weight",) and found.is_kept and not found.equal
        with deterministic(monkeypatch):  # then Inductor calls a kernel that keeps the order
            assert exactness().equal


def test_the_old_word_for_it_is_taken_with_a_warning():
    with pytest.warns(lowtide.torch.LowtideWarning, match="inner='inductor' is now inner='fused'"):
        settings = lowtide.torch.settings.Settings(budget=1, inner="inductor")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert settings.inner == "fused" and settings.on(torch.device("cpu")).inner == "fused"


class Convolved(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = (nn.Conv2d(n, 8, 3, padding=1) for n in (3, 8, 8))
        self.norm, self.out = nn.BatchNorm2d(8), nn.Linear(8 * 36, 4)

    def forward(self, x):
        y = self.norm(self.a(x)).relu()
        y = y + self.b(y).sigmoid()
        y = nn.functional.interpolate(self.c(y), scale_factor=2.0, mode="nearest")[:, :, :6, :6]
        return self.out(y.flatten(1)).square().mean(), y


def test_convolutions_read_what_lies_channels_last(uncompiled):
    module, inputs = fresh(lambda: (Convolved(), (torch.randn(4, 3, 6, 6),)))
    mine, step, _ = planned(module, inputs, "1GiB")
    (loss, features), (expected, same) = step(*inputs), module(*inputs)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(features, same)
    assert features.stride() == same.stride()  # results lie as in eager execution
    graph = lowtide.torch.reports()[-1].graph
    read = [operand for op in graph.order if "aten.convolution" in graph.op(op).kind for operand in graph.op(op).operands
            if operand["argument"] in ("input", "grad_output")]
    assert len(read) == 3 + 2 * 3 and all(operand["strides"][1] == 1 for operand in read)
    loss.backward()
    expected.backward()
    for got, other in zip(mine.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(got.grad, other.grad)
        assert got.grad.stride() == other.grad.stride()


def test_a_graph_may_end_with_a_convolution_and_be_planned_after_another(uncompiled):
    """AOTAutograd parts the graph first, which takes all in front of the forward's last op for the forward's."""
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(3, 8, 3)

        def forward(self, x):
            y = self.conv(x)
            torch._dynamo.graph_break()
            return y.relu().square().mean()

    module, inputs = fresh(lambda: (Broken(), (torch.randn(2, 3, 6, 6),)))
    mine, step, _ = planned(module, inputs, "1GiB")
    for got, expected in zip(train(mine, inputs, step), train(module, inputs, module), strict=True):
        torch.testing.assert_close(got, expected)


def test_nothing_is_computed_again_of_a_buffer_that_the_forward_changes(uncompiled):
    class Codebook(nn.Module):
        def __init__(self):
            super().__init__()
            self.encode = nn.Linear(8, 64)
            self.register_buffer("book", torch.randn(4, 64))

        def forward(self, x):
            z = self.encode(x)
            codes = self.book[z.argmax(1) % 4]
            with torch.no_grad():
                self.book.lerp_(z[:4], 0.1)
            return F.mse_loss(z, codes)

    module, inputs = fresh(lambda: (Codebook(), (torch.randn(16, 8),)))
    mine, step, report = planned(module, inputs, "1GiB")
    assert report.fused_kernels
    for got, expected in zip(train(mine, inputs, step), train(module, inputs, module), strict=True):
        torch.testing.assert_close(got, expected)


def test_a_sum_of_a_buffer_that_the_forward_changes_is_taken_before(uncompiled):
    """A hook on a gradient reads a view of the sum, and nothing else does."""
    class Hooked(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(8, 8)
            self.register_buffer("weights", torch.ones(8, 4))

        def forward(self, x):
            sums = self.weights.sum(1, keepdim=True)
            y = self.linear(x).sin()
            y.register_hook(lambda gradient: gradient * sums.view(8))
            self.weights.add_(1)
            return y.square().mean()

    module, inputs = fresh(lambda: (Hooked(), (torch.randn(16, 8),)))
    mine, step, report = planned(module, inputs, "1GiB")
    assert report.fused_kernels
    for got, expected in zip(train(mine, inputs, step), train(module, inputs, module), strict=True):
        torch.testing.assert_close(got, expected)


def test_a_number_may_be_summed(uncompiled):
    def normed(model, x):
        y = model(x)
        return (y / y.sum().sum(-1, keepdim=True).view(1)).square().sum()

    graph = lowtide.torch.capture(nn.Linear(8, 8), torch.randn(16, 8), normed, fused=True)
    assert clusters_of(graph)


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.norm, self.deep = nn.ConvTranspose2d(4, 8, 2, 2), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, groups=8)

    def forward(self, x):
        return self.deep(self.norm(self.up(x)).relu())


class Spatial(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv3d(2, 4, 3, padding=1), nn.Conv3d(4, 4, 1)

    def forward(self, x):
        return nn.functional.avg_pool3d(self.b(self.a(x).relu()), 2).mean((2, 3, 4))


class Attentive(nn.Module):
    """Its attention runs on the rows of an image."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 4, 1)

    def forward(self, x):
        y = self.a(x)
        rows = y.flatten(2).transpose(1, 2)[:, None]
        read = nn.functional.scaled_dot_product_attention(rows, rows, rows)[:, 0]
        return self.b(y + read.transpose(1, 2).reshape(y.shape)), y.transpose(1, 3)


@pytest.mark.parametrize("make, shape", [(Transposed, (2, 4, 6, 6)), (Spatial, (2, 2, 4, 4, 4)), (Attentive, (2, 3, 6, 6))])
def test_results_and_gradients_lie_as_without_clusters(uncompiled, make, shape):
    module, inputs = fresh(lambda: (make(), (torch.randn(shape),)))
    mine, step, _ = planned(module, inputs, "1GiB")
    for of, results in ((mine, step(*inputs)), (module, module(*inputs))):
        of.results = [results] if isinstance(results, torch.Tensor) else list(results)
        sum(t.square().mean() for t in of.results).backward()
    pairs = [*zip(mine.results, module.results), *zip((p.grad for p in mine.parameters()), (p.grad for p in module.parameters()))]
    for got, other in pairs:
        torch.testing.assert_close(got, other)
        assert got.stride() == other.stride()


def test_kernels_of_libraries_read_what_a_convolution_reads_as_it_lay(uncompiled):
    class Read(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.again = nn.Conv2d(4, 4, 1), nn.Conv2d(4, 4, 1)

        def forward(self, x):
            y = self.conv(x).relu()
            return self.again(y).square().sum() + torch.sort(x, 1)[0].mul(x).sum() + torch.sort(y, 1)[0].mul(y).sum()

    module, inputs = fresh(lambda: (Read(), (torch.randn(2, 4, 5, 5),)))
    mine, step, report = planned(module, inputs, "1GiB")
    assert report.fused_kernels
    for got, expected in zip(train(mine, inputs, step), train(module, inputs, module), strict=True):
        torch.testing.assert_close(got, expected)


def test_what_moves_for_convolutions_is_read_as_it_lay_where_it_must_be(uncompiled):
    """By views that other strides do not allow, as_strided, and kernels of libraries."""
    class Read(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv = nn.Conv2d(4, 4, 1)

        def forward(self, x):
            y = self.conv(x).relu()
            rows = y.view(len(y), 4, -1)
            return (rows @ rows.transpose(1, 2)).sum() + y.as_strided((3,), (2,)).sum() + torch.sort(y, 1)[0].mul(y).sum()

    module, inputs = fresh(lambda: (Read(), (torch.randn(2, 4, 5, 5),)))
    mine, step, report = planned(module, inputs, "1GiB")
    assert report.fused_kernels
    loss, expected = step(*inputs), module(*inputs)
    torch.testing.assert_close(loss, expected)
    loss.backward()
    expected.backward()
    for got, other in zip(mine.parameters(), module.parameters(), strict=True):
        torch.testing.assert_close(got.grad, other.grad)


def test_a_dimension_of_one_element_may_have_any_stride():
    like = torch.empty(2, 3, 1, 1).contiguous(memory_format=torch.channels_last)
    given = torch.empty_strided((2, 3, 1, 1), (3, 1, 7, 5))
    assert clusters._is_like(given, like) and not clusters._is_like(given.transpose(0, 1), like)
    assert not clusters._is_like(given.double(), like)


def test_stances_functions_and_inference(uncompiled):
    module, x = Sized(), torch.randn(6, 16)
    options = {"budget": "1GiB", "inner": "fused", "costs": "cpu", "fallback": "error"}
    step = torch.compile(module, backend="lowtide", options=options)
    with torch.compiler.set_stance("force_eager"):
        assert torch.equal(step(x), module(x))
    step(x).backward()
    with torch.compiler.set_stance("fail_on_recompile"):
        step(x)
        with pytest.raises(RuntimeError, match="fail_on_recompile"):
            step(x.double())
    with torch.compiler.set_stance("eager_on_recompile"):
        assert torch.equal(step(x[:3]), module(x[:3]))
    torch._dynamo.reset()
    marked = torch.randn(7, 16)
    torch._dynamo.mark_dynamic(marked, 0)
    step = torch.compile(module, backend="lowtide", options=options)
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        for given in (marked, torch.randn(8, 16), torch.randn(9, 16)):
            torch.testing.assert_close(step(given), module(given))
    torch._dynamo.reset()
    with torch.inference_mode():
        torch.testing.assert_close(torch.compile(module, backend="lowtide", options=options)(x), module(x))

    def function(a, b):
        b.mul_(2)
        return (a.sin() * b).relu().sum(0), a + 1

    given, same = (x, x.clone()), (x, x.clone())
    for got, other in zip(torch.compile(function, backend="lowtide", options=options)(*given), function(*same), strict=True):
        torch.testing.assert_close(got, other)
    assert torch.equal(given[1], same[1]) and lowtide.torch.reports()[-1].fused_kernels


def test_layouts_keep_views_views(uncompiled, monkeypatch):
    """What follows from a tensor that has moved has storages of its own, and views of these stay no ops."""
    class Read(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.out = nn.Conv2d(4, 4, 1), nn.Linear(4, 4)

        def forward(self, x):
            return self.out(self.conv(x).relu().mean((2, 3)).view(-1, 2, 2).flatten(1)).square().mean()

    def graph():
        return lowtide.torch.capture(Read(), torch.randn(2, 4, 5, 5), fused=True, costs="measured")

    moved = graph()
    monkeypatch.setattr("lowtide.torch.clusters.layout.wants_channels_last", lambda _: False)
    assert len(moved.order) == len(graph().order) + 2  # copies of the input, and of the gradient of the convolution's weight
