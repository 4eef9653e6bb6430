"""Code that makes views by one call each runs only where tensors lie as the graph says."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.device.meter import peak_rise
from lowtide.torch.emission import execute
from lowtide.torch.emission.parted import Part
from torch.fx.experimental.proxy_tensor import make_fx


def traced(function, *inputs):
    return make_fx(function, tracing_mode="fake")(*inputs)


def sources(monkeypatch):
    """The source of each function that is compiled from now on."""
    found, compile_one = [], execute._compile

    def noting(name, writer):
        run = compile_one(name, writer)
        found.append(run.source)
        return run

    monkeypatch.setattr(execute, "_compile", noting)
    return found


def several_views(x, w):
    first, second = x.view(4, 2, 6).transpose(0, 1).split(1)
    return torch.mm(first[0], w.t()) + second.squeeze(0).sum(), x.t()


def test_views_are_made_from_what_owns_the_storage(monkeypatch):
    found = sources(monkeypatch)
    x, w = torch.randn(4, 12), torch.randn(3, 6)
    run = execute.compile_graph(traced(several_views, x, w), "test", fixed=True)
    first = run([x, w])
    again = run([x, w])
    for a, b, c in zip(first, again, several_views(x, w), strict=True):
        assert torch.equal(a, c) and torch.equal(b, c) and b.stride() == c.stride()
    careful, fast = found
    assert careful.count("= c") > fast.count("= c")  # one call a view, not one for each that it is a view of
    assert again[1]._is_view() or again[1].data_ptr() == x.data_ptr()  # a result stays the view that PyTorch knows


def test_an_argument_that_lies_otherwise_is_read_as_it_lies():
    x, w = torch.randn(4, 12), torch.randn(3, 6)
    run = execute.compile_graph(traced(several_views, x, w), "test", fixed=True)
    run([x, w])
    other = torch.randn(6, 3).t()
    assert torch.equal(run([x, other])[0], several_views(x, other)[0])
    assert torch.equal(run([x, w])[0], several_views(x, w)[0])


def test_a_kernel_whose_result_lies_otherwise_than_its_fake_keeps_ordinary_views(monkeypatch):
    found = sources(monkeypatch)
    x = torch.randn(4, 6)
    graph = traced(lambda x: (x.sin().view(24).cos(),), x)
    sine = next(node for node in graph.graph.nodes if node.target is torch.ops.aten.sin.default)
    with sine.meta["val"].fake_mode:  # as if the tracer had thought so
        sine.meta["val"] = torch.empty_strided((4, 6), (1, 4))
        view = next(iter(sine.users))
        view.meta["val"] = sine.meta["val"].as_strided((24,), (1,))
    run = execute.compile_graph(graph, "test", fixed=True)
    for _ in range(3):
        assert torch.equal(run([x])[0], x.sin().view(24).cos())
    assert len(found) == 1


def test_clusters_read_a_dimension_of_one_element_with_any_stride(monkeypatch):
    """And views of such a tensor stay ordinary ones, since other kernels may read them."""
    found = sources(monkeypatch)

    def total(given):
        (x,) = given
        given.clear()
        return x.sum()

    def called(x):
        raise AssertionError("the boxed form runs")

    setattr(called, execute.BOXED, total)
    x = torch.randn(4, 6, 1).sin()
    for viewed in (False, True):
        graph = traced(lambda x: (x.sin(),), x)
        sine = next(node for node in graph.graph.nodes if node.target is torch.ops.aten.sin.default)
        with sine.meta["val"].fake_mode:  # as if the tracer had thought so
            sine.meta["val"] = torch.empty_strided((4, 6, 1), (6, 1, 9))
            sum_ = torch.empty(())
        with graph.graph.inserting_after(sine):
            read = graph.graph.call_function(called, (sine,))
        read.meta["val"] = sum_
        results = [read]
        if viewed:
            with graph.graph.inserting_after(sine):
                view = graph.graph.call_function(torch.ops.aten.view.default, (sine, [24]))
            with graph.graph.inserting_after(view):
                results.append(graph.graph.call_function(torch.ops.aten.cos.default, (view,)))
            view.meta["val"] = sine.meta["val"].as_strided((24,), (1,))
            results[-1].meta["val"] = view.meta["val"].cos()
        graph.graph.output_node().args = (tuple(results),)
        found.clear()
        run = execute.compile_graph(graph, "test", fixed=True)
        for _ in range(2):
            assert torch.equal(run([x])[0], x.sin().sum())
        assert len(found) == 2
        assert [text.count("[24, ]") for text in found] == ([1, 1] if viewed else [0, 0])  # the arguments of a view


def test_frees_are_where_they_were():
    x = torch.randn(64, 64)

    def chain(x):
        for _ in range(4):
            x = x.sin().t().cos().t().view(-1)[:4096].view(64, 64)
        return (x,)

    plain, fixed = execute.compile_graph(traced(chain, x), "plain"), execute.compile_graph(traced(chain, x), "fixed", fixed=True)
    fixed([x])
    assert peak_rise(lambda: fixed([x])) == peak_rise(lambda: plain([x]))


def test_a_number_in_the_place_of_a_tensor_keeps_its_operator(monkeypatch):
    found = sources(monkeypatch)
    x = torch.randn(4).half()
    run = execute.compile_graph(traced(lambda x: (x.mul(0.1), torch.mul(x, x)), x), "test", fixed=True)
    run([x])
    assert torch.equal(run([x])[0], x.mul(0.1)) and len(found) == 2


def test_a_run_learns_nothing_of_what_another_thread_looks_at_meanwhile():
    x, other = torch.randn(4, 6), torch.randn(6, 4).t()
    has_begun, is_over = threading.Event(), threading.Event()

    def sine(given):  # the run with x begins and ends after the other one has
        if given is x:
            has_begun.set()
        assert (is_over if given is x else has_begun).wait(60)
        return given.sin()

    graph = traced(lambda x: (x.sin(), x.t().cos()), x)
    next(node for node in graph.graph.nodes if node.target is torch.ops.aten.sin.default).target = sine
    run = execute.compile_graph(graph, "test", fixed=True)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(run, [other])
        second = pool.submit(run, [x])
        first.result(60)
        is_over.set()
        second.result(60)
    for given in (other, x, other):
        assert torch.equal(run([given])[1], given.t().cos())


def test_code_in_parts_of_which_nobody_asks_for_more_than_the_last_learns_too(monkeypatch):
    found = sources(monkeypatch)
    x, w = torch.randn(4, 6), torch.randn(6, 4)
    graph = traced(lambda x, w: (torch.mm(x, w), x.t().sin()), x, w)
    product = next(node for node in graph.graph.nodes if node.target is torch.ops.aten.mm.default)
    run = execute.compile_graph(graph, "test", fixed=True, parts=[Part(product, (0,)), Part(None, (1,))])
    for _ in range(3):
        left = run([x, w])
        assert torch.equal(next(left)[0], torch.mm(x, w)) and torch.equal(next(left)[0], x.t().sin())
    careful, fast = found
    assert careful.count("yield") == fast.count("yield") == 2
