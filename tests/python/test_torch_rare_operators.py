"""Models whose graphs hold what most do not: operators without results, checks, operators that write,
backwards without an operator.  And what nobody foresaw: said with its node, and run as without a plan."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.emission import half_graph
from lowtide.torch.program.lowerings import call
from torch import nn
from torch._higher_order_ops.effects import _EffectType
from torch_run import Body, both, equal, fresh, gradients, optimized, planned, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


class Resized(nn.Module):
    """Operators that the tracer would take apart: every interpolation, and losses and activations with kernels of their
    own."""

    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Conv2d(2, 4, 3, padding=1), nn.Linear(4, 4)

    def forward(self, x):
        x = F.hardshrink(F.softshrink(self.first(x), 0.1), 0.2)
        for mode in ("bilinear", "bicubic", "nearest", "nearest-exact"):
            x = F.interpolate(x, scale_factor=1.3, mode=mode)
        x = F.interpolate(x, size=(9, 8), mode="bilinear", antialias=True)
        row = F.interpolate(x.flatten(2), scale_factor=0.7, mode="linear")
        box = F.interpolate(x[None], scale_factor=(1.0, 0.8, 1.2), mode="trilinear")
        scores = self.last(row.mean(2)) + box.mean((0, 3, 4))
        return F.multi_margin_loss(scores, torch.tensor([1, 0, 3])) + F.multilabel_margin_loss(scores, torch.tensor(
            [[3, 0, -1, 1], [0, 1, 2, -1], [2, -1, 0, 0]]))


def test_operators_with_a_kernel_of_their_own_are_not_decomposed():
    x = torch.randn(3, 2, 6, 7)
    got, expected = both(Resized, lambda module, step: train(module, (x,), step), share="act:95%")
    assert equal(got, expected)
    names = {op["name"] for op in lowtide.torch.reports()[-1].graph.to_dict()["ops"]}
    assert {"upsample_bilinear2d", "upsample_bicubic2d_backward", "multi_margin_loss_backward"} <= names
    assert torch._C.DispatchKey.Autograd in torch.ops.aten.upsample_bilinear2d.vec.py_kernels  # for everyone else


class DropsNothing(nn.Module):
    """Writes to what such dropouts give back, which is their argument."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        a, b = self.first(x), self.second(x)
        F.dropout(a, 0.0).mul_(2)
        F.dropout(b, 0.5, training=False).add_(1)
        return (F.dropout(a + b, 0.5, self.training) * b).square().mean(), F.dropout(x, 0.5, training=False)


def test_a_dropout_of_nothing_is_its_argument():
    x = torch.randn(9, 16)
    got, expected = both(DropsNothing, lambda module, step: train(module, (x,), lambda x: step(x)[0]), share="100%")
    assert equal(got, expected)
    torch._dynamo.reset()
    step = lowtide.torch.optimize(DropsNothing(), x, budget="100%", costs="flops", fallback="error")
    assert step(x)[1].data_ptr() == x.data_ptr()


seen = []


@torch.library.custom_op("lowtide_tests::note", mutates_args=())
def note(x: torch.Tensor) -> None:
    seen.append(float(x.sum()))


@note.register_fake
def _(x):
    return None


note.register_effect(_EffectType.ORDERED)  # or every compiler would leave it out


def test_an_operator_without_a_result_runs_once_a_step():
    class Noted(Body):
        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
                note(x.detach())
            return x.square().mean()

    def run(module, step):
        seen.clear()
        return [*train(module, (torch.ones(256, 64),), step, steps=2), torch.tensor(seen)]

    got, expected = both(Noted, run, share="act:60%")
    assert len(got[-1]) == 12
    assert equal(got, expected)


calls = []


@torch.library.custom_op("lowtide_tests::shift", mutates_args={"x"})
def shift(x: torch.Tensor, by: float) -> None:
    calls.append(x.shape)
    x.tanh_().add_(by)


@torch.library.custom_op("lowtide_tests::turn", mutates_args={"all"})
def turn(x: torch.Tensor, all: list[torch.Tensor]) -> torch.Tensor:
    for t in all:
        t.mul_(x).clamp_(-1)
    return x.sin() + all[0].mean()


@turn.register_fake
def _(x, all):
    return torch.empty_like(x)


class Shifted(Body):
    """Operators that write: to a fresh tensor, a buffer, one row of another, two parts of one tensor; one of them
    returns something too."""

    def __init__(self, p=0.0):
        super().__init__(p)
        self.register_buffer("seen", torch.zeros(64, 64))

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(torch.tanh(layer(x)), self.p)
            y = x.detach() * 2
            shift(y, 0.5)
            shift(self.seen[1], 0.25)
            z = torch.stack([y, y])
            x = x + y + turn(y, [z[0], z[1]]) + z.sum(0)
        shift(self.seen, 0.125)
        return x.square().mean() + self.seen.mean()


@pytest.mark.parametrize(("p", "share"), [(0.0, "act:100%"), (0.2, "act:75%")])
def test_operators_that_write_to_their_arguments(p, share):
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))
    got, expected = both(lambda: Shifted(p), lambda module, step: train(module, (x,), step), share=share)
    assert equal(got, expected)
    report = lowtide.torch.reports()[-1]
    assert bool(report.again) is (share != "act:100%")


def test_a_budget_is_kept_with_operators_that_write_to_their_arguments():
    class Fresh(Body):
        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
                y = x.detach() * 2
                shift(y, 0.5)
                x = x + y
            return x.square().mean()

    module, x = fresh(lambda: (Fresh(), torch.randn(256, 64)))
    calls.clear()
    mine, step, report = optimized(module, (x,), "act:70%")
    priced = len(calls)
    step(x).backward()
    mine.zero_grad()
    assert len(calls) >= priced + 6
    rise = peak_rise(lambda: step(x).backward())
    assert report.peak - 64 <= report.inputs + rise <= report.budget


def test_an_evaluation_with_operators_that_write_to_their_arguments():
    x = torch.randn(256, 64, generator=torch.Generator().manual_seed(0))

    def run(module, step):
        with torch.no_grad():
            return [step(x), module.seen.clone(), step(x), module.seen.clone()]

    got, expected = both(Shifted, run)
    assert equal(got, expected)


class Checked(Body):
    """Inverses, whose success is checked by an operator that is called for this effect alone."""

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        gram = x.t() @ x / len(x) + 0.1 * torch.eye(x.shape[1])
        return torch.linalg.inv(gram).square().mean() + torch.logdet(torch.linalg.cholesky(gram)) ** 2


def test_operators_that_check_their_result_are_planned_and_still_check():
    x = torch.randn(96, 64)
    got, expected = both(Checked, lambda module, step: train(module, (x,), step), share="act:80%")
    assert equal(got, expected)
    step = planned(Checked())
    step(x)
    with pytest.raises(torch.linalg.LinAlgError):
        step(torch.full_like(x, float("nan")))


def test_a_failed_assertion_of_the_model_ends_the_forward():
    class Bounded(Body):
        def forward(self, x):
            torch._assert_async(x.abs().amax() < 5, "too large")
            return super().forward(x).square().mean()

    step = planned(Bounded())
    step(torch.ones(64, 64)).backward()
    with pytest.raises(RuntimeError, match="too large"):
        step(torch.full((64, 64), 9.0))


def test_a_region_whose_backward_computes_nothing():
    class Broken(Body):
        def forward(self, x):
            x = super().forward(x)
            torch._dynamo.graph_break()
            return x.view(-1), x.detach().sin()  # the gradient of a view is a view

    def run(module, step):
        flat, _ = step(torch.ones(8, 64))
        flat.square().mean().backward()
        return gradients(module)

    got, expected = both(Broken, run, share="act:100%", fallback="error")
    assert equal(got, expected)


@pytest.mark.parametrize("place, broken", [(call, "operations"), (half_graph.HalfGraphBuilder, "arguments")])
def test_an_unexpected_error_names_the_node_and_the_graph_runs_without_a_plan(monkeypatch, place, broken):
    class Noisy(Body):
        def forward(self, x):
            return (super().forward(x) + torch.rand_like(x)).square().mean()

    def fail(*_):
        raise KeyError("gone")

    monkeypatch.setattr(place, broken, fail)
    x = torch.randn(256, 64)
    message = r"addmm(_\d+)?: aten.addmm.default \(torch_run.py:\d+\) .*KeyError: 'gone'"
    with pytest.warns(lowtide.torch.LowtideWarning, match=message):
        got, expected = both(Noisy, lambda module, step: train(module, (x,), step), fallback="warn", share="act:70%")
    assert equal(got, expected)
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.CaptureError, match="fault of Lowtide's own"):
        lowtide.torch.optimize(twin(Noisy()), x, budget="act:70%", costs="cpu", fallback="error")


def test_a_graph_that_the_tracer_refuses_runs_without_a_plan():
    class Replaced(Body):
        def __init__(self):
            super().__init__()
            self.register_buffer("scale", torch.zeros(64))

        def forward(self, x):
            self.scale.data = torch.full((64,), 2.0)
            return (super().forward(x) + self.scale).square().mean()

    with pytest.warns(lowtide.torch.LowtideWarning, match="tracing failed with AssertionError: .*set_"):
        got, expected = both(Replaced, lambda module, step: train(module, (torch.ones(96, 64),), step), fallback="warn")
    assert equal(got, expected)


def test_an_exception_of_the_caller_is_the_callers():
    def heard(event):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="^enough$"):
        lowtide.torch.optimize(Body(), torch.ones(96, 64), budget="80%", work=100_000, time=None, progress=heard)
