"""Copies in streams, on a stand-in for a GPU's: what a copy waits for, who waits for it, and what is current behind it.

Each stream has a vector clock: for every stream, the last piece of its work that has ended for certain before what is queued
here next.  Work is numbered in its stream.
"""

import contextlib

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.compat.autograd import when_backward_ends
from lowtide.torch.device import link, queued_copy
from lowtide.torch.device.meter import measure_peak
from lowtide.torch.device.stream_order import wait_when_backward_ends
from torch._subclasses.fake_tensor import FakeTensorMode


class StandIn:
    """torch.cuda with two devices; work: what was queued, in order: stream, the clock at its beginning, the device that was
    current."""

    def __init__(self):
        self.device, self.work = 0, []
        self.streams = [Stream(self, index) for index in range(2)]

    def current_device(self):
        return self.device

    def set_device(self, index):
        self.device = index

    def current_stream(self, index=None):
        index = index.index if isinstance(index, torch.device) else index
        return self.streams[self.device if index is None else index]

    def set_stream(self, stream):
        self.device = stream.index
        self.streams[stream.index] = stream

    def Stream(self, device):
        return Stream(self, device.index)

    def Event(self):
        return Event()

    def queue(self, fails=False):
        if fails:
            raise RuntimeError("a copy that fails")
        stream = self.current_stream()
        self.work.append((stream, dict(stream.clock), self.device))
        stream.clock[stream] = stream.clock.get(stream, 0) + 1
        return stream.clock[stream]


class Stream:
    def __init__(self, gpu, index):
        self.gpu, self.index, self.clock = gpu, index, {}

    def wait_event(self, event):
        for stream, count in event.clock.items():
            self.clock[stream] = max(self.clock.get(stream, 0), count)

    def wait_stream(self, other):
        self.wait_event(other)


class Event:
    def record(self, stream):
        self.clock = dict(stream.clock)


class Tensor:
    is_cuda = True

    def __init__(self, gpu, index=0, fails=False):
        self.gpu, self.device, self.fails = gpu, torch.device("cuda", index), fails

    def copy_(self, source, non_blocking):
        assert non_blocking, "the host goes on"
        self.gpu.queue(self.fails)


@pytest.fixture
def gpu(monkeypatch):
    gpu = StandIn()
    for name in ("current_device", "set_device", "current_stream", "set_stream", "Stream", "Event"):
        monkeypatch.setattr(torch.cuda, name, getattr(gpu, name))
    monkeypatch.setattr(queued_copy, "_streams", {})
    return gpu


def copy(gpu, after=(), way="out", index=0, fails=False):
    return queued_copy.QueuedCopy(Tensor(gpu, index, fails), Tensor(gpu, index), after, way)


def test_a_copy_waits_for_what_was_queued_before_it_and_for_nothing_later(gpu):
    compute = gpu.current_stream()
    before = gpu.queue()
    first = copy(gpu)
    gpu.queue()
    second = copy(gpu, way="in")
    lane, began, _ = gpu.work[1]
    assert lane is not compute and began == {compute: before}
    assert gpu.work[3][0] is not lane, "each direction has a stream of its own"
    assert gpu.work[3][1] == {compute: before + 1}, "the copy back waits for no copy out that nobody has named"
    assert gpu.current_stream() is compute
    assert lane not in compute.clock, "nobody waits yet"
    first.wait()
    assert compute.clock[lane] == 1
    second.wait()


def test_a_copy_waits_for_those_that_have_to_run_before(gpu):
    first = copy(gpu)
    copy(gpu, after=(first,), way="in")
    out, _, _ = gpu.work[0]
    assert gpu.work[1][1][out] == 1


def test_an_abandoned_copy_is_waited_for_by_the_stream_that_its_block_goes_back_to(gpu):
    compute = gpu.current_stream()
    made = copy(gpu)
    lane = gpu.work[0][0]
    other = gpu.Stream(torch.device("cuda", 0))
    gpu.set_stream(other)
    made.abandon()
    assert compute.clock[lane] == 1 and lane not in other.clock


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_stream_and_device_are_current_again_behind_a_copy(gpu, index, fails):
    """... also of a device that was not the current one, and behind a copy that fails."""
    streams = list(gpu.streams)
    if fails:
        with pytest.raises(RuntimeError, match="that fails"):
            copy(gpu, index=index, fails=True)
    else:
        copy(gpu, index=index)
        assert gpu.work[0][2] == index, "a copy runs on its tensors' device"
    assert gpu.device == 0 and gpu.streams == streams


def test_the_latency_of_the_link_is_timed_with_the_copies_of_plans(gpu, monkeypatch):
    compute = gpu.current_stream()

    class Host:
        def __init__(self, limit):
            pass

        def take(self, size):
            return Tensor(gpu), None

        def close(self):
            pass

    monkeypatch.setattr(link, "Host", Host)
    monkeypatch.setattr(torch, "ones", lambda *_, **__: Tensor(gpu))
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: None)
    assert link._queueing_seconds(torch.device("cuda", 0)) > 0
    lanes = {lane for lane, _, _ in gpu.work}
    assert len(lanes) == 1 and compute not in lanes, "in the stream of that direction"
    assert compute.clock[lanes.pop()] == len(gpu.work) > 1, "each was waited for"


def test_measuring_the_link_leaves_no_cached_memory_on_the_device(monkeypatch):
    calls = []
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    monkeypatch.setattr(link, "identity", lambda device: ())
    monkeypatch.setattr(link, "untraced", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(link, "_measured", lambda device: calls.append("measured") or [1, 1, 1])
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: calls.append("emptied"))
    link.measured_link.__wrapped__(torch.device("cuda", 0))
    assert calls == ["measured", "emptied"]


def test_the_peak_is_that_of_the_gpu_that_tensors_are_on_and_not_of_the_current_one(monkeypatch):
    with FakeTensorMode():  # where PyTorch believes in a GPU it looks for a driver
        first, second = (torch.empty(3, device=f"cuda:{index}") for index in range(2))
    calls = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for name in ("synchronize", "reset_peak_memory_stats"):
        monkeypatch.setattr(torch.cuda, name, lambda device, name=name: calls.append((name, device.index)))
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: [7, 11][device.index])
    assert measure_peak(lambda *_: None, second) == measure_peak(lambda: None, held=[torch.zeros(1), second]) == 11
    assert calls == 2 * [("synchronize", 1), ("reset_peak_memory_stats", 1), ("synchronize", 1)]
    assert measure_peak(lambda *_: None, first) == 7


@pytest.mark.parametrize("in_another", [False, True])
def test_who_calls_a_backward_waits_for_updates_in_the_stream_of_the_forward(gpu, in_another):
    """As the engine does, the stand-in has a node run in the stream of its forward, and callbacks in that of the caller."""
    callers = gpu.current_stream(0)
    forwards = Stream(gpu, 0) if in_another else callers

    class Updating(torch.autograd.Function):
        @staticmethod
        def forward(_, x):
            return x.clone()

        @staticmethod
        def backward(_, gradient):
            gpu.set_stream(forwards)
            when_backward_ends(lambda: gpu.set_stream(callers))
            wait_when_backward_ends(torch.device("cuda", 0))
            gpu.queue()
            return gradient

    Updating.apply(torch.zeros(2, requires_grad=True)).sum().backward()
    assert gpu.current_stream(0) is callers
    assert callers.clock.get(forwards) == forwards.clock[forwards] == 1
