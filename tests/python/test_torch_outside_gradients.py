"""Models whose gradients no graph makes: said, and an error where it is asked for; and those of which it is not said."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch_run import alone, equal, twin


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Rebuilt(torch.autograd.Function):
    """Keeps its results alone, and makes its inputs of them again in its backward."""

    @staticmethod
    def forward(ctx, f, g, a, b, *_):
        ctx.f, ctx.g = f, g
        with torch.no_grad():
            a = a + f(b)
            b = b + g(a)
        ctx.save_for_backward(a, b)
        return a, b

    @staticmethod
    def backward(ctx, da, db):
        a, b = ctx.saved_tensors
        with torch.enable_grad():
            a = a.detach().requires_grad_()
            made = ctx.g(a)
            one, *of_g = torch.autograd.grad(made, [a, *ctx.g.parameters()], db)
        b, da = (b - made).detach(), da + one
        with torch.enable_grad():
            b.requires_grad_()
            other, *of_f = torch.autograd.grad(ctx.f(b), [b, *ctx.f.parameters()], da)
        return None, None, da, db + other, *of_f, *of_g


class Reversible(nn.Module):
    """in_loop: the tracer leaves all of the forward alone, and else the blocks."""

    def __init__(self, in_loop=True, width=16):
        super().__init__()
        self.f, self.g = (nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(2)) for _ in range(2))
        self.first, self.last, self.in_loop = nn.Linear(width, 2 * width), nn.Linear(2 * width, 5), in_loop

    def forward(self, x, y):
        a, b = self.first(x).chunk(2, -1)
        if self.in_loop:
            for f, g in zip(self.f, self.g, strict=True):
                a, b = Rebuilt.apply(f, g, a, b, *f.parameters(), *g.parameters())
        else:
            a, b = self.block(0, a, b)
            a, b = self.block(1, a, b)
        return F.cross_entropy(self.last(torch.tanh(torch.cat([a, b], -1))), y)

    @torch.compiler.disable
    def block(self, i, a, b):
        f, g = self.f[i], self.g[i]
        return Rebuilt.apply(f, g, a, b, *f.parameters(), *g.parameters())


OPTIONS = {"budget": "8GiB", "costs": "flops", "work": 500, "time": None}


def reversible(**given):
    torch.manual_seed(0)
    return Reversible(**given), (torch.randn(32, 16), torch.randint(5, (32,)))


def said_by(run):
    """The warnings of Lowtide's that it gives."""
    torch._dynamo.reset()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run()
    return [str(w.message) for w in seen if issubclass(w.category, lowtide.torch.LowtideWarning)]


def trained(run, module, inputs, steps=3):
    for _ in range(steps):
        module.zero_grad()
        run(*inputs).backward()
    return [p.grad for p in module.parameters()]


NONE = "no graph has a backward for "


def test_optimize_says_so_before_the_first_step():
    module, inputs = reversible()
    plain, made = twin(module), []
    (said,) = said_by(lambda: made.append(lowtide.torch.optimize(module, inputs, **OPTIONS)))
    assert "so no budget is kept" in said and f"{NONE}f.0.0.weight, f.0.0.bias, f.1.0.weight" in said
    assert not said_by(lambda: trained(made[0], module, inputs))
    assert equal([p.grad for p in module.parameters()], trained(plain, plain, inputs))
    with pytest.raises(lowtide.torch.CaptureError, match=NONE):
        lowtide.torch.optimize(module, inputs, fallback="error", **OPTIONS)


@pytest.mark.parametrize("way", ["torch.compile", "optimize", "a function"])
def test_the_first_backward_says_so(way):
    module, inputs = reversible()

    def made(**more):
        if way == "optimize":
            return lowtide.torch.optimize(module, **OPTIONS, **more)
        called = module if way == "torch.compile" else lambda *given: module(*given)
        return torch.compile(called, backend="lowtide", options=OPTIONS | more)

    (said,) = said_by(lambda: trained(made(), module, inputs))
    assert NONE in said and ".0.0.weight" in said
    assert "are made outside of every graph" in str(lowtide.torch.reports()[-1])
    torch._dynamo.reset()
    run = made(fallback="error")
    loss = run(*inputs)
    module.zero_grad()
    with pytest.raises(lowtide.torch.CaptureError, match=NONE):
        loss.backward()
    assert all(p.grad is None for p in module.parameters())


def test_a_function_between_regions_is_said_by_name():
    module, inputs = reversible(in_loop=False)
    plain = twin(module)
    (said,) = [s for s in said_by(lambda: trained(torch.compile(module, backend="lowtide", options=dict(OPTIONS)), module, inputs))
               if "several graphs" not in s]
    assert "the gradients of f.0.0.weight, f.0.0.bias, f.1.0.weight" in said and "made outside of every graph" in said
    assert "first" not in said and "last" not in said
    assert equal([p.grad for p in module.parameters()], trained(plain, plain, inputs))


def test_nothing_is_said_of_models_that_are_planned():
    torch.manual_seed(0)
    x = torch.randn(32, 16)
    module = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))

    def planned():
        run = torch.compile(module, backend="lowtide", options=dict(OPTIONS))
        with torch.no_grad():  # before it trains, as many loops do
            run(x)
        for _ in range(3):
            module.zero_grad()
            loss = run(x).square().mean() + 1e-4 * sum(p.square().sum() for p in module.parameters())
            loss.backward()

    def evaluated():
        run = torch.compile(module.eval(), backend="lowtide", options=dict(OPTIONS))
        with torch.no_grad():
            run(x)
        module.train()
        module(x).sum().backward()  # the model as it is

    assert not said_by(planned) and not said_by(evaluated)


def test_evaluation_of_a_model_whose_backward_is_in_no_region_is_planned():
    module, inputs = reversible()

    def evaluate():
        module.eval()
        with torch.no_grad():
            lowtide.torch.optimize(module, inputs, fallback="error", **OPTIONS)(*inputs)

    assert not said_by(evaluate)


def test_modules_of_torch_are_rehearsed_as_one_region():
    """The tracer reaches them by a function of its own, and has skipped nothing."""
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
    with pytest.raises(lowtide.torch.BudgetError, match="no plan keeps this step within"):
        lowtide.torch.optimize(module, torch.randn(8, 16), **OPTIONS | {"budget": 1})


def test_a_forward_may_call_its_module_anything():
    """The tracer is at the module's own code whatever its first argument is called there, and behind a decorator."""
    def passed_on(forward):
        return functools.wraps(forward)(lambda *args, **named: forward(*args, **named))

    class This(nn.Sequential):
        def forward(this, x):
            return super().forward(x).square().mean()

    class Wrapped(This):
        forward = passed_on(This.forward)

    for kind in (This, Wrapped):
        torch._dynamo.reset()
        module, x = kind(nn.Linear(8, 8), nn.Tanh()), torch.randn(4, 8)
        with pytest.raises(lowtide.torch.BudgetError, match="no plan keeps this step"):
            lowtide.torch.optimize(module, x, budget=1, costs="flops", work=300, time=None)
