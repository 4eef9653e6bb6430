"""A user's profiler sees what it would see without Lowtide, whatever is planned within, and plans are those without it."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device.allocations import allocations, in_own_thread
from lowtide.torch.device.meter import above_rest, peak_rise, workspace
from torch import nn
from torch.profiler import ProfilerActivity, _ExperimentalConfig, profile, schedule
from torch_run import alone


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


CPU = [ProfilerActivity.CPU]
PROFILERS = {
    "memory": lambda: profile(activities=CPU, profile_memory=True),
    "shapes": lambda: profile(activities=CPU, record_shapes=True, with_flops=True),
    "all threads": lambda: profile(activities=CPU, experimental_config=_ExperimentalConfig(profile_all_threads=True)),
    "autograd": lambda: torch.autograd.profiler.profile(profile_memory=True),
    "legacy": lambda: torch.autograd.profiler_legacy.profile(profile_memory=True),
}


def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.GELU(), nn.Flatten(), nn.Linear(8 * 14 * 14, 5)), torch.randn(4, 3, 16, 16)


@functools.cache
def trained_before():
    return trained()


def trained():
    """Compiles, plans, runs a step; what the plan takes, and the workspaces of its graph."""
    torch._dynamo.reset()
    module, x = model()
    run = torch.compile(module, backend="lowtide", options={"budget": "8GiB", "time": None, "work": 1000, "fallback": "error"})
    run(x).square().mean().backward()
    report = lowtide.torch.reports()[-1]
    return report.peak, [(op.kind, op.workspace) for op in report.graph.ops]


@pytest.mark.parametrize("name", PROFILERS)
def test_a_step_that_is_planned_within_a_profiler_is_in_its_trace(name):
    expected = trained_before()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        with PROFILERS[name]() as seen:
            torch.ones(100).cumsum(0)
            got = trained()
            torch.ones(100).cumprod(0)
    names = {event.key for event in seen.key_averages()}
    assert {"aten::cumsum", "aten::cumprod"} <= names, "what the user has run before and after is there"
    assert any("convolution_backward" in name for name in names), "and so is the step"
    assert got == expected, "workspaces are known within it, too"


def test_a_schedule_goes_on():
    traces = []
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2), profile_memory=True,
                 on_trace_ready=lambda p: traces.append({event.key for event in p.key_averages()})) as seen:
        for i in range(4):
            torch.ones(100).cumsum(0)
            if i in (0, 1, 2):  # while it waits, warms up and records
                trained()
            seen.step()
    assert len(traces) == 1 and "aten::cumsum" in traces[0] and "aten::convolution_backward" in traces[0]


def test_kernels_that_run_for_their_prices_are_not_in_a_trace():
    module, x = model()
    with profile(activities=CPU) as seen:
        torch.ones(100).cumsum(0)
        lowtide.torch.optimize(module, x, budget="100%", time=None, work=1000)
    names = {event.key for event in seen.key_averages()}
    assert "aten::cumsum" in names and not any("mkldnn" in name for name in names)


def test_measure_peak_leaves_a_profiler_alone():
    module, x = model()
    expected = lowtide.torch.measure_peak(lambda: module(x).sum().backward(), held=(module, x))
    for name, make in PROFILERS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            with make() as seen:
                torch.ones(100).cumsum(0)
                if name == "all threads":  # it looks at no thread in particular
                    module.zero_grad()
                    assert lowtide.torch.measure_peak(lambda: module(x).sum().backward(), held=(module, x)) == expected
                else:
                    with pytest.raises(RuntimeError, match="a profiler runs here"):
                        lowtide.torch.measure_peak(lambda: module(x), held=(module, x))
        assert "aten::cumsum" in {event.key for event in seen.key_averages()}
    module.zero_grad()
    assert lowtide.torch.measure_peak(lambda: module(x).sum().backward(), held=(module, x)) == expected


def test_allocations_of_a_run_are_recorded():
    x, kept = torch.randn(1000), []
    assert peak_rise(lambda: (x + x) + x) == 8000
    assert allocations(lambda: (x + x).sum()) == [4000, 4, -4, -4000] or sum(allocations(lambda: (x + x).sum())) == 0
    assert workspace(lambda: x + x, x.device) == 0 and workspace(lambda: (x + x).sum(), x.device) == 4000
    assert peak_rise(lambda: kept.append(x + x)) == 4000 and peak_rise(kept.clear) == 0


def test_a_thread_of_its_own_hands_on_results_and_errors():
    with torch.inference_mode():
        assert in_own_thread(torch.is_inference_mode_enabled) is False
    with pytest.raises(ZeroDivisionError):
        in_own_thread(lambda: 1 // 0)
    assert all(sum(allocations(lambda: torch.ones(64))) == 0 for _ in range(2))
    with pytest.raises(ZeroDivisionError):
        allocations(lambda: 1 // 0)
    assert allocations(lambda: None) == []


def test_pieces_of_a_workspace_that_follow_each_other_take_the_largest():
    gpu, cpu = torch.device("cuda"), torch.device("cpu")
    assert above_rest([100, -100, 1000, -1000, 4], cpu) == 996
    assert above_rest([100, -100, 1000, -1000, 4], gpu) == 1024 - 512  # in blocks of 512 bytes
    assert above_rest([100, 50], cpu) == 0
    assert above_rest([-100, 40], cpu) == 0  # what was there before is none of its own
