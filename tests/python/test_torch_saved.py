"""Backwards that write over what their forward has saved: whoever can see it sees what eager execution shows."""

import contextlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.emission import saved
from torch import nn
from torch._dynamo import compiled_autograd
from torch.utils.checkpoint import checkpoint
from torch_run import Body, both, equal, gradients, planned, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def _numbers(t):
    return t if isinstance(t, torch.Tensor) else torch.empty(0).set_(t)


class Gated(nn.Module):
    """The backward of a product reads the incoming gradient twice, so first it writes over what is saved."""

    def __init__(self):
        super().__init__()
        self.left, self.right = (nn.ModuleList(nn.Linear(64, 64) for _ in range(3)) for _ in range(2))

    def forward(self, x):
        for left, right in zip(self.left, self.right, strict=True):
            x = left(x) * right(x)
        return x


@pytest.fixture
def ways(monkeypatch):
    """Which code ran for each backward: "over" what is saved, or "beside" it."""
    seen, compile_graph = [], saved.compile_graph

    def noting(module, name, **options):
        run = compile_graph(module, name, **options)
        if "backward" not in name:
            return run
        word = "beside" if name.endswith("of kept tensors") else "over"

        def noted(args):
            seen.append(word)
            return run(args)

        noted._boxed_call = True
        return noted

    monkeypatch.setattr(saved, "compile_graph", noting)
    return seen


X = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))


def loss_of(step):
    return step(X).square().mean()


def test_saved_tensors_that_nobody_else_holds_are_overwritten(ways):
    def run(module, step):
        for _ in range(3):
            loss_of(step).backward()
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["over"] * 3


@pytest.mark.parametrize("earlier", [0, 2])
def test_a_graph_that_is_kept_for_another_backward(earlier, ways):
    """The tracer's own code refuses it once a backward has run without."""
    def run(module, step):
        seen = []
        for _ in range(earlier):
            loss_of(step).backward()
        loss = loss_of(step)
        for keep in (True, True, False):
            loss.backward(retain_graph=keep)
            seen += gradients(module)
        loss_of(step).backward()
        return [*seen, *gradients(module)]

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["over"] * earlier + ["beside", "beside", "over", "over"]


def test_gradients_of_some_parameters_at_a_time(ways):
    def run(module, step):
        loss, parameters = loss_of(step), list(module.parameters())
        first = torch.autograd.grad(loss, parameters[:2], retain_graph=True)
        return [*first, *torch.autograd.grad(loss, parameters)]

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["beside", "over"]


KEPT = {"itself": lambda t: t, "a view": lambda t: t[None], "a detached one": torch.Tensor.detach,
        "its storage": torch.Tensor.untyped_storage}


@pytest.mark.parametrize("kept", KEPT)
def test_hooks_that_keep_what_they_pack(kept, ways):
    held, before = [], []

    def pack(t):
        held.append(KEPT[kept](t))
        before.append(held[-1].clone())
        return t

    def run(module, step):
        held.clear()
        before.clear()
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            loss = loss_of(step)
        loss.backward()
        assert held and all(map(torch.equal, map(_numbers, held), map(_numbers, before)))
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["beside"]


def test_hooks_that_move_what_they_pack(ways):
    def run(module, step):
        with torch.autograd.graph.save_on_cpu():
            loss = loss_of(step)
        loss.backward(retain_graph=True)
        loss.backward()
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected)


@pytest.mark.parametrize("mark_all", [False, True])
def test_hooks_that_hand_back_a_fresh_tensor_over_memory_of_theirs(mark_all, ways, monkeypatch):
    """Its counts say that it is alone; so does the storage, and still another backward reads the same memory."""
    numpy = pytest.importorskip("numpy")
    if mark_all:  # as if no hooks had stood when the forward ran
        monkeypatch.setattr(saved, "saved_tensor_hooks", lambda _: None)
    held = []

    def pack(t):
        held.append(t.detach().numpy().copy())
        return held[-1]

    def run(module, step):
        held.clear()
        seen = []
        with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
            loss = loss_of(step)
        before = [numpy.array(a) for a in held]
        for keep in (True, True, False):
            module.zero_grad()
            loss.backward(retain_graph=keep)
            seen += gradients(module)
        assert held and all(map(numpy.array_equal, held, before))
        return seen

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["beside"] * 3


def test_a_forward_under_hooks_among_others(ways):
    """Only its own backward makes new tensors."""
    def run(module, step):
        losses = []
        for k in range(3):
            if k == 1:
                with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy().copy(), torch.from_numpy):
                    losses.append(loss_of(step))
            else:
                losses.append(loss_of(step) * k)
        for loss in losses:
            loss.backward()
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["over", "beside", "over"]


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_planned_module_within_a_checkpoint(reentrant):
    def run(module, step):
        loss = checkpoint(step, X.clone().requires_grad_(), use_reentrant=reentrant).square().mean()
        loss.backward()
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected)


def test_backwards_of_several_threads(ways):
    torch.manual_seed(0)
    module = Gated()
    parameters, expected = list(module.parameters()), []
    inputs = [X * k for k in range(1, 9)]
    for x in inputs:
        expected.append(torch.autograd.grad(module(x).square().mean(), parameters))
    step = planned(module)
    step(X).sum().backward()
    del ways[:]
    losses = [step(x).square().mean() for x in inputs]
    with ThreadPoolExecutor(4) as pool:
        got = list(pool.map(lambda loss: torch.autograd.grad(loss, parameters), losses))
    assert all(equal(a, b) for a, b in zip(got, expected, strict=True)) and ways == ["over"] * len(inputs)


def test_saved_tensors_that_the_user_has_read(ways):
    torch.manual_seed(0)
    module = Gated()
    step = planned(module, "100%")
    out = step(X)
    node = out.grad_fn
    while "Compiled" not in type(node).__name__:
        node = node.next_functions[0][0]
    held = list(node.saved_tensors)
    before = [t.clone() for t in held]
    out.square().mean().backward()
    assert equal(held, before) and ways == ["beside"]


def test_several_forwards_before_their_backwards(ways):
    def run(module, step):
        losses = [loss_of(step) * k for k in (1, 2, 3)]
        for loss in (losses[1], losses[0], losses[2]):
            loss.backward()
        return gradients(module)

    got, expected = both(Gated, run)
    assert equal(got, expected) and ways == ["over"] * 3


@pytest.mark.parametrize(("module", "hooks", "backend"), [
    (Gated, False, "eager"), (Gated, True, "aot_eager"), (lambda: Body(0.3), False, "aot_eager")])
def test_compiled_autograd_overwrites_nothing(module, hooks, backend, ways):
    """It puts the graph of a backward into one of its own, and asks nobody whether what is saved may be overwritten."""
    held, before = [], []

    def pack(t):
        held.append(t)
        before.append(t.clone())
        return t

    def run(module, step):
        held.clear()
        before.clear()
        seen = []
        for keep in (True, True, False):
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t) if hooks else contextlib.nullcontext():
                loss = loss_of(step)
            for again in (True, False) if keep else (False,):
                with (compiled_autograd._enable(torch.compile(backend=backend)) if step is not module
                      else contextlib.nullcontext()):
                    loss.backward(retain_graph=again)
            seen += gradients(module)
        assert bool(held) is hooks and all(map(torch.equal, held, before))
        return seen

    got, expected = both(module, run)
    assert equal(got, expected) and not ways
    loss_of(planned(module())).backward()
    assert ways == ["over"]


def test_a_tracer_that_has_another_name_for_its_switch():
    """It has no public one."""
    words = "from torch._functorch._aot_autograd import graph_compile as tracer\n" \
            "del tracer.collect_bw_donated_buffer_idxs\n" \
            "import lowtide.torch"
    subprocess.run([sys.executable, "-c", words], check=True, timeout=600)


class Words(nn.Module):
    """A small GPT with many words: its peak is at the logits."""

    def __init__(self, words=8192, width=64, tokens=64):
        super().__init__()
        self.embed, self.place = nn.Embedding(words, width), nn.Embedding(tokens, width)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(width, 4, 4 * width, 0.0, F.gelu, batch_first=True,
                                                               norm_first=True) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, inputs, targets):
        x = self.embed(inputs) + self.place(torch.arange(inputs.shape[1]))
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())


def test_the_head_of_a_language_model():
    """A step without recomputation takes two thirds of what it takes where each result is a new tensor."""
    torch.manual_seed(0)
    module, inputs = Words(), tuple(torch.randint(8192, (8, 64)) for _ in range(2))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    rises = {}
    for techniques in ("recompute", "in_place"):
        torch._dynamo.reset()
        mine = twin(module)
        step = lowtide.torch.optimize(mine, inputs, budget="100%", costs="cpu", time=None, work=10_000, fallback="error",
                                      techniques=techniques)
        report = lowtide.torch.reports()[-1]
        assert not report.again and equal(train(mine, inputs, step), expected)
        mine.zero_grad()
        rises[techniques] = peak_rise(lambda step=step: step(*inputs).backward())
        assert abs(rises[techniques] - (report.peak - report.inputs)) <= 64
    assert rises["in_place"] <= 0.7 * rises["recompute"]


class Sums(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x):
        x = self.layer(x)
        return (x + torch.tanh(x)) * torch.sigmoid(x)


def test_a_forward_alone_runs_in_place():
    torch.manual_seed(0)
    module, x = Sums(), torch.randn(4096, 64)
    rises = []
    with torch.no_grad():
        for techniques in ("recompute", "recompute,in_place"):
            torch._dynamo.reset()
            step = planned(module, "100%", techniques=techniques)
            assert torch.equal(step(x), module(x))
            report = lowtide.torch.reports()[-1]
            rises.append(peak_rise(lambda step=step: step(x)))
            assert abs(rises[-1] - (report.peak - report.inputs)) <= 64
    assert rises == [3 * x.nbytes, 2 * x.nbytes]


class Deep(nn.Module):
    """Its last op writes over a view: a layer on three dimensions is a product on two, and a view of that."""

    def __init__(self, last):
        super().__init__()
        self.first, self.second, self.last = nn.Linear(16, 64), nn.Linear(64, 128), last

    def forward(self, x):
        return self.last(self.second(torch.relu(self.first(x))))


@pytest.mark.parametrize("grad", [True, False, "inference"])
@pytest.mark.parametrize(("way", "last"), [("compile", nn.ReLU()), ("compile", nn.Tanh()), ("compile", nn.Softmax(-1)),
                                           ("compile", nn.Dropout(0.3)), ("optimize", nn.ReLU())],
                         ids=lambda m: m if isinstance(m, str) else type(m).__name__)
def test_results_are_no_views(way, last, grad):
    """Or PyTorch would refuse to change them."""
    torch.manual_seed(0)
    module, x = Deep(last), torch.randn(1, 8, 16)
    around = torch.inference_mode if grad == "inference" else lambda: torch.set_grad_enabled(grad)
    with around():
        if way == "optimize":
            step = lowtide.torch.optimize(module, (x,), budget="100%", costs="cpu", time=None, work=10_000,
                                          fallback="error")
        else:
            step = planned(module, "100%")
        for change in (lambda y: y.mul_(2), torch.relu_, nn.ReLU(inplace=True), torch.Tensor.detach_):
            torch.manual_seed(1)
            expected = module(x)
            torch.manual_seed(1)
            y = step(x)
            assert not y._is_view() and y._base is None and y.untyped_storage().nbytes() == y.nbytes
            assert torch.equal(y, expected) and y.stride() == expected.stride()
            assert torch.equal(change(y), change(expected))


@pytest.mark.parametrize("last", [nn.GELU(), nn.ReLU(), nn.Dropout(0.3)], ids=lambda m: type(m).__name__)
def test_results_are_changed_in_place_before_the_backward(last):
    """Where the backward does not read them; where it does, PyTorch says so as it does without a plan."""
    x, seen = torch.randn(4, 8, 16, generator=torch.Generator().manual_seed(0)), []
    for planning in (False, True):
        torch.manual_seed(0)
        module = Deep(last)
        step = planned(module, "100%") if planning else module
        torch.manual_seed(1)
        y = step(x)
        y.mul_(2)
        try:
            y.sum().backward()
            seen.append(gradients(module))
        except RuntimeError as error:
            seen.append("modified by an inplace operation" in str(error))
    assert seen[0] is seen[1] if True in seen else equal(*seen)
