"""The option `layout`: what code asks of the allocator, and what it does where something lands elsewhere.

A stand-in for a pool of a GPU holds what is planned at every point, so that plugs land as they would beside it.
"""

import contextlib
import inspect
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from cuda_graph_support import StandIn
from lowtide.frontend.planning import layout
from lowtide.frontend.planning.best_fit import BestFit
from lowtide.frontend.planning.own_events import own_events
from lowtide.torch import settings
from lowtide.torch.compat import cuda
from lowtide.torch.device.allocations import allocations
from lowtide.torch.graphs import graph_layout
from lowtide.torch.runtime import arranged, recorded
from torch import nn
from torch_run import equal, twin
from torch_zoo import Cnn, Gpt

MIB = 1 << 20
BASE = 1 << 30


class Net(nn.Module):
    def __init__(self, broken=False):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(4) for part in (nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64), nn.Tanh())))
        self.broken = broken

    def forward(self, x):
        x = self.layers[:8](x)
        if self.broken:
            torch._dynamo.graph_break()
        return self.layers[8:](x).square().mean()


class Held:
    pass


class Pool:
    """A pool with one block.  astray: the number of an allocation that lands elsewhere, and from which memory has run out."""

    made: list["Pool"] = []
    astray, exhausted = None, None

    def __init__(self, device):
        self.block, self.inside_of, self.count = None, 0, 0
        Pool.made.append(self)

    @contextlib.contextmanager
    def inside(self):
        self.inside_of += 1
        try:
            yield
        finally:
            self.inside_of -= 1

    def allocate(self, size):
        assert self.inside_of, "what is held comes from the pool"
        self.count += 1
        if self.count == Pool.exhausted:
            raise torch.OutOfMemoryError("no memory")
        self.block = self.block or BestFit(size)
        offset, held = self.block.take(size), Held()
        weakref.finalize(held, self.block.give, offset)
        return held, BASE + offset + (512 if self.count == Pool.astray else 0)

    def is_empty(self):
        return self.block.is_whole()


class Block(arranged.ArrangedBlock):
    """Plays the events of a plan in the pool's block, those of a point before the next one begins.  points: in their order."""

    latest: "Block"

    def __init__(self, device):
        super().__init__(device, Pool)
        self.points, self._groups, self._left, self._begun, self.plays, Block.latest = [], [], [], False, True, self

    def expect(self, report):
        events = own_events(report.graph, report.plan, report.barrier)
        large = layout.large_of(events)
        self._groups = list(layout.groups([event for event in events if event.buffer in large], self.arrangement.firsts))

    @contextlib.contextmanager
    def half(self, *, forward):
        if forward:
            self._left, self._begun = list(self._groups), False
        with super().half(forward=forward):
            yield
        if not forward:
            self._play()
            assert not (self.plays and self._left), "every point began"

    def arrange(self, point):
        self.points.append(point)
        self._play()
        super().arrange(point)
        self._begun = True

    def _play(self):
        if not self.plays:
            return
        self._held.clear()
        block, offsets = self._place.pool.block, self.arrangement.offsets
        for event in self._left.pop(0) if self._begun else ():
            if event.bytes:  # plugs of the point are gone: what landed beside them is put where it is known to lie
                self._put(block, offsets[event.buffer], event.bytes)
            else:
                block.give(offsets[event.buffer])
        self._begun = False

    @staticmethod
    def _put(block, offset, size):
        room = 512 * -(-size // 512)
        begin = max(begin for begin in block._begins if begin <= offset)
        whole = block._begins[begin]
        block._remove(whole, begin)
        if offset > begin:
            block._add(offset - begin, begin)
        rest = begin + whole - offset - room
        block._taken[offset] = room
        if rest:
            block._add(rest, offset + room)


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    Pool.made, Pool.astray, Pool.exhausted = [], None, None


@pytest.fixture
def stands_in(monkeypatch):
    monkeypatch.setattr(settings.Settings, "check_allocator", lambda *_: None)
    monkeypatch.setattr(graph_layout, "ArrangedBlock", Block)


def planned(module, x, **options):
    step = lowtide.torch.optimize(module, x, costs="flops", fallback="error", time=None, work=20_000, **options)
    return step, lowtide.torch.reports()[-1]


def trained(step, module, x, steps=1):
    losses = []
    for _ in range(steps):
        module.zero_grad()
        losses.append(step(x))
        losses[-1].backward()
    return [*losses, *(p.grad for p in module.parameters())]


def test_code_allocates_what_the_events_say():
    module, x = Net(), torch.randn(8192, 64)
    step, report = planned(module, x, budget="60%")
    trained(step, module, x)
    module.zero_grad()
    seen = [size for size in allocations(lambda: step(x).backward()) if size > MIB]
    expected = [e.bytes for e in own_events(report.graph, report.plan, report.barrier) if e.tensor is not None and e.bytes > MIB]
    remaining = iter(seen)
    assert all(size in remaining for size in expected), "in this order, beside workspaces"
    assert len(expected) > 12


def test_every_allocation_lands_beside_its_plugs_with_the_same_bits(stands_in):
    torch.manual_seed(0)
    module, x = Net(), torch.randn(8192, 64)
    plain = twin(module)
    step, report = planned(module, x, budget="60%", layout="exact")
    block = Block.latest
    block.expect(report)
    assert equal(trained(step, module, x, 2), trained(plain, plain, x, 2))
    points = len(block.arrangement.plugs)
    assert block.points == [*range(points)] * 2 and block.lost == 0 and len(Pool.made) == 1
    assert sum(map(len, block.arrangement.plugs)) > 5
    assert report.layout == "exact" and report.allocator is None


@pytest.mark.parametrize("kind", ["batch norm", "parts"])
def test_code_of_all_kinds_begins_every_point_in_order(stands_in, kind):
    """... of ops whose results the next one makes, and of parts that share their code."""
    torch.manual_seed(0)
    if kind == "parts":
        module, inputs, options = Gpt(d=128, layers=3), torch.randint(128, (2, 32, 64)), {"techniques": "all", "budget": "60%"}
    else:
        module, inputs, options = Cnn(channels=32), (torch.randn(32, 3, 32, 32), torch.randint(10, (32,))), {"budget": "80%"}
    plain = twin(module)
    step, report = planned(module, tuple(inputs), layout="exact", **options)
    block = Block.latest
    block.expect(report)
    losses = [run(*inputs) for run in (step, plain)]
    for loss in losses:
        loss.backward()
    assert equal([losses[0], *(p.grad for p in module.parameters())], [losses[1], *(p.grad for p in plain.parameters())])
    assert block.points == [*range(len(block.arrangement.plugs))] and block.lost == 0


def test_with_copies_code_arranges_before_each_fetch_too(stands_in):
    module, x = Net(), torch.randn(8192, 64)
    step, report = planned(module, x, budget="50%", layout="exact", techniques=["recompute", "offload"], link="100GB/s,1us")
    block = Block.latest
    block.expect(report)
    trained(step, module, x)
    fetched = [i for i, (kind, *_) in enumerate(report.plan.steps) if kind == "prefetch"]
    assert fetched and {*fetched} <= {*block.arrangement.firsts} and block.lost == 0


@pytest.mark.parametrize(("how", "number"), [("astray", 4), ("exhausted", 4), ("exhausted", 1)])  # the first allocation is the block
def test_what_lands_elsewhere_ends_that_steps_arrangement_and_the_next_begins_with_a_new_block(stands_in, how, number):
    torch.manual_seed(0)
    module, x = Net(), torch.randn(8192, 64)
    plain = twin(module)
    setattr(Pool, how, number)  # of each pool: in the first point or soon after it
    step, report = planned(module, x, budget="60%", layout="exact")
    block = Block.latest
    block.expect(report)
    block.plays = False
    with pytest.warns(lowtide.torch.LowtideWarning, match="in 3 steps something did not land"):
        results = trained(step, module, x, 4)
    assert equal(results, trained(plain, plain, x, 4))
    assert block.lost == 3 and len(Pool.made) == 3 and all(not pool.inside_of for pool in Pool.made)


def test_a_forward_whose_block_is_in_use_runs_as_it_comes(stands_in):
    module, x = Net(), torch.randn(8192, 64)
    step, report = planned(module, x, budget="60%", layout="exact")
    block = Block.latest
    block.expect(report)
    trained(step, module, x)
    (pool,) = Pool.made
    with pool.inside():
        gradient = pool.allocate(2 * MIB)
    held = pool.count
    block.plays = False
    trained(step, module, x)
    assert pool.count == held and block.lost == 0, "nothing was held"
    del gradient
    block.plays = True
    trained(step, module, x)
    assert pool.count > held and block.lost == 0


class ArrangedGraph(StandIn):
    """A graph with a pool of memory that its backward shares.  cannot: is nothing recorded?"""

    cannot = False

    def __init__(self, device, before=None, generators=()):
        super().__init__(device, before, generators)
        self.memory = Pool(None) if before is None else before.memory

    def record(self, run):
        if ArrangedGraph.cannot:
            raise RuntimeError("operation not permitted when stream is capturing")
        return super().record(run)


@pytest.mark.parametrize("cannot", [False, True])
def test_a_recorded_step_has_its_block_in_the_graph_and_others_one_of_their_own(stands_in, monkeypatch, cannot):
    monkeypatch.setattr(recorded, "CudaGraph", ArrangedGraph)
    monkeypatch.setattr(recorded, "DEVICES", ("cpu",))
    monkeypatch.setattr(settings, "RECORDED", ("cpu",))
    monkeypatch.setattr(ArrangedGraph, "cannot", cannot)
    StandIn.made = []
    torch.manual_seed(0)
    module, x = Net(), torch.randn(8192, 64)
    plain = twin(module)
    step, report = planned(module, x, budget="60%", layout="exact", cuda_graph=True)
    block = Block.latest
    block.expect(report)
    with pytest.warns(lowtide.torch.LowtideWarning, match="not recorded") if cannot else contextlib.nullcontext():
        assert equal(trained(step, module, x, 5), trained(plain, plain, x, 5))
    runs = 5 if cannot else 3  # two as ever, and the recorded one
    assert block.points == [*range(len(block.arrangement.plugs))] * runs and block.lost == 0 and report.layout == "exact"
    own, of_graph, *after = Pool.made
    assert own.count and own.is_empty() and not own.inside_of
    assert bool(of_graph.count) is not cannot and len(after) == cannot  # a graph that is not recorded is followed by another own block
    assert [graph.replays for graph in StandIn.made] == ([0] if cannot else [3, 3])


@pytest.mark.parametrize("cuda_graph, layout", [(False, "prime"), (True, None)])
def test_where_no_block_is_found(stands_in, monkeypatch, cuda_graph, layout):
    monkeypatch.setattr(settings, "RECORDED", ("cpu",))
    monkeypatch.setattr(graph_layout, "arrangement", lambda *_: None)
    with pytest.warns(lowtide.torch.LowtideWarning, match="layout='exact': no block was found"):
        _, report = planned(Net(), torch.randn(2048, 64), budget="80%", layout="exact", cuda_graph=cuda_graph)
    assert report.layout == layout


def test_before_the_first_step_alone_one_block_is_taken(stands_in, monkeypatch):
    taken = []
    monkeypatch.setattr(graph_layout, "prime", lambda size, device: taken.append(size))
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 << 40)
    module, x = Net(), torch.randn(8192, 64)
    step, report = planned(module, x, budget="60%", layout="prime")
    assert not taken
    trained(step, module, x, 2)
    assert taken == [layout.block_size(report.graph, report.plan, report.barrier)]
    assert taken[0] >= report.peak - report.inputs - report.resident - 2 * MIB


def test_a_model_of_several_graphs_is_not_arranged(stands_in):
    module, x = Net(broken=True), torch.randn(2048, 64)
    with pytest.warns(lowtide.torch.LowtideWarning, match="models of one captured graph"):
        step = lowtide.torch.optimize(module, x, costs="flops", budget="80%", layout="exact", time=None, work=20_000)
        trained(step, module, x)
    assert {report.layout for report in lowtide.torch.reports()[-2:]} <= {"exact", None} and lowtide.torch.reports()[-1].layout is None


def test_a_report_tells_what_is_reserved_with_the_layout(stands_in):
    module, x = Net(), torch.randn(65536, 64)
    _, plain = planned(module, x, budget="60%", allocator="")
    torch._dynamo.reset()
    _, exact = planned(module, x, budget="60%", allocator="", layout="exact")
    assert exact.peak <= exact.reserved < plain.reserved and exact.better == []
    torch._dynamo.reset()
    _, within = planned(module, x, budget=exact.reserved, allocator="", layout="exact", footprint="reserved")
    assert within.reserved <= exact.reserved and within.overhead <= exact.overhead


@pytest.mark.parametrize(("options", "words"), [
    ({"layout": "arena"}, "'prime', 'exact' or None, not 'arena'"),
    ({"layout": "exact", "inner": "fused"}, "needs inner='eager'"),
    ({"layout": "prime"}, "the allocator of a cpu has no blocks"),
    ({"layout": "exact", "allocator": ""}, "the allocator of a cpu has no blocks"),
])
def test_where_it_cannot_be_used(options, words):
    with pytest.raises(ValueError, match=words):
        lowtide.torch.optimize(Net(), torch.randn(4, 64), budget="90%", **options)


def test_settings_that_cut_no_block_are_named():
    gpu = torch.device("cuda")
    for allocator in ("expandable_segments:True", "max_split_size_mb:128"):
        with pytest.raises(ValueError, match=allocator):
            settings.Settings("60%", layout="prime", allocator=allocator).check_allocator(gpu)
    settings.Settings("60%", layout="prime", allocator="garbage_collection_threshold:0.8").check_allocator(gpu)
    settings.Settings("60%", allocator="expandable_segments:True").check_allocator(gpu)


def test_states_that_a_step_makes_do_not_come_from_its_pool(monkeypatch):
    calls = []

    @contextlib.contextmanager
    def use_mem_pool(pool, device):
        calls.append("use")
        yield
        calls.append("leave")

    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "MemPool", type("MemPool", (), {"id": (0, 7)}))
    monkeypatch.setattr(torch.cuda, "use_mem_pool", use_mem_pool)
    for name in ("endAllocateToPool", "beginAllocateCurrentThreadToPool", "releasePool"):
        monkeypatch.setattr(torch._C, f"_cuda_{name}", lambda device, id_, name=name: calls.append((name, device, id_)), raising=False)
    module = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(module.parameters())
    step = lowtide.torch.step(module, optimizer, torch.randn(2, 4), lambda model, x: model(x).sum(), budget="100%", costs="flops",
                              time=None, work=1000)
    pool = cuda.OwnPool(torch.device("cuda", 1))
    with pool.inside():
        step(torch.randn(2, 4))
    out = [("endAllocateToPool", 1, (0, 7)), ("beginAllocateCurrentThreadToPool", 1, (0, 7)), ("releasePool", 1, (0, 7))]
    assert calls == ["use", *out, *out, "leave"], "for each parameter's state once"
    calls.clear()
    with pool.inside():
        step(torch.randn(2, 4))
    step(torch.randn(2, 4))
    assert calls == ["use", "leave"]


def test_a_pool_is_made_on_the_device_of_the_step_which_may_not_be_the_current_one(monkeypatch):
    current, made = [0], []

    @contextlib.contextmanager
    def device(index):
        current.append(index)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "current_device", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "device", device)
    monkeypatch.setattr(torch.cuda, "MemPool", lambda: made.append(current[-1]))
    cuda.OwnPool(torch.device("cuda", 1))
    cuda.OwnPool(torch.device("cuda"))
    assert made == [1, 0] and current == [0]


@pytest.mark.parametrize(("kind", "state", "is_empty"), [("large", "inactive", True), ("large", "active_allocated", False),
                                                         ("large", "active_awaiting_free", False), ("small", "active_allocated", True)])
def test_a_pool_is_empty_without_large_blocks_and_is_asked_for_no_record_of_the_users(monkeypatch, kind, state, is_empty):
    def snapshot(pool, include_traces):
        assert pool == (0, 7) and not include_traces
        return [{"segment_type": kind, "blocks": [{"state": "inactive"}, {"state": state}]}]

    assert {"mempool_id", "include_traces"} <= inspect.signature(torch.cuda.memory_snapshot).parameters.keys()
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(torch.cuda, "MemPool", type("MemPool", (), {"id": (0, 7)}))
    monkeypatch.setattr(torch.cuda, "memory_snapshot", snapshot)
    assert cuda.OwnPool(torch.device("cuda", 0)).is_empty() == is_empty


@pytest.mark.parametrize("options, expected", [({}, [False]), ({"layout": "exact"}, [False]), ({"cuda_graph": True}, [False, True])])
def test_workspaces_of_libraries_are_no_part_of_a_step_s_own_memory(monkeypatch, options, expected):
    """What is beside the plan may be given; the first product would still take its workspace from the block, or from a graph's memory."""
    taken = []
    monkeypatch.setattr(settings, "take_workspaces", lambda device, recorded=False: taken.append(recorded))
    assert settings.Settings("60%", reserve=5, **options).standing(0, torch.device("cuda"), None) == 5
    assert taken == expected
