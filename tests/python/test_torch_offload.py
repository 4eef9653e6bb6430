"""Tensors that go to the host and back: the bits of eager, the budget as measured, and every wait is needed."""

import copy
import gc
import os
import random
import subprocess
import sys
import textwrap
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.frontend.planning import as_code
from lowtide.frontend.planning.schedule import schedule
from lowtide.torch.device import link
from lowtide.torch.device.host import Host, host_of
from lowtide.torch.device.meter import measure_peak
from lowtide.torch.runtime import transfers
from lowtide.torch.settings import Settings
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch_run import deterministic, equal, fresh, gradients, train, twin
from torch_zoo import ZOO, Gpt, UNetOfSquares

import lowtide

LINK = "1GB/s,10us"
HOST = host_of(torch.device("cpu"))


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(*(m for _ in range(5) for m in (nn.Linear(32, 32), nn.GELU())))

    def forward(self, x):
        return self.body(x).square().mean()


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Mlp().body, Mlp().body

    def forward(self, x):
        x = self.first(x)
        torch._dynamo.graph_break()
        return self.second(x).square().mean()


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    torch.manual_seed(0)
    gc.collect()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def planned(module, inputs, budget="70%", techniques=("offload",), **options):
    options = {"link": LINK, "costs": "cpu", "work": 40_000, "time": None, "fallback": "error"} | options
    step = lowtide.torch.optimize(module, inputs, budget=budget, techniques=list(techniques), **options)
    return step, lowtide.torch.reports()[-1]


def mlp():
    return Mlp(), (torch.randn(512, 32),)


def both(run, make=mlp, **options):
    """run(module, step, inputs) on a plain twin and on a planned one: what each returned."""
    module, inputs = make()
    mine = twin(module)
    step, report = planned(mine, inputs, **options)
    assert report.offloaded
    return run(module, module, inputs), run(mine, step, inputs)


# ---- bits and budgets

ALONE, JOINT = ("offload",), ("recompute", "in_place", "offload")
ALL = (*JOINT, "split", "hoist")


@pytest.mark.parametrize(("name", "budget", "techniques"), [
    ("gpt_dropout", "act:45%", ALONE), ("unet", "act:70%", ALONE), ("dropout_mlp", "act:45%", JOINT),
    ("cnn", "act:70%", JOINT), ("gpt_dropout", "act:25%", ALL)])
def test_bits_are_those_of_eager_within_the_budget_as_measured(name, budget, techniques):
    module, inputs = fresh(ZOO[name])
    plain = twin(module)
    for _ in range(3):
        try:
            step, report = planned(module, inputs, budget, techniques)
            break
        except lowtide.torch.BudgetError as error:
            budget = error.smallest
    assert report.offloaded or techniques is ALL
    start = copy.deepcopy(module.state_dict())
    if not any("split" in words for words in report.transforms):
        assert equal(train(plain, inputs, plain), train(module, inputs, step))
        module.load_state_dict(start)
    module.zero_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.LowtideWarning)
        assert measure_peak(lambda: step(*inputs).backward(), held=(module, inputs)) <= report.budget


def test_a_plan_that_needs_copies_keeps_its_budget_from_the_first_step():
    module, inputs = mlp()
    with pytest.raises(lowtide.torch.BudgetError, match="proven"):
        planned(module, inputs, "60%", ("in_place",), link=None)
    torch._dynamo.reset()
    step, report = planned(module, inputs, "60%", ("in_place", "offload"))
    assert measure_peak(lambda: step(*inputs).backward(), held=(module, inputs)) <= report.budget


class Layers(nn.Module):
    """Hands out what its first layers make, which no code can copy."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(48, 48) for _ in range(5))

    def forward(self, x):
        made = []
        for layer in self.layers:
            x = torch.tanh(layer(x))
            made.append(x)
        return made[-1], *made[:2]


@pytest.mark.parametrize("techniques", [ALONE, JOINT], ids=["alone", "with others"])
def test_the_smallest_budget_that_is_named_is_that_of_copies_that_code_can_make(techniques):
    torch.manual_seed(0)
    module, inputs = Layers(), (torch.randn(64, 48),)
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(module, inputs, 1, techniques, work=5000)
    torch._dynamo.reset()
    _, report = planned(module, inputs, refused.value.smallest, techniques, work=5000)
    assert report.peak <= report.budget == refused.value.smallest
    with pytest.raises(lowtide.torch.BudgetError) as without:
        planned(module, inputs, 1, [name for name in techniques if name != "offload"] or ["in_place"], link=None, work=5000)
    assert refused.value.smallest <= without.value.smallest


def random_copies(program, rng, across=False):
    """The steps of the graph's own order, with copies wherever they may be; across: if it can be, those that begin in
    the forward, of what the backward reads before it gives it up."""
    graph = program.graph
    steps = list(lowtide.own_plan(graph).steps)
    ops = program.graph.ops
    uses = {}
    for at, (kind, what, *_) in enumerate(steps):
        if kind == "compute":
            for tensor in (*ops[what].inputs, *ops[what].outputs):
                uses.setdefault(tensor, []).append(at)
    begin = next(i for i, (kind, what, *_) in enumerate(steps) if kind == "compute" and what >= program.barrier)
    more = {}
    for tensor in sorted(program.movable()):
        at = uses[tensor]
        if len(at) > 1 and rng.random() < 0.7:
            gap = rng.randrange(len(at) - 1)
            crossing = [i for i in range(len(at) - 1) if at[0] < begin < at[i]] if across else []
            gap = crossing[0] if crossing else gap
            free = rng.randrange(at[gap], at[gap + 1])
            out, back = rng.randrange(at[0], begin if crossing else free + 1), rng.randrange(free, at[gap + 1])
            for place, order, kind in ((out, 0, "offload"), (free, 1, "free"), (back, 2, "prefetch")):
                more.setdefault(place, []).append((order, (kind, tensor)))
    made = []
    for at, step in enumerate(steps):
        made += [step, *(s for _, s in sorted(more.get(at, ())))]
    return made


def follow(monkeypatch, seed, across=False):
    """Have plans copy at random."""
    monkeypatch.setattr(as_code, "schedule",
                        lambda program, _: schedule(program, random_copies(program, random.Random(seed), across)))


@pytest.mark.parametrize("seed", range(6))
def test_copies_may_be_anywhere(seed, monkeypatch):
    follow(monkeypatch, seed)
    module, inputs = fresh(ZOO[("dropout_mlp", "cnn", "cells", "noise", "spectral", "transposed")[seed]])
    plain = twin(module)
    step, report = planned(module, inputs, "1TiB")
    assert report.offloaded
    assert equal(train(plain, inputs, plain), train(module, inputs, step))
    module.zero_grad()
    peak = measure_peak(lambda: step(*inputs).backward(), held=(module, inputs))
    assert abs(peak - report.peak) <= 64 + report.peak // 100


# ---- every wait is needed

def without_the_wait(name):
    if name == "gone":
        def gone(leaving):
            leaving.give_up()
            return leaving._host
        return gone
    return {"landed": lambda leaving: leaving._host, "arrive": lambda coming: coming._t}[name]


@pytest.mark.parametrize("name", ["gone", "landed", "arrive"])
def test_without_a_wait_the_bits_are_wrong(name, monkeypatch):
    follow(monkeypatch, 6, across=True)  # so that some copies land before the backward, and are given up within it
    module, inputs = Gpt(d=32, layers=1), tuple(torch.randint(128, (2, 8, 64)))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    called, real = [], getattr(transfers, name)
    for mutated in (False, True):
        torch._dynamo.reset()
        mine = twin(module)
        wait = without_the_wait(name) if mutated else lambda under_way: called.append(1) or real(under_way)
        monkeypatch.setattr(transfers, name, wait)
        step, _ = planned(mine, inputs, "1TiB")
        assert equal(expected, train(mine, inputs, step)) is not mutated
    assert called


@pytest.mark.parametrize("waits", [True, False])
def test_a_tensor_being_fetched_is_not_overwritten(waits, monkeypatch):
    if not waits:
        monkeypatch.setattr(transfers, "may_be_rewritten_after", lambda place: ())
    first, second = torch.arange(4000.0), torch.rand(4000)
    host = transfers.gone(transfers.leave(first.clone()))
    address = host.data_ptr()
    coming = transfers.fetch(host, [4000], [1], 0, torch.float32, host.device)
    del host
    again = transfers.landed(transfers.leave(second))
    assert again.data_ptr() == address  # the place is used again while the copy back is under way
    assert torch.equal(transfers.arrive(coming), first) is waits
    assert torch.equal(again.view(torch.float32), second)


# ---- copies come and go

def test_memory_does_not_grow():
    module, inputs = mlp()
    step, _ = planned(module, inputs)
    before, seen = HOST.bytes_now(), []
    for _ in range(100):
        step(*inputs).backward()
        module.zero_grad()
        seen.append((HOST.bytes_now(), HOST.held))
    assert set(seen) == {seen[0]} and seen[0][0] == before
    loss = step(*inputs)
    assert HOST.bytes_now() > before
    del loss  # a forward without a backward
    assert HOST.bytes_now() == before
    with torch.no_grad():
        step(*inputs)
    assert (HOST.bytes_now(), HOST.held) == seen[0]


def kept(module, step, inputs):
    loss = step(*inputs)
    loss.backward(retain_graph=True)
    loss.backward()
    return gradients(module)


def interleaved(module, step, inputs):
    first, second = step(*inputs), step(inputs[0] * 2)
    second.backward()
    first.backward()
    return gradients(module)


def accumulated(module, step, inputs):
    for factor in (1, 2, 3):
        step(inputs[0] * factor).backward()
    return gradients(module)


def on_the_cpu(module, step, inputs):
    with torch.autograd.graph.save_on_cpu():
        loss = step(*inputs)
    loss.backward()
    return gradients(module)


def packed_elsewhere(module, step, inputs):
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        loss = step(*inputs)
    loss.backward()
    return gradients(module)


@pytest.mark.filterwarnings("ignore::lowtide.torch.OverBudgetWarning")
@pytest.mark.parametrize(("run", "techniques"), [
    (kept, JOINT), (interleaved, JOINT), *((run, ALONE) for run in (kept, interleaved, accumulated, on_the_cpu, packed_elsewhere))])
def test_backwards_in_every_order(run, techniques):
    before = HOST.bytes_now()
    assert equal(*both(run, techniques=techniques, budget="65%", link="100GB/s"))
    gc.collect()
    assert HOST.bytes_now() == before


class OfAStream:
    """A copy to the host as in a GPU's stream: a wait for it is the device's, and the host may look earlier."""

    under_way: dict = {}  # by the address on the host

    def __init__(self, into, source):
        self.into, self.source = into, source
        self.under_way[into.data_ptr()] = self

    def wait(self):
        if self.source is not None:
            self.source = self.source.clone()  # which may be given up now

    def finish(self):
        if self.source is not None:
            self.into.copy_(self.source)
        self.source = None

    def abandon(self):
        pass


@pytest.mark.filterwarnings("ignore::lowtide.torch.OverBudgetWarning")
@pytest.mark.parametrize("run", [on_the_cpu, packed_elsewhere])
def test_hooks_on_saved_tensors_read_copies_on_the_host_that_have_ended(monkeypatch, run):
    begin = transfers._begin

    def queued(into, source, after, way):
        earlier = OfAStream.under_way.get(source.data_ptr())
        if way == "in" and earlier is not None:
            earlier.finish()
        return begin(into, source, after, way) if way == "in" else OfAStream(into, source)

    monkeypatch.setattr(transfers, "_begin", queued)
    monkeypatch.setattr(OfAStream, "under_way", {})
    assert equal(*both(run, techniques=ALONE, budget="65%", link="100GB/s"))
    assert OfAStream.under_way


def test_a_kept_graph_whose_backward_gives_up_what_was_saved(monkeypatch):
    follow(monkeypatch, 6)
    expected, got = both(kept, lambda: (Gpt(d=32, layers=1), tuple(torch.randint(128, (2, 8, 64)))), budget="1TiB")
    assert equal(expected, got)


def test_compiled_autograd_runs_backwards_that_fetch():
    def run(module, step, inputs):
        if step is module:
            step(*inputs).backward()
        else:
            with torch._dynamo.compiled_autograd._enable(torch.compile(backend="eager")):
                step(*inputs).backward()
        return gradients(module)

    assert equal(*both(run))


def test_dynamo_runs_transfers_as_they_are():
    """With CPython 3.13 it crashes where it compiles their methods."""
    rules = torch._dynamo.trace_rules
    for function in (transfers.leave, transfers.Coming.__init__, transfers.QueuedCopy.wait, host_of):
        assert rules.check(function), function
    assert not rules.check(planned)


def test_an_exception_leaves_nothing_behind(monkeypatch):
    module, inputs = mlp()
    mine = twin(module)
    step, _ = planned(mine, inputs)
    before, calls = HOST.bytes_now(), []

    def fails(tensor):
        calls.append(1)
        raise RuntimeError("from a hook")

    handle = mine.body[0].weight.register_hook(fails)
    with pytest.raises(RuntimeError, match="from a hook"):
        step(*inputs).backward()
    handle.remove()
    torch._dynamo.reset()
    real, twice = transfers.arrive, twin(module)

    def arrive(coming):  # in the middle of a backward
        if len(calls) == 1:
            calls.append(1)
            raise RuntimeError("no memory")
        return real(coming)

    monkeypatch.setattr(transfers, "arrive", arrive)
    step, _ = planned(twice, inputs)
    with pytest.raises(RuntimeError, match="no memory"):
        step(*inputs).backward()
    gc.collect()
    assert HOST.bytes_now() == before and len(calls) == 2
    twice.zero_grad()
    assert equal(train(module, inputs, module), train(twice, inputs, step))


def test_places_have_exact_sizes_and_are_given_back_beyond_the_limit(monkeypatch):
    ended = []
    monkeypatch.setattr("lowtide.torch.device.host._register", lambda *_: True)
    monkeypatch.setattr("lowtide.torch.device.host.Place.end", lambda place: ended.append(len(place.memory)))
    host = Host(5 * 4096)
    a, b = (host.take(n) for n in (3 * 4096, 4097))
    assert host.held == 5 * 4096 and a[1].pinned and b[1].pinned and host.place_of(a[0]) is a[1]
    address = a[0].data_ptr()
    del a
    assert host.bytes_now() == 4097
    again, _ = host.take(3 * 4096 - 5)
    assert again.data_ptr() == address and not ended
    del again
    other, place = host.take(100)  # the free one goes first
    assert ended == [3 * 4096] and place.pinned and host.held == 3 * 4096
    assert not host.take(4 * 4096)[1].pinned


def test_nothing_needs_numpy():
    """Which nothing requires: a step that copies to the host, where numpy cannot be imported."""
    words = textwrap.dedent("""
        import sys, warnings
        sys.modules["numpy"] = None
        warnings.simplefilter("ignore")
        import torch, lowtide.torch
        from lowtide.torch.device.host import Host
        host = Host(0)
        for size in (0, 1, 5000):
            made, place = host.take(size)
            made.fill_(7)
            assert made.numel() == size and host.bytes_now() == size and (size == 0 or host.place_of(made) is place)
            assert place.tensor(size)[0].sum() == 7 * size
            del made
            assert host.bytes_now() == 0
        module = torch.nn.Sequential(*(m for _ in range(4) for m in (torch.nn.Linear(64, 64), torch.nn.Tanh())))
        x = torch.randn(256, 64)
        module(x).sum().backward()
        expected = [p.grad.clone() for p in module.parameters()]
        module.zero_grad()
        step = lowtide.torch.optimize(module, (x,), budget="act:80%", techniques=["offload"], link="1GB/s,10us",
                                      costs="cpu", work=20_000, time=None, fallback="error")
        assert lowtide.torch.reports()[-1].offloaded
        step(x).sum().backward()
        assert all(map(torch.equal, [p.grad for p in module.parameters()], expected))
        assert sys.modules["numpy"] is None
    """)
    run = subprocess.run([sys.executable, "-c", words], capture_output=True, text=True, env=os.environ | {"LOWTIDE_CACHE": "off"})
    assert run.returncode == 0, run.stderr


# ---- what else there is

def test_regions_that_share_a_budget_copy():
    module, inputs = Broken(), (torch.randn(512, 32),)
    plain = twin(module)
    step, _ = planned(module, inputs, "60%")
    made = lowtide.torch.reports()[-2:]
    assert any(report.offloaded for report in made)
    assert equal(train(plain, inputs, plain), train(module, inputs, step))
    module.zero_grad()
    assert measure_peak(lambda: step(*inputs).backward(), held=(module, inputs)) <= made[-1].budget


@pytest.mark.parametrize("whole", [False, True])
def test_updates_in_the_backward_and_whole_steps_copy(whole):
    def trained(module, inputs, ours):
        optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
        options = {"link": LINK, "costs": "cpu", "work": 20_000, "time": None, "techniques": ["offload"]}
        if ours and whole:
            step = lowtide.torch.step(module, optimizer, inputs, budget="75%", **options)
            losses = [step(*inputs) for _ in range(3)]
        else:
            run = lowtide.torch.optimize(module, inputs, budget="75%", optimizer=optimizer, update="backward",
                                         fallback="error", **options) if ours else module
            losses = []
            for _ in range(3):
                loss = run(*inputs)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                losses.append(loss.detach())
        return [*losses, *module.parameters()]

    module, inputs = mlp()
    expected, got = trained(twin(module), inputs, False), trained(module, inputs, True)
    assert lowtide.torch.reports()[-1].offloaded
    assert equal(expected, got)


def test_the_link_is_measured_once_and_kept(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    link.measured_link.cache_clear()
    found = link.measured_link(torch.device("cpu"))
    assert found.alone > 10_000_000 and found.together > 10_000_000 and found.latency >= 0
    link.measured_link.cache_clear()
    monkeypatch.setattr(link, "_measured", lambda _: pytest.fail("measured again"))
    assert link.measured_link(torch.device("cpu")) == found
    link.measured_link.cache_clear()


def test_the_link_is_measured_by_real_copies_while_a_step_is_traced(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    copied = []
    clocked = link._clocked

    def timed(into, source):
        copied.append({type(into), type(source)})
        return clocked(into, source)

    monkeypatch.setattr(link, "_clocked", timed)
    link.measured_link.cache_clear()
    with FakeTensorMode():
        found = link.measured_link(torch.device("cpu"))
    link.measured_link.cache_clear()
    assert copied and all(types == {torch.Tensor} for types in copied) and found.alone > 0 and found.latency >= 0


def test_the_latency_of_a_copy_on_a_gpu_includes_queueing_by_the_host(monkeypatch):
    """A copy of a few KiB takes nothing beside that, so plans would make hundreds of them."""
    seconds = {(link._SMALL, False): 1e-5, (link._LARGE, False): 1.2e-3, (link._LARGE, True): 1.6e-3}
    monkeypatch.setattr(link, "_seconds", lambda host, size, device, together: seconds[size, together])
    monkeypatch.setattr(link, "_queueing_seconds", lambda device: 1e-4)
    (alone, together, latency), (_, _, emulated) = (link._measured(torch.device(kind)) for kind in ("cuda", "cpu"))
    assert alone == pytest.approx(link._LARGE / 1.19e-3, rel=1e-6) and together == pytest.approx(link._LARGE / 1.59e-3, rel=1e-6)
    assert latency == 100_000 and emulated == 10_000


def test_the_link_of_a_caller_goes_before_that_of_a_device_and_that_before_the_measured_one(monkeypatch):
    monkeypatch.setattr("lowtide.torch.settings.measured_link", lambda _: link.Link(3, 2, 5))

    def told(**options):
        return Settings(budget=1, techniques=["offload"], **options).planning(True, torch.device("cpu"))["link"]

    assert told() == told(costs="cpu") == "3B/s,5ns"
    assert told(state_home="host") == "2B/s,5ns"  # states come and go at the same time
    assert told(costs="a100") == "25000000000B/s,10000ns" and told(costs="a100", link=LINK) == LINK


def test_on_a_gpu_plans_copy_by_default_and_on_a_cpu_if_that_is_named():
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    for techniques, there, here in ((None, True, False), ("default", True, False), ("all", True, False),
                                    ("recompute", False, False), (["offload"], True, True), ("default,offload", True, True)):
        settings = Settings(budget=1, techniques=techniques)
        assert ("offload" in settings.on(gpu).techniques, "offload" in settings.on(cpu).techniques) == (there, here)
        transforms = {"split", "hoist", "substitute"}
        assert settings.on(cpu).without_transforms().on(cpu).techniques == settings.on(cpu).techniques - transforms
    assert "offload" not in Settings(budget=1, costs="flops").on(gpu).techniques


def test_the_report_says_what_left(tmp_path):
    _, report = planned(*mlp())
    (technique,) = report.techniques
    assert technique.name == "offload" and technique.saved == report.own_peak - report.peak
    assert technique.modules.total() == len(report.offloaded) and "body" in next(iter(technique.modules))
    sizes = {tensor.name: tensor.bytes for tensor in report.graph.tensors}
    assert report.link == LINK and report.offloaded.items() <= sizes.items()
    assert 512 * 32 * 4 in report.offloaded.values()
    assert technique.cost == pytest.approx(report.overhead)
    report.save_html(tmp_path / "plan.html")
    drawn = '"bytesOut":'
    assert drawn in (tmp_path / "plan.html").read_text() and drawn not in lowtide.report_html(report.graph)


def test_the_report_says_what_a_plan_takes_over_the_whole_link():
    slow, fast = (planned(*mlp(), costs="cpu", link=link)[1] for link in ("20MB/s,10us", "1TB/s,0us"))
    assert slow.offloaded and slow.own_duration < slow.duration_full_link < slow.duration
    waits, derated = (took - slow.own_duration for took in (slow.duration_full_link, slow.duration))
    assert waits == pytest.approx(0.9 * derated, rel=0.1)  # all that it waits for is the link
    assert fast.duration_full_link == pytest.approx(fast.duration, rel=1e-3)
    _, alone = planned(*mlp(), budget="100%", techniques=["in_place"], link=None)
    assert alone.duration_full_link == alone.duration


def test_plans_are_kept_with_their_link(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    module, inputs = mlp()
    first = planned(module, inputs)[1]
    torch._dynamo.reset()
    again = planned(module, inputs)[1]
    torch._dynamo.reset()
    other = planned(module, inputs, link="100MB/s,10us")[1]
    assert (first.cached, again.cached, other.cached) == (False, True, False)
    assert again.offloaded == first.offloaded and again.duration == first.duration < other.duration


def test_explain_knows_the_link(capsys):
    module, inputs = mlp()
    options = {"costs": "cpu", "points": 3, "time": 0.5, "techniques": ["offload"], "show": False}
    fast, slow = (lowtide.torch.explain(module, inputs, link=rate, **options) for rate in ("100GB/s", "100MB/s"))
    assert fast.smallest.peak < fast.curve.own_peak and fast.smallest.plan.machine
    assert fast.smallest.overhead < slow.smallest.overhead
    planned_ = planned(twin(module), inputs, fast.smallest.peak, link="100GB/s")[1]
    assert planned_.peak <= fast.smallest.peak


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here")
class TestGpu:
    @pytest.fixture(autouse=True)
    def repeatable(self, monkeypatch):
        with deterministic(monkeypatch):
            yield

    @pytest.mark.parametrize("entry", [
        ZOO["gpt_dropout"], ZOO["dropout_mlp"],
        lambda: (UNetOfSquares(), (torch.randn(2, 3, 32, 32), torch.randint(4, (2, 32, 32))))], ids=["gpt", "mlp", "unet"])
    def test_bits_and_budget(self, entry):
        module, inputs = fresh(entry)
        module, inputs = module.cuda(), tuple(t.cuda() for t in inputs)
        plain = twin(module)
        step, report = planned(module, inputs, "act:70%", link=None, reserve=0)
        assert report.offloaded and report.link
        held = host_of(torch.device("cuda")).held
        for i in range(20):  # races show by chance
            torch.manual_seed(i)
            expected = F.relu(plain(*inputs))
            torch.manual_seed(i)
            got = F.relu(step(*inputs))
            expected.backward()
            got.backward()
            assert torch.equal(expected, got) and equal(gradients(plain), gradients(module))
            plain.zero_grad()
            module.zero_grad()
        assert held == 0 or host_of(torch.device("cuda")).held >= held
        beside = torch.cuda.memory_allocated() - report.inputs
        assert measure_peak(lambda: step(*inputs).backward(), held=(module,)) - beside <= report.budget * 1.01

    def test_places_are_pinned_and_copies_do_not_hold_up_the_host(self):
        t = torch.randn(1 << 20, device="cuda")
        kept = t.clone()
        leaving = transfers.leave(t)
        host = transfers.gone(leaving)
        assert host.is_pinned() and not host._is_view()
        coming = transfers.fetch(host, [1 << 20], [1], 0, torch.float32, t.device)
        assert torch.equal(transfers.arrive(coming), kept)

    def test_a_copy_back_that_nobody_waits_for_does_no_harm(self):
        host = transfers.landed(transfers.leave(torch.ones(1 << 22, device="cuda")))
        for _ in range(20):
            coming = transfers.fetch(host, [1 << 22], [1], 0, torch.float32, torch.device("cuda", 0))
            del coming
            zeros = torch.zeros(1 << 22, device="cuda")  # likely in the same block
            assert not zeros.any()
