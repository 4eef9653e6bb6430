"""Flex attention and Triton kernels of a model's own are one op each of a plan, whichever kernels the others are."""

import operator

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.clusters import cluster as clusters
from lowtide.torch.clusters.higher_order import as_templates
from torch import fx, nn
from torch._dynamo.backends.registry import lookup_backend
from torch._higher_order_ops.triton_kernel_wrap import kernel_side_table, triton_kernel_wrapper_functional
from torch.nn.attention import flex_attention as flex
from torch_run import alone, equal, fresh, needs_compiler, train, twin

import lowtide

LENGTH = 128


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    monkeypatch.setattr(flex, "_validate_device", lambda *_: None)  # which refuses gradients on a CPU
    monkeypatch.setattr(flex, "_warn_once", lambda *_, **__: None)  # that eager execution holds all scores
    with alone(monkeypatch):
        yield


class Attention(nn.Module):
    """Scores are scaled by a trained factor of each head, and moved by an untrained table of distances."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.factors = nn.Parameter(torch.randn(2))
        self.register_buffer("distances", torch.linspace(-1, 0, LENGTH))
        self.mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, LENGTH, LENGTH, device="cpu")

    def forward(self, x):
        factors, distances = self.factors, self.distances
        for _ in range(2):
            q, k, v = self.qkv(x).view(len(x), LENGTH, 3, 2, 16).permute(2, 0, 3, 1, 4)
            y = flex.flex_attention(q, k, v, lambda score, b, h, i, j: score * factors[h] + distances[j], block_mask=self.mask)
            x = x + self.out(y.transpose(1, 2).flatten(2)).sigmoid()
        return x.square().mean()


def attention():
    return Attention(), (torch.randn(2, LENGTH, 32),)


def planned(module, inputs, budget, **options):
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget=budget, costs="cpu", fallback="error", **options)
    return mine, step, lowtide.torch.reports()[-1]


def kinds(report):
    return [report.graph.op(op).kind for op in report.graph.order]


def least_budget(module, inputs, **options):
    """A little more than the smallest that has a plan, for what the caller holds."""
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(module, inputs, "1MiB", **options)
    return refused.value.smallest + 4096


def test_flex_attention_has_the_bits_of_eager_execution_under_a_plan():
    module, inputs = fresh(attention)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, report = planned(module, inputs, least_budget(module, inputs))
    assert kinds(report).count("higher_order.flex_attention") == kinds(report).count("higher_order.flex_attention_backward") == 2
    assert report.again and not report.fused_kernels
    assert equal(train(mine, inputs, step), expected)


def test_flex_attention_is_priced_with_all_scores_and_all_blocks():
    module, inputs = fresh(attention)
    _, _, report = planned(module, inputs, "1GiB")
    scores = 2 * 2 * LENGTH * LENGTH * 4
    found = [report.graph.op(op) for op in report.graph.order if report.graph.op(op).kind.startswith("higher_order")]
    assert all(op.workspace >= 2 * scores for op in found)
    assert [op.recomputable for op in found] == [True, True, False, False]  # the gradient of the factors is a sum
    forward = next(cluster for cluster in clusters._known.values() if cluster.kind == "higher_order.flex_attention")
    given = [torch.zeros(t.shape, dtype=t.dtype) for t in forward.inputs]
    forward.fill(given)
    counts = [int(t.sum()) for t in given if not t.is_floating_point()]
    assert sum(counts) == 2 and forward.flops == 4 * 2 * 2 * LENGTH * LENGTH * 16  # one block, once by rows and once by columns


@needs_compiler
def test_inductor_compiles_flex_attention_by_itself():
    module, inputs = fresh(attention)
    with torch.no_grad():
        _, step, report = planned(module, inputs, "1GiB", inner="fused")
        torch.testing.assert_close(step(*inputs), module(*inputs))
    (template,) = {id(c): c for c in clusters._known.values() if c.kind and c.is_compiled}.values()
    assert template.kind == "higher_order.flex_attention"
    assert kinds(report).count(template.kind) == 2 and "flex_attention" not in str([kernel.ops for kernel in report.fused_kernels])
    scores = 2 * 2 * LENGTH * LENGTH * 4
    assert all(report.graph.op(op).workspace < scores for op in report.graph.order)


def test_flex_attention_among_clusters_trains_as_without_a_plan(uncompiled):
    module, inputs = fresh(attention)
    roomy, step, _ = planned(module, inputs, "1GiB", inner="fused")
    unplanned = train(roomy, inputs, step)
    tight, step, report = planned(module, inputs, least_budget(module, inputs, inner="fused"), inner="fused")
    assert report.again and report.fused_kernels
    assert equal(train(tight, inputs, step), unplanned)


def test_sizes_that_change_have_a_plan_each(uncompiled):
    module, _ = fresh(attention)
    for inner in ("eager", "fused"):
        torch._dynamo.reset()
        step = lowtide.torch.optimize(twin(module), budget="1GiB", inner=inner, fallback="error", costs="cpu")
        for n in (2, 3, 4):
            x = torch.randn(n, LENGTH, 32)
            torch.testing.assert_close(step(x), module(x))


class Kernel:
    """In the place of a kernel of Triton, of which there is none on a CPU."""

    arg_names = ("x", "out", "factor")

    def __init__(self, source="def scale(x, out, factor): ..."):
        self.src, self.runs = source, 0

    def __getitem__(self, _):
        def launch(x, out, factor):
            self.runs += 1
            out.copy_(x * factor)
        return launch


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(2))

    def forward(self, x):
        x = torch.cos(x)  # in whose place the kernel is
        for layer in self.layers:
            x = layer(x).tanh()
        return x.square().mean()


def with_kernel(kernel, **options):
    """A backend that puts the kernel into the place of a cosine."""
    index = kernel_side_table.add_kernel(kernel)
    constants = kernel_side_table.add_constant_args({"factor": 3.0})

    def backend(gm, inputs):
        for node in gm.graph.find_nodes(op="call_function", target=torch.cos):
            (x,) = node.args
            with gm.graph.inserting_before(node):
                out = gm.graph.call_function(torch.empty_like, (x,))
                call = gm.graph.call_function(triton_kernel_wrapper_functional, (), {
                    "kernel_idx": index, "constant_args_idx": constants, "grid": [(1, 1, 1)], "tma_descriptor_metadata": {},
                    "kwargs": {"x": x, "out": out}, "tensors_to_clone": ["out"]})
                node.replace_all_uses_with(gm.graph.call_function(operator.getitem, (call, "out")))
            gm.graph.erase_node(node)
        gm.recompile()
        return lookup_backend("lowtide")(gm, inputs, options={"budget": "1GiB", "costs": "cpu", "fallback": "error"} | options)

    return backend


@pytest.mark.parametrize("inner", ["eager", "fused"])
def test_a_triton_kernel_of_a_model_is_one_op(uncompiled, inner):
    module, inputs = fresh(lambda: (Scaled(), (torch.randn(256, 64),)))
    kernel = Kernel()
    step = torch.compile(twin(module), backend=with_kernel(kernel, inner=inner))
    loss = step(*inputs)
    report = lowtide.torch.reports()[-1]
    (op,) = [report.graph.op(op) for op in report.graph.order if "triton" in report.graph.op(op).kind]
    assert op.kind == "higher_order.triton_kernel_wrapper_functional" and op.recomputable
    x = inputs[0] * 3.0
    for layer in module.layers:
        x = layer(x).tanh()
    torch.testing.assert_close(loss, x.square().mean())


def test_a_triton_kernel_with_atomics_runs_once():
    module, inputs = fresh(lambda: (Scaled(), (torch.randn(256, 64),)))
    torch.compile(twin(module), backend=with_kernel(Kernel("tl.atomic_add(out, x)")))(*inputs)
    report = lowtide.torch.reports()[-1]
    assert [report.graph.op(op).recomputable for op in report.graph.order if "triton" in report.graph.op(op).kind] == [False]


def test_the_key_of_a_triton_kernel_is_its_text_not_its_number():
    def key(kernel, factor):
        index, constants = kernel_side_table.add_kernel(kernel), kernel_side_table.add_constant_args({"factor": factor})
        graph = fx.Graph()
        with torch._subclasses.FakeTensorMode():
            x = graph.placeholder("x")
            x.meta["val"] = torch.empty(4)
            call = graph.call_function(triton_kernel_wrapper_functional, (), {
                "kernel_idx": index, "constant_args_idx": constants, "grid": [(1, 1, 1)], "tma_descriptor_metadata": {},
                "kwargs": {"x": x, "out": x}, "tensors_to_clone": ["out"]})
            call.meta["val"] = {"out": torch.empty(4)}
            item = graph.call_function(operator.getitem, (call, "out"))
            item.meta["val"] = call.meta["val"]["out"]
        graph.output((item,))
        joint = fx.GraphModule({}, graph)
        as_templates(joint, fused=False)
        (found,) = graph.find_nodes(op="call_function", target=clusters.CLUSTER)
        return found.args[0]

    assert key(Kernel(), 3.0) == key(Kernel(), 3.0) != key(Kernel(), 2.0) != key(Kernel("other"), 2.0)
