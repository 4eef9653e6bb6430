"""Clusters in parts: the letters that a cluster states, and its parts, which give what the whole gives."""


import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.clusters.cluster import known_cluster
from lowtide.torch.clusters.part import described, letters, part_of, slices_of, text_of
from lowtide.torch.clusters.rewrite import with_clusters
from lowtide.torch.graphs import captured_graph
from lowtide.torch.pricing.costs import materialise
from matrix_models import FAMILIES
from torch import nn
from torch_run import alone, equal, fresh, needs_compiler, train, twin


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Head(nn.Module):
    """A block and a loss over targets, some of which are ignored."""

    def __init__(self, p=0.0):
        super().__init__()
        self.norm, self.up, self.down, self.out = nn.LayerNorm(32), nn.Linear(32, 256), nn.Linear(256, 32), nn.Linear(32, 100)
        self.p = p

    def forward(self, x, y):
        h = nn.functional.dropout(nn.functional.gelu(self.up(self.norm(x))), self.p, self.training)
        return nn.functional.cross_entropy(self.out(x + self.down(h)).flatten(0, 1), y.flatten())


def head(p=0.0, batch=8):
    return Head(p), (torch.randn(batch, 16, 32), torch.randint(100, (batch, 16)))


def clusters_of(graph):
    return list({op.arguments["key"]: known_cluster(op.arguments["key"]) for op in map(graph.op, graph.order)
                 if op.kind == "lowtide.cluster"}.values())


def as_described(t, shape):
    return t.as_strided(*shape, t.storage_offset())


def in_parts(cluster, name, run, numbers):
    """What the parts of a cluster make along a letter, put together: slices beside one another, and sums."""
    given = [as_described(t, shape) for t, shape in zip(numbers, described(cluster)[0])]
    of_given, of_made = (side.split(",") for side in text_of(cluster).split("->"))
    all_ = letters(cluster).by_name[name].slices
    whole, first = None, 0
    for count in (all_ // 2, all_ - all_ // 2):
        mine = [t.narrow(n.index(name), first, count) if name in n else t for t, n in zip(given, of_given)]
        part = part_of(cluster, [(list(t.shape), list(t.stride())) for t in mine], {name: count})
        assert slices_of(cluster, [list(t.shape) for t in mine], [list(t.shape) for t in part.results]).get(name, count) == count
        made, first = run(part, mine), first + count
        assert [(t.shape, t.stride()) for t in made] == [(t.shape, t.stride()) for t in part.results]
        whole = made if whole is None else [torch.cat([a, b], n.index(name)) if name in n else a + b
                                            for a, b, n in zip(whole, made, of_made)]
    return whole


def numbers_for(cluster):
    made = materialise(cluster.inputs, torch.device("cpu"))
    for t in made:
        if 0 in t.stride():
            t.fill_(1)
        elif t.dtype.is_floating_point:
            t.uniform_(0.25, 0.75)
        elif t.dtype == torch.bool:
            t.random_(0, 2)
        else:
            t.zero_()
    return made


def op_by_op(cluster, given):
    return cluster.op_by_op(list(given))


@pytest.mark.parametrize("family", sorted(FAMILIES.keys() - {"breaks", "checkpoints"}))  # without those of several graphs, and of marks
def test_parts_of_every_cluster_give_the_whole(uncompiled, family):
    found = 0
    for make in FAMILIES[family][:2]:
        module, inputs = fresh(make)
        graph = lowtide.torch.capture(module, inputs, lambda m, *x: (r := m(*x), r if isinstance(r, torch.Tensor) else r[0])[1], fused=True)
        for cluster in clusters_of(graph):
            for name in letters(cluster).by_name if "empty" not in cluster.names else ():
                torch.manual_seed(0)
                numbers = numbers_for(cluster)
                expected = [as_described(t, shape) for t, shape in zip(op_by_op(cluster, numbers), described(cluster)[1])]
                got = in_parts(cluster, name, op_by_op, numbers)
                for a, b in zip(got, expected, strict=True):
                    torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-3, equal_nan=True)
                found += 1
    assert found or family in ("complex", "draws")  # whose clusters draw from seeds


def test_letters_go_through_views_norms_and_losses():
    module, inputs = fresh(head)
    graph = lowtide.torch.capture(module, inputs, fused=True)
    stated = {op.name: op.arguments.get("letters") for op in map(graph.op, graph.order) if op.kind == "lowtide.cluster"}
    assert stated["fused_mul_erf_add"] == "a.b->a.b"  # rows of a product are blocks of each sequence
    assert stated["fused_amax_sub_exp"].endswith(",")  # the loss is a sum
    assert stated["fused_ne_sum_convert_element_type"] is None  # the count of targets is made before
    gelu = next(op for op in map(graph.op, graph.order) if op.name == "fused_mul_erf_add")
    assert gelu.operands[0]["shape"] == [8, 16, 256]
    survey = graph.regions(hoist=True)["regions"]
    assert max(len(region["ops"]) for region in survey) > len(graph.order) - 4  # all but the count and the barrier


def test_what_no_rule_is_known_of_has_no_letters():
    class Odd(nn.Module):
        def forward(self, x):
            return (x.cumsum(0) * x + x.flip(0) + torch.arange(6.0)[:, None]).square().sum(1), (x @ x.t() + x.sum()).relu()

    graph = lowtide.torch.capture(Odd(), torch.randn(6, 6, requires_grad=True), lambda m, x: sum(t.sum() for t in m(x)), fused=True)
    for cluster in clusters_of(graph):
        text = text_of(cluster)
        if "cumsum" in cluster.names or "iota" in cluster.names:
            assert "a" not in text.partition(">")[2][:1], text  # the first dimension


def test_a_captured_graph_may_have_draws_apart_so_that_their_readers_have_letters():
    def clusters(**options):
        return clusters_of(lowtide.torch.capture(*fresh(lambda: head(p=0.1)), fused=True, **options))

    drawing = [cluster for cluster in clusters() if "inductor_random" in cluster.names]
    assert len(drawing) == 2 and not any(map(text_of, drawing))  # forward and backward draw the same mask
    apart = clusters(in_parts=True)
    (draw,) = (cluster for cluster in apart if "inductor_random" in cluster.names)
    assert [t.dtype for t in draw.results] == [torch.bool]  # of a byte, whatever its readers make of it
    assert ["a.b,a.b->a.b", "a.b,a.b,a.b->a.b,b"]
    with pytest.raises(ValueError, match="in_parts=True is for fused=True"):
        lowtide.torch.capture(*head(), in_parts=True)


@needs_compiler
def test_a_step_in_parts_is_compiled_once_for_all_parts():
    module, inputs = fresh(lambda: head(p=0.1, batch=32))

    def planned(budget, **options):
        torch._dynamo.reset()
        mine = twin(module)
        step = lowtide.torch.optimize(mine, inputs, budget=budget, inner="fused", costs="cpu", fallback="error", work=15_000, time=None,
                                      **options)
        return mine, step, lowtide.torch.reports()[-1]

    whole, step, _ = planned("1GiB")
    expected = train(whole, inputs, step)
    parted, step, report = planned("70%", techniques=["recompute", "in_place", "split", "hoist"])
    assert report.transforms and report.peak <= report.budget
    for a, b in zip(train(parted, inputs, step), expected, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-4)  # sums over parts; slices of the same masks
    assert report.exactness.fused and report.exactness.masks and not report.exactness.as_eager
    assert "to the same fused kernels without a plan but for" in str(report)
    unsaid = {"buffers", *(name for name, _ in module.named_parameters())} - {*report.exactness.sums, *report.exactness.follows, "buffers"}
    assert not unsaid  # all gradients are sums here


@needs_compiler
def test_steps_draw_in_the_clusters_that_read_unless_parts_need_masks(monkeypatch):
    """... and with the same bits either way."""
    module, inputs = fresh(lambda: head(p=0.1))
    options = {"inner": "fused", "costs": "cpu", "fallback": "error", "work": 2_000, "time": None,
               "techniques": ["recompute", "in_place", "split", "hoist"]}

    def trained():
        torch._dynamo.reset()
        mine = twin(module)
        step = lowtide.torch.optimize(mine, inputs, budget="1GiB", **options)
        drawing = {len(kernel.ops) for kernel in lowtide.torch.reports()[-1].fused_kernels if "inductor_random" in kernel.ops}
        return drawing, train(mine, inputs, step)

    within, expected = trained()
    assert min(within) > 2
    monkeypatch.setattr(captured_graph, "with_clusters", lambda ready, real: with_clusters(ready, real, in_parts=True))
    apart, found = trained()
    assert apart == {2} and equal(found, expected)


@needs_compiler
def test_compiled_parts_keep_the_bits_of_rows():
    module, inputs = fresh(head)
    graph = lowtide.torch.capture(module, inputs, fused=True)
    op = next(op for op in map(graph.op, graph.order) if op.name == "fused_mul_erf_add")
    cluster = known_cluster(op.arguments["key"])
    numbers = numbers_for(cluster)
    expected = [as_described(t, shape) for t, shape in zip(cluster.run([t.clone() for t in numbers]), described(cluster)[1])]
    assert equal(in_parts(cluster, "a", lambda part, given: list(part.run(list(given))), numbers), expected)
    assert cluster.is_compiled
