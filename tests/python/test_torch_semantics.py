"""What a training loop may do with a planned module, and that it gives what it gives without a plan."""

import copy
import pickle
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch_run import Body, both, equal, fresh, gradients, planned, train, twin
from torch_zoo import ZOO, Cnn


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_the_backend_is_found_by_its_name():
    assert "lowtide" in torch._dynamo.list_backends(exclude_tags=())


def test_a_loss_outside_the_region():
    x = torch.randn(256, 64)

    def run(module, step):
        loss = step(x).square().mean()
        loss.backward()
        return [loss.detach(), *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_two_forwards_before_a_backward():
    x, y = torch.randn(2, 256, 64)

    def run(module, step):
        a = step(x).square().mean()
        b = step(y).square().mean()
        (a + 2 * b).backward()
        return [a.detach(), b.detach(), *gradients(module)]

    got, expected = both(lambda: Body(0.3), run)
    assert equal(got, expected)


def test_gradients_add_up_over_steps():
    xs = torch.randn(3, 256, 64)

    def run(module, step):
        for x in xs:
            step(x).square().mean().backward()
        return gradients(module)

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_retain_graph_and_a_second_backward():
    x = torch.randn(256, 64)

    def run(module, step):
        loss = step(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return gradients(module)

    got, expected = both(lambda: Body(0.3), run)
    assert equal(got, expected)


def test_hooks_on_parameters_run_once():
    x = torch.randn(256, 64)

    def run(module, step):
        calls = []
        for p in module.parameters():
            p.register_hook(lambda g: calls.append(1) or 2 * g)
            p.register_post_accumulate_grad_hook(lambda p: calls.append(2))
        step(x).square().mean().backward()
        return [torch.tensor(calls), *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_evaluation_and_no_grad():
    x, y = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))

    def run(module, step):
        out = []
        for mode in (True, False, True):
            module.train(mode)
            with torch.no_grad():
                out.append(step(x, y))
            out.append(step(x, y).detach())
        with torch.inference_mode():
            out.append(step(x, y).clone())
        return [*out, *module.state_dict().values()]

    got, expected = both(Cnn, run)
    assert equal(got, expected)


def test_inputs_that_are_no_tensors_and_several_outputs():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x, scale, names=("u",), *, deep=True, extra=None):
            y = self.a(x).tanh() * scale
            z = self.b(y).tanh() if deep else y
            return {"y": y, "z": (z, z.detach(), x.view(-1)), "n": len(names), "none": extra}

    x = torch.randn(256, 64)

    def run(module, step):
        out = step(x, 2.5, names=("a", "b"))
        assert out["n"] == 2 and out["none"] is None
        (out["y"].mean() + out["z"][0].square().mean()).backward()
        return [out["y"].detach(), *(t.detach() for t in out["z"]), *gradients(module)]

    got, expected = both(Odd, run, budget="100%")
    assert equal(got, expected)


def test_a_result_that_no_loss_uses_gives_zeros_as_any_compiled_region_does():
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            return self.a(x).square().mean(), self.b(x).square().mean()

    module, x = fresh(lambda: (Two(), torch.randn(256, 64)))
    found = []
    for step in (torch.compile(twin(module), backend="aot_eager"), planned(twin(module), budget="100%")):
        step(x)[0].backward()
        found.append([p.grad for p in step.parameters()])
    assert equal(*found) and not found[0][2].any()


def test_gradients_of_inputs():
    def run(module, step):
        x = torch.linspace(-1, 1, 256 * 64).view(256, 64).requires_grad_()
        step(x).square().mean().backward()
        return [x.grad, *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.complex64])
def test_number_types(dtype):
    x = torch.randn(256, 64, dtype=dtype)

    def run(module, step):
        loss = step(x).abs().square().mean()
        loss.backward()
        return [loss.detach(), *gradients(module)]

    got, expected = both(lambda: Body().to(dtype), run)
    assert equal(got, expected)


def test_rare_number_types():
    class Rare(nn.Module):
        """Turns pairs in half of a complex number's precision; rounds to what fits into eight bits."""

        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(64, 64, dtype=torch.float16) / 8)

        def forward(self, x):
            turned = torch.view_as_complex((x @ self.weight).unflatten(-1, (-1, 2)))
            turned = torch.view_as_real(turned * turned).flatten(-2)
            small = turned.detach().clamp(-1, 1).float()
            for dtype in (torch.float8_e4m3fn, torch.float8_e5m2, torch.float8_e4m3fnuz, torch.float8_e5m2fnuz):
                small = small.to(dtype).float() * 0.9
            return (turned.float() * small).square().mean()

    x = torch.randn(256, 64, dtype=torch.float16) / 8
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "ComplexHalf support is experimental", UserWarning)
        # Products in half precision take memory for themselves on some processors.
        got, expected = both(Rare, lambda module, step: train(module, (x,), step), share="act:92%")
    assert equal(got, expected)


def test_double_backward_is_refused_with_words():
    x = torch.randn(256, 64, requires_grad=True)
    step = planned(Body())
    (gradient,) = torch.autograd.grad(step(x).square().mean(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="goes through the backward of a compiled graph"):
        gradient.sum().backward()


def test_a_lazy_module_is_called_before_it_is_planned():
    with pytest.raises(ValueError, match="0.weight has no size yet"):
        lowtide.torch.optimize(nn.Sequential(nn.LazyLinear(4)), torch.zeros(2, 3), budget="100%")


def test_optimize_runs_nothing_and_draws_nothing():
    module, inputs = fresh(ZOO["cnn"])
    before, rng = [t.clone() for t in module.state_dict().values()], torch.get_rng_state()
    lowtide.torch.optimize(module, inputs, budget="80%", costs="measured")
    assert equal(list(module.state_dict().values()), before) and torch.equal(torch.get_rng_state(), rng)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))])
@pytest.mark.parametrize("planned_before", [True, False])
def test_a_copy_of_an_optimized_module_is_planned_for_itself(copied, planned_before):
    plain, x = fresh(lambda: (Body(0.3), torch.randn(64, 64)))
    mine = twin(plain)
    options = {"budget": "100%", "costs": "cpu", "work": 10_000, "time": None, "fallback": "error"}
    step = lowtide.torch.optimize(mine, x if planned_before else None, **options)
    if planned_before:
        step(x).mean().backward()
        mine.zero_grad()
    other = copied(step)
    assert not {t.data_ptr() for t in other.parameters()} & {t.data_ptr() for t in mine.parameters()}
    before = len(lowtide.torch.reports())
    for module, expected in ((other, twin(plain)), (step, plain)):
        outcomes = []
        for each in (module, expected):
            torch.manual_seed(1)
            loss = each(x).square().mean()
            loss.backward()
            outcomes.append([loss.detach(), *gradients(each)])
        assert equal(*outcomes)
    assert len(lowtide.torch.reports()) >= before + 1
