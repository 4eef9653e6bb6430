"""Losses that depend on derivatives: planned, to the last bit, where they are taken within the model, and refused in words
that say so where they would take a backward of a backward."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch_run import alone, equal, twin


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Field(nn.Module):
    def __init__(self, width=32, layers=3):
        super().__init__()
        hidden = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.SiLU())]
        self.net = nn.Sequential(nn.Linear(3, width), nn.SiLU(), *hidden, nn.Linear(width, 1))

    def energy(self, places):
        return self.net(places).sum()


class Forces(Field):
    def forward(self, places, forces):
        return (-torch.func.grad(self.energy)(places) - forces).square().mean() + self.energy(places).square()


class Residual(Field):
    """Of u_xx + u_y = 0, as networks for differential equations have it."""

    def forward(self, points, _):
        def first(q):
            return torch.func.grad(self.energy)(q)

        second = torch.func.grad(lambda q: first(q)[:, 0].sum())(points)[:, 0]
        return (second + first(points)[:, 1]).square().mean()


class Directions(Field):
    def forward(self, points, along):
        value, change = torch.func.jvp(self.net, (points,), (along,))
        return (value + change).square().mean()


class Penalty(Field):
    """Of a critic's gradient, which its own gradient goes through."""

    def forward(self, real, made):
        between = 0.3 * real + 0.7 * made
        slopes = torch.func.grad(self.energy)(between).norm(dim=1)
        return self.energy(made) - self.energy(real) + 10 * (slopes - 1).square().mean()


class TwiceBack(Field):
    def forward(self, places, forces):
        places = places.detach().requires_grad_()
        (slope,) = torch.autograd.grad(self.energy(places), places, create_graph=True)
        return (-slope - forces).square().mean()


def inputs():
    generator = torch.Generator().manual_seed(0)
    return torch.randn(64, 3, generator=generator), torch.randn(64, 3, generator=generator)


def stepped(run, module):
    module.zero_grad()
    loss = run(*inputs())
    loss.backward()
    return [loss.detach(), *(p.grad for p in module.parameters() if p.grad is not None)]


OPTIONS = {"costs": "flops", "work": 20_000, "time": None, "fallback": "error"}


@pytest.mark.parametrize("model", [Forces, Residual, Directions, Penalty])
def test_derivatives_within_the_model_are_planned_to_the_bit(model):
    torch.manual_seed(0)
    module = model()
    plain = twin(module)
    planned = lowtide.torch.optimize(module, inputs(), budget="60%", **OPTIONS)
    expected = stepped(plain, plain)
    assert equal(stepped(planned, module), expected) and len(expected) > 8
    report = lowtide.torch.reports()[-1]
    assert report.peak <= report.budget < report.own_peak


def test_a_backward_of_a_backward_says_how_to_do_without():
    torch.manual_seed(0)
    module = Field()
    places, forces = inputs()
    places.requires_grad_()
    planned = torch.compile(module.energy, backend="lowtide", options={"budget": "8GiB", **OPTIONS})
    (slope,) = torch.autograd.grad(planned(places), places, create_graph=True)
    with pytest.raises(RuntimeError, match=r"torch\.func\.grad, vjp or jvp in the place of torch\.autograd\.grad"):
        (-slope - forces).square().mean().backward()


def test_within_the_model_it_says_so_too():
    torch.manual_seed(0)
    module = TwiceBack()
    planned = torch.compile(module, backend="lowtide", options={"budget": "8GiB", **OPTIONS})
    loss = planned(*inputs())
    with pytest.raises(RuntimeError, match=r"torch\.func\.grad"):
        loss.backward()


class OnceAlone(torch.autograd.Function):
    """A function with words of its own for a backward of its backward, as cuDNN's recurrent layers have them."""

    @staticmethod
    def forward(x):
        return x.clone()

    @staticmethod
    def setup_context(ctx, given, made):
        pass

    @staticmethod
    def backward(ctx, gradient):
        raise RuntimeError("To run double backwards, please disable the library")


def test_errors_of_other_libraries_about_double_backwards_are_unchanged():
    module = Field()
    torch.compile(module.energy, backend="lowtide", options={"budget": "8GiB", **OPTIONS})(inputs()[0])
    with pytest.raises(RuntimeError, match="disable the library"):
        OnceAlone.apply(torch.ones(3, requires_grad=True)).sum().backward()
