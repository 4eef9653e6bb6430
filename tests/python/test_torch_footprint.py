"""Budgets of the bytes that PyTorch's caching allocator reserves, by its model."""

import collections
import contextlib
import types

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.errors import size_text
from lowtide.frontend.planning.taken import AllocatorState
from lowtide.torch import settings
from lowtide.torch.api import entry
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


def test_settings_of_the_environment_hold_where_no_others_were_given(monkeypatch):
    Memory(monkeypatch, "native", PYTORCH_CUDA_ALLOC_CONF="")
    monkeypatch.setenv("PYTORCH_ALLOC_CONF", "roundup_power2_divisions:4")
    assert allocator_room.allocator_of(torch.device("cuda")).settings == "roundup_power2_divisions:4"


def segment(*blocks, stream=0, pool=(0, 0), small=False, expandable=False, device=0, address=0):
    """As torch.cuda.memory_snapshot has it.  blocks: bytes, and whether they are used."""
    return {"device": device, "address": address, "total_size": sum(size for size, _ in blocks), "stream": stream, "segment_pool_id": pool,
            "segment_type": "small" if small else "large", "is_expandable": expandable, "blocks": [{"size": size, "state": "active_allocated" if used else "inactive"} for size, used in blocks]}


def holding(monkeypatch, segments):
    """A GPU whose allocator holds these segments."""
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda _: types.SimpleNamespace(cuda_stream=0))
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    used = sum(b["size"] for s in segments for b in s["blocks"] if b["state"] != "inactive" and s["device"] == 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: used)
    return used


SCATTERED = [
    segment((4 * MIB, True), (12 * MIB, False), (4 * MIB, True)), segment((32 * MIB, True), (68 * MIB, False)),
    segment((3 * MIB, False), (45 * MIB, True)), segment((512, True), (1536, True), (2 * MIB - 2048, False), small=True)]
ELSEWHERE = [segment((20 * MIB, True), stream=7), segment((6 * MIB, False), (30 * MIB, True), stream=7),
             segment((20 * MIB, False), pool=(0, 3))]


@pytest.mark.parametrize(("segments", "allocator"), [
    (SCATTERED, ""), (SCATTERED + ELSEWHERE, ""), ([segment((40 * MIB, True), (12 * MIB, False), (8 * MIB, True), expandable=True),
      segment((512, True), (2 * MIB - 512, False), small=True, expandable=True, address=1 << 40)], EXPANDABLE),
    ([segment((34 * MIB, True), (6 * MIB, False), expandable=True),  # beside 40 MiB that are not mapped
      segment((5 * MIB, False), (15 * MIB, True), expandable=True, address=80 * MIB)], EXPANDABLE)])
def test_the_model_of_the_allocator_is_brought_into_the_state_of_the_process(monkeypatch, segments, allocator):
    """What requests take then: they lie in free blocks of this stream, and nowhere else."""
    used = holding(monkeypatch, [*segments, segment((64 * MIB, True), device=1)])
    state = allocator_room.allocator_state(torch.device("cuda"))
    assert state.in_use == used
    total = sum(b["size"] for s in segments for b in s["blocks"])
    free = [(s, b["size"]) for s in segments for b in s["blocks"] if b["state"] == "inactive"]
    ours = [(s, size) for s, size in free if (s["stream"], s["segment_pool_id"]) == (0, (0, 0))]
    end = lowtide.replay_allocations(state.events, allocator)["end"]
    assert end["reserved"] == total and end["allocated"] == total - sum(size for _, size in ours)
    fills = [("allocate", number, size) for number, size in enumerate(size for s, size in ours if s["segment_type"] == "large")]
    assert lowtide.replay_allocations([*state.events, *fills], allocator)["end"]["reserved"] == total
    assert lowtide.replay_allocations([*state.events, *fills, ("allocate", 99, 2 * MIB)], allocator)["end"]["reserved"] > total


def test_the_state_of_an_allocator_is_read_only_where_plans_are_for_it_and_budgets_limit_reserved_bytes(monkeypatch):
    holding(monkeypatch, SCATTERED)
    monkeypatch.setattr(settings, "allocator_of", lambda _: Allocator(""))
    gpu = torch.device("cuda")
    assert settings.Settings("60%", footprint="reserved", allocator="").allocator_state(gpu) is not None
    assert settings.Settings("60%", footprint="reserved", allocator=EXPANDABLE).allocator_state(gpu) is None
    rounding = "roundup_power2_divisions:4"
    monkeypatch.setattr(settings, "allocator_of", lambda _: Allocator(rounding))
    assert settings.Settings("60%", footprint="reserved", allocator=rounding).allocator_state(gpu) is None
    monkeypatch.setattr(settings, "allocator_of", lambda _: Allocator(""))
    assert settings.Settings("60%", footprint="live", allocator="").allocator_state(gpu) is None
    assert settings.Settings("60%", footprint="reserved", allocator="").allocator_state(torch.device("cpu")) is None


@pytest.mark.parametrize("home", ["device", "host"])
def test_a_step_from_an_allocator_that_holds_nothing_takes_no_more(home):
    state = {"bytes": 100 * MIB, "role": "state", **({"home": "host"} if home == "host" else {})}
    graph = lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "tick": "ns", "outputs": [4],
        "tensors": [{"bytes": 4 * MIB, "role": "input"}, state, {"bytes": 30 * MIB, "role": "parameter"}, {"bytes": 50 * MIB}, {"bytes": 4}],
        "ops": [{"inputs": [0, 2], "outputs": [3], "time": 1}, {"inputs": [1, 3], "outputs": [4], "time": 1}]})
    assert abs(AllocatorState((), 0).beside(graph, "")) <= 20 * MIB  # a segment of small tensors


@pytest.fixture
def scattered(monkeypatch):
    """A GPU on which others use a sixth of 288 MiB."""
    on_a_gpu(monkeypatch, Allocator(""))
    with monkeypatch.context() as only:
        holding(only, [segment((8 * MIB, True), (40 * MIB, False)) for _ in range(6)])
        state = allocator_room.allocator_state(torch.device("cuda"))
    monkeypatch.setattr(settings.Settings, "allocator_state", lambda *_: state)
    return state


def test_a_plan_keeps_a_budget_of_reserved_bytes_from_the_state_of_the_allocator(scattered):
    module, x = Net(), torch.randn(16384, 128)
    _, report = planned(module, x, budget=320 * MIB)  # mostly within the free blocks
    assert report.allocator_state is scattered and 288 * MIB <= report.reserved <= report.budget == 320 * MIB
    assert lowtide.footprint(report.graph, report.plan).reserved > 32 * MIB


def test_the_smallest_budget_of_a_refusal_is_kept_from_the_state_of_the_allocator(scattered):
    module, x = Net(), torch.randn(16384, 128)
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(module, x, budget="20%")
    torch._dynamo.reset()
    _, report = planned(module, x, budget=refused.value.smallest)
    assert report.reserved <= report.budget == refused.value.smallest


def test_what_a_rehearsal_has_copied_is_given_back_to_the_device(monkeypatch):
    emptied = []
    monkeypatch.setattr(entry, "gpus_of", lambda *_: [0])
    monkeypatch.setattr(torch.random, "fork_rng", lambda devices: contextlib.nullcontext())
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: emptied.append(1))
    planned(Net(), torch.randn(512, 128), budget="100%")
    assert emptied == [1]
