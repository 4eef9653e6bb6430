"""Steps as CUDA graphs, without a GPU."""

import collections
import contextlib
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from cuda_graph_support import StandIn
from lowtide.torch.compat.cuda import CudaGraph, recording_stream
from lowtide.torch.optimizer.graph_updates import GraphUpdates
from lowtide.torch.optimizer.updater import Updater, step_of_some
from lowtide.torch.runtime import recorded
from torch import nn
from torch_run import alone, equal, fresh, twin
from torch_zoo import Cnn, DropoutMlp


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    StandIn.made = []
    monkeypatch.setattr(recorded, "CudaGraph", StandIn)
    monkeypatch.setattr(recorded, "DEVICES", ("cpu",))
    monkeypatch.setattr("lowtide.torch.settings.RECORDED", ("cpu",))
    with alone(monkeypatch):
        yield


def optimized(module, inputs, **options):
    torch._dynamo.reset()
    mine = twin(module)
    return mine, lowtide.torch.optimize(mine, inputs, budget=options.pop("budget", "1GiB"), costs="cpu", fallback="error", **options)


def steps(module, step, inputs, count):
    """Losses, gradients and buffers of steps on other inputs each time."""
    torch.manual_seed(3)
    found = []
    for i in range(count):
        given = [t + 0.1 * i if t.dtype.is_floating_point else t for t in inputs]
        module.zero_grad()
        loss = step(*given)
        loss.backward()
        found += [loss.detach().clone(), *(p.grad.clone() for p in module.parameters()), *(b.clone() for b in module.buffers())]
    return found


@pytest.mark.parametrize("make, budget", [(lambda: (DropoutMlp(), (torch.randn(64, 256),)), "1GiB"),
                                          (lambda: (Cnn(), (torch.randn(4, 3, 16, 16), torch.randint(10, (4,)))), "95%")])
def test_both_sides_are_recorded_once_and_replayed(make, budget):
    module, inputs = fresh(make)
    plain, step = optimized(module, inputs, budget=budget)
    expected = steps(plain, step, inputs, 6)
    assert not StandIn.made
    mine, step = optimized(module, inputs, budget=budget, cuda_graph=True)
    assert equal(steps(mine, step, inputs, 6), expected)
    forward, backward = StandIn.made
    assert backward.before is forward and forward.replays == backward.replays == 4  # the first two steps run as ever


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(32, 32) for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = nn.functional.gelu(layer(x))
        return x.square().mean()


def layers():
    return Layers(), (torch.randn(64, 32),)


def test_fused_kernels_are_recorded_too(uncompiled):
    module, inputs = fresh(layers)
    plain, step = optimized(module, inputs, inner="fused")
    expected = steps(plain, step, inputs, 4)
    mine, step = optimized(module, inputs, inner="fused", cuda_graph=True)
    assert equal(steps(mine, step, inputs, 4), expected) and [graph.replays for graph in StandIn.made] == [2, 2]


def test_gradients_add_up_and_forwards_that_wait_keep_what_they_saved():
    module, inputs = fresh(layers)

    def gradients(mine, step):
        found = steps(mine, step, inputs, 4)
        mine.zero_grad()
        one, other = step(inputs[0]), step(inputs[0] * 2)  # the second waits for no record
        other.backward()
        one.backward()
        for factor in (1, 3):  # gradients of replays are the caller's own
            step(inputs[0] * factor).backward()
        return [*found, *(p.grad.clone() for p in mine.parameters())]

    plain, step = optimized(module, inputs)
    expected = gradients(plain, step)
    mine, step = optimized(module, inputs, cuda_graph=True)
    assert equal(gradients(mine, step), expected)
    assert [graph.replays for graph in StandIn.made] == [2 + 1 + 2, 2 + 1 + 2]


def test_what_stays_is_handed_out_as_it_is():
    """A buffer that the forward has written to is not copied out and back in."""
    side = recorded.Recorded({0}, 2, pytest.fail).forward(lambda args: [args[0].add_(args[1]), args[0] + 1])
    buffer = torch.zeros(4)
    for i in range(1, 6):
        here, made = side([buffer, torch.ones(4)])
        assert here is buffer and torch.equal(buffer, torch.full((4,), float(i))) and torch.equal(made, buffer + 1)
    assert [graph.replays for graph in StandIn.made] == [3]


def test_results_live_on_and_a_second_backward_is_refused():
    module, inputs = fresh(layers)
    mine, step = optimized(module, inputs, cuda_graph=True)
    steps(mine, step, inputs, 3)
    first = step(inputs[0])
    kept = first.detach().clone()
    first.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="a second backward of a step that runs as a CUDA graph"):
        first.backward()
    step(inputs[0] * 5)
    assert torch.equal(first, kept)


def test_what_moves_or_changes_is_recorded_anew_and_what_cannot_be_runs_as_ever():
    module, inputs = fresh(layers)
    plain, step = optimized(module, inputs)
    expected = steps(plain, step, inputs, 4)
    mine, step = optimized(module, inputs, cuda_graph=True)
    steps(mine, step, inputs, 3)
    for p in mine.parameters():
        p.data = p.data.clone()
    assert equal(steps(mine, step, inputs, 2), expected[:len(expected) // 2])
    assert len(StandIn.made) == 4

    def refuses(self, run):
        raise RuntimeError("operation not permitted when stream is capturing")

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StandIn, "record", refuses)
        mine, step = optimized(module, inputs, cuda_graph=True)
        with pytest.warns(lowtide.torch.LowtideWarning, match="the step is not recorded .*RuntimeError: operation not permitted"):
            assert equal(steps(mine, step, inputs, 4), expected)


def test_what_a_forward_saved_stays_until_a_backward_that_cannot_be_recorded_has_run(monkeypatch):
    """It lies in the pool of the forward's graph, whose memory is anyone's once the graph is gone."""
    module, inputs = fresh(layers)
    plain, step = optimized(module, inputs)
    expected = steps(plain, step, inputs, 4)
    record, backward, pools, stood = StandIn.record, recorded.Recorded.backward, [], []

    def refuses_backwards(self, run):
        if self.before is None:
            pools.append(weakref.ref(self))
            return record(self, run)
        raise RuntimeError("operation not permitted when stream is capturing")

    def watched(self, run, tangents):
        def as_ever(args):
            stood.extend(pool() is not None for pool in pools[len(stood):])
            return run(args)

        return backward(self, as_ever, tangents)

    StandIn.made = collections.deque(maxlen=0)  # which keeps none alive
    monkeypatch.setattr(StandIn, "record", refuses_backwards)
    monkeypatch.setattr(recorded.Recorded, "backward", watched)
    mine, step = optimized(module, inputs, cuda_graph=True)
    with pytest.warns(lowtide.torch.LowtideWarning, match="the step is not recorded .*RuntimeError: operation not permitted"):
        assert equal(steps(mine, step, inputs, 4), expected)
    assert stood == [True]


@pytest.mark.parametrize("make", [lambda ps: torch.optim.SGD(ps, lr=0.1, momentum=0.9),
                                  lambda ps: torch.optim.AdamW(ps, lr=torch.tensor(0.1), fused=True)])
def test_a_whole_step_is_one_graph(make):
    module, inputs = fresh(layers)

    def parameters(cuda_graph):
        torch._dynamo.reset()
        mine = twin(module)
        optimizer = make(mine.parameters())
        step = lowtide.torch.step(mine, optimizer, inputs, budget="1GiB", costs="cpu", cuda_graph=cuda_graph)
        losses = [step(inputs[0] + i).clone() for i in range(5)]
        for group in optimizer.param_groups:
            group["lr"] = 0.01 if isinstance(group["lr"], float) else group["lr"].fill_(0.01)
        return [*losses, *(step(inputs[0] - i).clone() for i in range(3)), *(p.detach().clone() for p in mine.parameters())]

    assert equal(parameters(True), parameters(False))
    assert sum(graph.replays for graph in StandIn.made) == 6
    assert len(StandIn.made) == (2 if "SGD" in str(make(module.parameters())) else 1)  # a number that changes is recorded anew


def test_a_fused_optimizer_steps_while_a_graph_is_recorded(monkeypatch):
    """PyTorch refuses it there unless it is built with capturable=True."""
    def refuses(self):
        raise RuntimeError("Attempting CUDA graph capture of step()")

    monkeypatch.setattr(torch.optim.Optimizer, "_accelerator_graph_capture_health_check", refuses)
    p = nn.Parameter(torch.ones(4))
    p.grad = torch.ones(4)
    optimizer = torch.optim.AdamW([p], lr=0.1, fused=True)
    step_of_some(optimizer, [(optimizer.param_groups[0], [p])])
    assert (p < 1).all()
    with pytest.raises(RuntimeError, match="Attempting"):
        optimizer.step()  # the user's own step asks as ever


def test_a_setting_in_a_tensor_on_the_host_is_recorded_anew_when_its_value_changes():
    """Kernels on another device are given its value, which a record keeps."""
    for device, is_read in (("meta", True), ("cpu", False)):
        p, lr = nn.Parameter(torch.empty(4, device=device)), torch.tensor(0.1)
        updates = GraphUpdates((Updater.of(torch.optim.AdamW([p], lr=lr, fused=device == "cpu", capturable=False)),), slots={0: p})
        before = updates.read_on_host()
        assert updates.read_on_host() == before
        lr.fill_(0.01)
        assert (updates.read_on_host() != before) == is_read


def test_refusals_name_what_does_not_go_with_it(monkeypatch):
    module, inputs = fresh(layers)
    adam, sgd = torch.optim.Adam(module.parameters()), torch.optim.SGD(module.parameters(), lr=0.1)
    for words, options in (("does not go with the technique offload", {"techniques": ["recompute", "offload"], "link": "1GB/s,1us"}),
                           ("does not go with layout", {"layout": "prime"}),
                           ("does not go with footprint", {"footprint": "reserved"}),
                           ("does not go with update='backward'", {"update": "backward", "optimizer": sgd}),
                           ("Adam counts its steps on the host", {"update": "backward", "optimizer": adam})):
        with pytest.raises(ValueError, match=words):
            optimized(module, inputs, cuda_graph=True, **options)
    with pytest.raises(ValueError, match="Adam counts its steps on the host"):
        lowtide.torch.step(module, adam, inputs, budget="1GiB", cuda_graph=True)
    with pytest.raises(TypeError, match="cuda_graph must be True or False"):
        optimized(module, inputs, cuda_graph=1)
    monkeypatch.setattr("lowtide.torch.settings.RECORDED", ("cuda",))
    with pytest.raises(ValueError, match="is for GPUs, and this model is on a cpu"):
        optimized(module, inputs, cuda_graph=True)


def test_the_record_counts_beside_the_plan_and_other_sizes_have_their_own():
    module, inputs = fresh(layers)
    _, step = optimized(module, inputs)
    plain = lowtide.torch.reports()[-1]
    mine, step = optimized(module, inputs, cuda_graph=True)
    report = lowtide.torch.reports()[-1]
    own = sum(p.numel() for p in module.parameters()) + inputs[0].numel() + 1
    assert report.resident == plain.resident + 4 * own
    steps(mine, step, inputs, 3)
    steps(mine, step, (inputs[0][:16].clone(),), 3)
    assert [graph.replays for graph in StandIn.made] == [1, 1, 1, 1]
    with torch.no_grad():
        for i in range(4):
            assert torch.equal(step(inputs[0] + i), module(inputs[0] + i))
    assert StandIn.made[-1].replays == 2


class OfPyTorch:
    """What CudaGraph uses of torch.cuda, with two devices.  As in torch.cuda.graph, the end of a record that fails ends nothing.

    recorded: device, stream and pool of each record.  is_broken: has something ended the record?
    """

    class Generator:
        capturing = False

        def clone_state(self):
            return self.capturing

        def graphsafe_set_state(self, state):
            self.capturing = state

    def __init__(self):
        self.now, self.streams, self.pool, self.recorded, self.is_broken = 0, ["main 0", "main 1"], None, [], False
        self.default_generators = [self.Generator(), self.Generator()]

    def current_device(self):
        return self.now

    def current_stream(self):
        return self.streams[self.now]

    def set_stream(self, stream):
        self.now = int(stream[-1])
        self.streams[self.now] = stream

    def Stream(self, device):
        return f"side {device}"

    def CUDAGraph(self):
        return None

    def graph_pool_handle(self):
        return "pool"

    @contextlib.contextmanager
    def device(self, index):
        before, self.now = self.now, index
        try:
            yield
        finally:
            self.now = before

    def graph(self, graph, pool, stream, capture_error_mode):
        return OfPyTorch.Record(self, pool, stream)

    def end_pool(self, device, pool):
        self.pool = None

    class Record:
        def __init__(self, cuda, pool, stream):
            self.cuda, self.pool, self.stream = cuda, pool, stream

        def __enter__(self):
            self.before = self.cuda.now, self.cuda.current_stream()
            self.cuda.set_stream(self.stream)
            self.cuda.recorded.append((self.cuda.now, self.stream, self.pool))
            self.cuda.default_generators[self.cuda.now].capturing, self.cuda.pool = True, self.pool

        def __exit__(self, *_):
            if self.cuda.is_broken:
                raise RuntimeError("capture was invalidated")
            self.cuda.default_generators[self.cuda.now].capturing, self.cuda.pool = False, None
            self.cuda.now, stream = self.before
            self.cuda.set_stream(stream)


@pytest.fixture
def cuda(monkeypatch):
    stand_in = OfPyTorch()
    recording_stream.cache_clear()
    for name in ("current_device", "current_stream", "set_stream", "Stream", "CUDAGraph", "graph_pool_handle", "device", "graph",
                 "default_generators"):
        monkeypatch.setattr(torch.cuda, name, getattr(stand_in, name))
    monkeypatch.setattr(torch._C, "_cuda_endAllocateToPool", stand_in.end_pool, raising=False)
    yield stand_in
    recording_stream.cache_clear()


def test_both_sides_are_recorded_in_one_stream_of_their_device_which_may_not_be_the_current_one(cuda):
    first = CudaGraph(torch.device("cuda", 1))
    assert first.record(lambda: (cuda.now, cuda.current_stream())) == (1, "side 1")
    CudaGraph(torch.device("cuda", 1), first).record(lambda: None)
    assert cuda.recorded == 2 * [(1, "side 1", "pool")]
    assert (cuda.now, cuda.streams) == (0, ["main 0", "main 1"])


@pytest.mark.parametrize("is_broken", [False, True])
@pytest.mark.parametrize("index", [0, 1])
def test_a_record_that_fails_leaves_streams_allocator_and_generators_as_they_were(cuda, index, is_broken):
    def run():
        cuda.is_broken = is_broken
        raise ValueError("the host reads a tensor")

    with pytest.raises(ValueError, match="the host reads"):
        CudaGraph(torch.device("cuda", index)).record(run)
    assert (cuda.now, cuda.streams, cuda.pool) == (0, ["main 0", "main 1"], None)
    assert not any(generator.capturing for generator in cuda.default_generators)


def test_a_record_that_cannot_be_ended_leaves_them_too(cuda):
    with pytest.raises(RuntimeError, match="invalidated"):
        CudaGraph(torch.device("cuda", 1)).record(lambda: setattr(cuda, "is_broken", True))
    assert (cuda.now, cuda.streams, cuda.pool) == (0, ["main 0", "main 1"], None)
    assert not any(generator.capturing for generator in cuda.default_generators)
