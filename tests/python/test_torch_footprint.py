"""Budgets of the bytes that PyTorch's caching allocator reserves, by its model."""

import collections
import contextlib
import types

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.errors import size_text
from lowtide.torch import settings
from lowtide.torch.device import allocator as allocator_room
from lowtide.torch.device.allocations import allocations
from lowtide.torch.device.allocator import Allocator
from torch import nn
from torch_run import equal, twin

EXPANDABLE = "expandable_segments:True"
MIB = 1 << 20


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
    assert live.peak <= live.budget
    assert report.peak <= report.reserved <= report.budget
    whole = lowtide.footprint(lowtide.torch.capture(twin(plain), x, costs="flops"), allocator=allocator or "").reserved
    assert abs(report.budget / whole - .6) < .02, "a share of what the allocator reserves without a plan"
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
    of = {}
    for footprint in ("live", "reserved"):
        with pytest.raises(lowtide.torch.BudgetError) as caught:
            planned(module, x, budget="act:1%", footprint=footprint)
        torch._dynamo.reset()
        of[footprint] = caught.value.smallest
    smallest = of["live"]
    assert of["reserved"] > smallest
    with pytest.raises(lowtide.torch.BudgetError, match="no plan was found for which the allocator reserves") as caught:
        planned(module, x, budget=smallest, footprint="reserved")
    assert caught.value.smallest > caught.value.budget
    torch._dynamo.reset()
    _, report = planned(module, x, budget=caught.value.smallest, footprint="reserved")
    assert report.reserved <= caught.value.smallest


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"footprint": "arena"}, ValueError, "'live', 'reserved' or None, not 'arena'"),
    ({"allocator": "expandable_segments:maybe"}, ValueError, "right would be True or False"),
    ({"allocator": 3}, TypeError, "expandable_segments:True"),
    ({"allocator": "backend:cudaMallocAsync", "footprint": "reserved"}, ValueError, "cudaMallocAsync"),
])
def test_wrong_options_are_said_before_anything_is_traced(options, error, words):
    with pytest.raises(error, match=words):
        lowtide.torch.optimize(Net(), torch.randn(4, 128), budget="60%", **options)


def on_a_gpu(monkeypatch, allocator):
    """What `optimize` sees of a GPU's allocator, while the step runs on the CPU."""
    monkeypatch.setattr(settings, "allocator_of", lambda device: allocator)
    found = settings.Settings.default_footprint
    monkeypatch.setattr(settings.Settings, "default_footprint", lambda self, device: found(self, torch.device("cuda")))


def replayed(run, report):
    """What the model reserves for what code really allocates and frees; of storages of one size the latest is the first that is freed."""
    inputs = [size for size in (report.graph.resident_bytes, *(t.bytes for t in report.graph.tensors if t.producer is None)) if size]
    events, held = [("allocate", -at, size) for at, size in enumerate(inputs, 1)], collections.defaultdict(list)
    for number, size in enumerate(allocations(run)):
        if size > 0:
            held[size].append(number)
            events.append(("allocate", number, size))
        elif held[-size]:
            events.append(("free", held[-size].pop()))
    return lowtide.replay_allocations(events, report.allocator)["peaks"]["reserved"]


@pytest.mark.parametrize("allocator", ["", EXPANDABLE])
def test_on_a_gpu_the_budget_limits_reserved_bytes_by_the_settings_of_the_process(monkeypatch, allocator):
    on_a_gpu(monkeypatch, Allocator(allocator))
    module, x = Net(), torch.randn(16384, 128)
    step, report = planned(module, x, budget="60%")
    assert report.footprint == "reserved" and report.allocator == allocator and not report.live_because
    assert report.peak <= report.reserved <= report.budget

    def steps():
        for _ in range(2):
            module.zero_grad()
            step(x).backward()

    steps()
    module.zero_grad()
    assert abs(replayed(steps, report) / report.reserved - 1) < .02
    torch._dynamo.reset()
    _, live = planned(module, x, budget="60%", footprint="live")
    assert live.footprint == "live" and live.budget < report.budget


class Broken(Net):
    def forward(self, x):
        x = self.layers[:8](x)
        torch._dynamo.graph_break()
        return self.layers[8:](x).square().mean()


@pytest.mark.parametrize(("allocator", "module", "rows", "because"), [
    (Allocator(None, "PyTorch allocates by 'pluggable' here"), Net, 16384, "'pluggable'"),
    (Allocator(""), Net, 512, "less than 256 MiB"),
    (Allocator(""), Broken, 32768, "several graphs share the budget")])
def test_where_the_model_does_not_do_the_budget_limits_live_bytes_and_the_report_says_why(monkeypatch, allocator, module, rows, because):
    on_a_gpu(monkeypatch, allocator)
    step, report = planned(module(), torch.randn(rows, 128), budget="70%")
    assert report.footprint == "live" and because in report.live_because
    assert f"; the budget limits live bytes, not reserved ones: {report.live_because}" in str(report)


def test_options_that_need_the_model_of_the_allocator_are_refused_without_it(monkeypatch):
    monkeypatch.setattr(settings, "allocator_of", lambda device: Allocator(None, "PyTorch allocates by 'cudaMallocAsync' here"))
    gpu = torch.device("cuda")
    for options in ({"footprint": "reserved"}, {"layout": "prime"}, {"layout": "exact"}):
        with pytest.raises(ValueError, match=f"{[*options][0]}='.*' needs the model of the allocator: PyTorch allocates by 'cudaM"):
            settings.Settings("60%", **options).check_allocator(gpu)
        settings.Settings("60%", allocator="", **options).check_allocator(gpu)
    settings.Settings("60%").check_allocator(gpu)


def test_on_a_gpu_the_settings_are_those_of_the_process(monkeypatch):
    monkeypatch.setattr(settings, "allocator_of", lambda device: Allocator(EXPANDABLE))
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    for options, device, expected in (
            ({}, gpu, EXPANDABLE), ({"allocator": "max_split_size_mb:64"}, gpu, "max_split_size_mb:64"), ({}, cpu, None),
            ({"footprint": "reserved"}, cpu, ""), ({"footprint": "reserved"}, gpu, EXPANDABLE)):
        assert settings.Settings("60%", **options).allocator_on(device) == expected


class Memory:
    """What PyTorch tells of the memory of a GPU.  pool: that the next tensor lies in."""

    def __init__(self, monkeypatch, backend, pool=(0, 0), **told):
        self.pool = pool
        self.told = {"allocator_settings": told}
        monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: backend)
        monkeypatch.setattr(torch.cuda.memory, "_snapshot", lambda: self.told)
        monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: self.segments)
        monkeypatch.setattr(allocator_room, "untraced", lambda device: contextlib.nullcontext())
        monkeypatch.setattr(torch, "empty", self.empty)

    def empty(self, *_, device, **__):
        self.segments = [{"device": 0, "address": 1 << 30, "total_size": 2 << 20}, {"device": 1, "address": 1 << 31, "total_size": 2 << 20},
                         {"device": 0, "address": 1 << 31, "total_size": 2 << 20, "segment_pool_id": self.pool}]
        return types.SimpleNamespace(device=torch.device("cuda:0"), data_ptr=lambda: (1 << 31) + 512)


@pytest.mark.parametrize(("backend", "pool", "told", "expected", "unknown"), [
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE}, EXPANDABLE, ""),
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": ""}, "", ""),
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE, "expandable_segments": True, "max_split_size": -1}, EXPANDABLE, ""),
    # given in two strings, of which PyTorch remembers the last
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64", "expandable_segments": True, "max_split_size": 64 << 20},
     f"{EXPANDABLE},max_split_size_mb:64", ""),
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": EXPANDABLE, "expandable_segments": True, "max_split_size": 64 << 20},
     f"max_split_size_mb:64,{EXPANDABLE}", ""),
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": "per_process_memory_fraction:.5,expandable_segments:True"}, EXPANDABLE, ""),
    ("native", (0, 0), {"PYTORCH_CUDA_ALLOC_CONF": "a_key_of_later_versions:3"}, None, "a_key_of_later_versions"),
    ("native", (0, 7), {"PYTORCH_CUDA_ALLOC_CONF": ""}, None, "MemPool"),
    ("cudaMallocAsync", (0, 0), {}, None, "'cudaMallocAsync'"), ("pluggable", (0, 0), {}, None, "'pluggable'")])
def test_the_allocator_of_a_process_is_known_or_it_is_said_why_not(monkeypatch, backend, pool, told, expected, unknown):
    Memory(monkeypatch, backend, pool, **told)
    found = allocator_room.allocator_of(torch.device("cuda"))
    assert found.settings == expected and unknown in found.unknown and bool(found.unknown) == bool(unknown)


@pytest.mark.parametrize(("reserved", "beside"), [(64 * MIB, 0), (264 * MIB, 200 * MIB)])
def test_segments_that_others_hold_a_part_of_are_no_part_of_a_plan_s_budget(monkeypatch, reserved, beside):
    """A parameter of 44.5 MiB takes a segment of 46 in the model, as the process has it; beside it there are others."""
    graph = lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "tick": "ns", "outputs": [1],
        "tensors": [{"bytes": 89 * MIB // 2, "role": "parameter"}, {"bytes": 4 * MIB}], "ops": [{"inputs": [0], "outputs": [1], "time": 1}]})
    emptied = []
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: reserved)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 125 * MIB // 2)
    gpu = torch.device("cuda")
    assert settings.Settings("60%", footprint="reserved", allocator="").scattered(graph, gpu) == beside and emptied == [1]
    assert settings.Settings("60%", footprint="live", allocator="").scattered(graph, gpu) == 0


def test_a_budget_includes_what_lies_unused_in_segments_of_others(monkeypatch):
    on_a_gpu(monkeypatch, Allocator(""))
    module, x = Net(), torch.randn(16384, 128)
    _, alone = planned(module, x, budget="80%")
    torch._dynamo.reset()
    monkeypatch.setattr(settings.Settings, "scattered", lambda *_: 10 * MIB)
    _, report = planned(module, x, budget="80%")
    of_plan = lowtide.footprint(report.graph, report.plan).reserved
    assert report.beside == 10 * MIB and report.reserved == of_plan + 10 * MIB <= report.budget == alone.budget
    assert "of reserved bytes, of which 10 MiB lie unused in segments of others" in str(report)


def test_the_smallest_budget_of_a_refusal_includes_what_lies_unused_in_segments_of_others(monkeypatch):
    on_a_gpu(monkeypatch, Allocator(""))
    module, x = Net(), torch.randn(16384, 128)
    monkeypatch.setattr(settings.Settings, "scattered", lambda *_: 10 * MIB)
    with pytest.raises(lowtide.torch.BudgetError, match=r"10 MiB \(10485760 bytes\) that lie unused") as refused:
        planned(module, x, budget="20%")
    torch._dynamo.reset()
    _, report = planned(module, x, budget=refused.value.smallest)
    assert report.reserved <= report.budget == refused.value.smallest
