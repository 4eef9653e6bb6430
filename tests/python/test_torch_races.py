"""The code of plans that copy, on a stand-in for a GPU's streams: no two pieces of work race, and no wait is there in vain.

The code runs on the CPU, and its copies believe that they are queued in streams.  Each stream has a vector clock, as in
test_torch_streams.py.  What an operator reads and writes is known by addresses, so memory that was freed and taken again counts too.
Two pieces of work that touch the same memory, one of them writing, race if neither has ended for certain when the other begins.
"""

import contextlib

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device import host, queued_copy
from lowtide.torch.graphs import captured_graph
from lowtide.torch.runtime import transfers
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode
from torch_run import equal, twin


class Stream:
    def __init__(self, gpu):
        self.gpu, self.clock = gpu, {}

    def wait_event(self, event):
        gpu = self.gpu
        if gpu.compute in (self, event.stream):  # between copies a wait is for steps that were given up in between
            gpu.waits += 1
            if gpu.waits - 1 == gpu.left_out:
                return
        for stream, count in event.clock.items():
            self.clock[stream] = max(self.clock.get(stream, 0), count)


class Event:
    def record(self, stream):
        self.stream, self.clock = stream, dict(stream.clock)


class Gpu(TorchDispatchMode):
    """One device.  waits: so far, of the stream that computes for copies and of copies for it; left_out: the number of one that is not
    made.  races: operators that race."""

    present = None  # sees the operators of plans

    def __init__(self, left_out=None):
        super().__init__()
        self.waits, self.left_out, self.races = 0, left_out, []
        self._accesses = []  # begin, end, whether it writes, stream, number in it
        self.stream = self.compute = Stream(self)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        results = func(*args, **(kwargs or {}))
        self._queue(func, args, kwargs or {}, results)
        return results

    def _queue(self, func, args, kwargs, results):
        schema = func._schema
        if any(r.alias_info and not r.alias_info.is_write for r in schema.returns) or func.namespace != "aten":
            return  # a view, of which nothing is read
        given = dict(zip((a.name for a in schema.arguments), args, strict=False)) | kwargs
        written = {a.name for a in schema.arguments if a.alias_info and a.alias_info.is_write}
        touched = [(t, name in written) for name, value in given.items() for t in tensors(value)]
        touched += [(t, True) for t in tensors(results)]
        stream, clock = self.stream, self.stream.clock
        clock[stream] = number = clock.get(stream, 0) + 1
        for t, writes in touched:
            storage = t.untyped_storage()
            begin, end = storage.data_ptr(), storage.data_ptr() + storage.nbytes()
            for other, last, wrote, where, count in self._accesses:
                if begin < last and other < end and (writes or wrote) and clock.get(where, 0) < count:
                    self.races.append(str(func))
            self._accesses.append((begin, end, writes, stream, number))


def tensors(value):
    return [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


@contextlib.contextmanager
def streams(monkeypatch, gpu):
    """Copies are queued in streams of that device."""
    with monkeypatch.context() as patch:
        for name, value in (("current_device", lambda: None), ("set_device", lambda index: None),
                            ("current_stream", lambda index=None: gpu.stream), ("Stream", lambda device: Stream(gpu)), ("Event", Event),
                            ("set_stream", lambda stream: setattr(gpu, "stream", stream))):
            patch.setattr(torch.cuda, name, value)
        patch.setattr(queued_copy, "_streams", {})
        patch.setattr(host, "_hosts", {})  # places know the copies of the streams that they were used in
        patch.setattr(transfers, "_begin", queued_copy.QueuedCopy)
        patch.setattr(Gpu, "present", gpu)
        yield


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(*(part for _ in range(3) for part in (nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))))

    def forward(self, x):
        return self.layers(x).square().mean()


def seen(compile_half):
    """The code of a half of a step, within the present stand-in.  (With a mode around the whole step Dynamo leaves the step to eager.)"""
    def compiled(*args, **kwargs):
        run = compile_half(*args, **kwargs)

        def within(given):
            with Gpu.present or contextlib.nullcontext():
                return run(given)

        return within

    return compiled


@pytest.fixture
def step(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    for name in ("compile_forward", "compile_backward"):
        monkeypatch.setattr(captured_graph, name, seen(getattr(captured_graph, name)))
    torch.manual_seed(0)
    torch._dynamo.reset()
    module, x = Net(), torch.randn(512, 16)
    plain = twin(module)
    run = lowtide.torch.optimize(module, x, budget="act:55%", techniques=["offload"], link="10GB/s,10us", costs="cpu", work=20_000, time=None,
                                 fallback="error")
    assert len(lowtide.torch.reports()[-1].offloaded) >= 3
    run(x).backward()
    plain(x).backward()
    return module, run, x, [p.grad for p in plain.parameters()]


def trained(step, monkeypatch, left_out=None):
    """Two steps: places on the host are used again in the second."""
    module, run, x, expected = step
    gpu = Gpu(left_out)
    with streams(monkeypatch, gpu):
        for _ in range(2):
            module.zero_grad()
            run(x).backward()
    assert equal([p.grad for p in module.parameters()], expected)
    return gpu


def test_every_wait_of_a_plan_keeps_pieces_of_work_from_racing(step, monkeypatch):
    gpu = trained(step, monkeypatch)
    assert not gpu.races and gpu.waits > 12
    in_vain = [number for number in range(gpu.waits) if not trained(step, monkeypatch, number).races]
    assert not in_vain, f"of {gpu.waits}"
