"""What a plan computes in another way the second time has the bits and the strides of the first.

Dropout's product from a mask, batch norm without its statistics, draws from a generator's state, gradients in their
parameter's layout: each for every number type, for mixed ones, for odd sizes and for strides of every kind.
"""

import itertools

import pytest

torch = pytest.importorskip("torch")

import numpy
import torch.nn.functional as F
from lowtide.torch.device.meter import measure_peak
from lowtide.torch.program.lowerings.dropout import dropout_apply
from lowtide.torch.program.lowerings.random_draws import INTO, draw_into, read_state, replay
from torch import nn
from torch_bits import COMPLEX, LAYOUTS, REAL, SIZES, alike, numbers
from torch_run import equal, optimized, train, twin

aten = torch.ops.aten
DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU is here"))]


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def dropped(x, p):
    """What eager execution makes of a dropout, and the mask that it has drawn."""
    before = torch.get_rng_state()
    made, mask = aten.native_dropout(x, p, True)
    if x.device.type == "cpu" and not x.is_complex() and p < 1:  # where eager has no kernel for it
        torch.set_rng_state(before)
        made = F.dropout(x, p)
    return made, mask


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_dropout_from_its_mask(layout, device):
    torch.manual_seed(0)
    types = REAL + COMPLEX if device == "cpu" else REAL
    for size, dtype, p in itertools.product(SIZES, types, (0.1, 0.15, 0.3, 0.5, 0.9, 1e-9, 1 - 1e-9, 1.0, 1)):
        x = LAYOUTS[layout](numbers(size, dtype, device))
        made, mask = dropped(x, p)
        if x.numel():
            assert alike(dropout_apply(x, mask, p), made), f"{layout} {size} {dtype} p={p}"
        else:
            assert dropout_apply(x, mask, p).shape == made.shape


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", [(), (1,), (1001,), (33, 31)])
def test_dropout_of_other_ranks(size, device):
    torch.manual_seed(0)
    for dtype, p in itertools.product(REAL, (0.1, 0.15, 0.7)):
        x = numbers(size, dtype, device).t() if len(size) == 2 else numbers(size, dtype, device)
        made, mask = dropped(x, p)
        assert alike(dropout_apply(x, mask, p), made), f"{size} {dtype} p={p}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_draws_without_their_operand(layout, device):
    names = {"high": 9, "low": 2, "p": 0.3, "lambd": 1.5, "from": -1.0, "to": 2.0, "mean": 1.0, "std": 3.0}
    for (target, (method, arguments)), size, dtype in itertools.product(INTO.items(), SIZES, REAL):
        x = LAYOUTS[layout](numbers(size, dtype, device))
        taken = [a.name for a in target._schema.arguments if a.name in names]
        torch.manual_seed(3)
        made = target(x, *(names[name] for name in taken))
        torch.manual_seed(3)
        alone = draw_into(x.shape, made.stride(), dtype, x.device, method, tuple(names.get(a, a) for a in arguments))
        assert alike(alone, made) if x.numel() else alone.shape == made.shape, f"{target} {size} {dtype}"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("dtype", "weights", "statistics"), [
    *((dtype, weights, dtype) for dtype in REAL for weights in (dtype, None)),
    *((dtype, weights, torch.float32) for dtype in (torch.bfloat16, torch.float16) for weights in (torch.float32, None)),
])
def test_batch_norm_without_moving_its_statistics(dtype, weights, statistics, device):
    """As lowerings/batch_norm.py has it: the kernel without statistics, or with others where they say in which type it computes."""
    torch.manual_seed(0)
    for size, layout in itertools.product(SIZES[:2], LAYOUTS):
        x = LAYOUTS[layout]((3 * torch.randn(size)).to(dtype).to(device))
        vectors = [torch.rand(size[1]).to(device) for _ in range(4)]
        pair = [v.to(weights) for v in vectors[:2]] if weights else [None, None]
        running = [v.to(statistics) for v in vectors[2:]]
        made = aten._native_batch_norm_legit_functional(x, *pair, *running, True, 0.1, 1e-5)
        if weights is None and statistics != dtype:
            others = [torch.full_like(t, 7) for t in running]
            again = aten._native_batch_norm_legit_functional(x, *pair, *others, True, 0.1, 1e-5)
        else:
            again = aten._native_batch_norm_legit.no_stats(x, *pair, True, 0.1, 1e-5)
        assert all(map(alike, made[:3], again[:3])), f"{layout} {size}"
        gradients = [aten.native_batch_norm_backward(torch.ones_like(x), x, pair[0], *given, *made[1:3], True, 1e-5,
                                                     [True, bool(weights), bool(weights)])
                     for given in (running, (None, None))]
        assert all(map(alike, *([t for t in made if t is not None] for made in gradients))), f"{layout} {size}"


def _draws(x):
    """Every kind of draw, from or like x."""
    chance = x.abs().clamp(0.05, 0.95)
    draws = {
        "dropout": lambda: aten.native_dropout(x, 0.15, True),
        "bernoulli of a number": lambda: aten.bernoulli.p(x, 0.3),
        "bernoulli": lambda: aten.bernoulli(chance),
        "rand": lambda: aten.rand([7, 9], dtype=x.dtype, device=x.device),
        "rand like": lambda: aten.rand_like(x),
        "randn like": lambda: aten.randn_like(x),  # an odd number of normals leaves one for the next draw
        "randint like": lambda: aten.randint_like(x, 9),
        "normal": lambda: aten.normal_functional(x, 1.0, 2.0),
        "uniform": lambda: aten.uniform(x, -1.0, 2.0),
        "exponential": lambda: aten.exponential(x, 2.0),
        "geometric": lambda: aten.geometric(x, 0.3),
        "cauchy": lambda: aten.cauchy(x),
        "log normal": lambda: aten.log_normal(x),
        "rrelu": lambda: aten.rrelu_with_noise_functional(x, torch.zeros_like(x), 0.1, 0.3, True),
        "poisson": lambda: aten.poisson(chance * 9),
        "gamma": lambda: aten._standard_gamma(chance.float() + 1),
        "dirichlet": lambda: aten._sample_dirichlet(chance.float()),
        "multinomial": lambda: aten.multinomial(chance.reshape(-1, chance.shape[-1]), 3),
        "randperm": lambda: aten.randperm(33, device=x.device),
    }
    if x.dtype == torch.float16 and x.device.type == "cpu":
        del draws["rrelu"]  # has no kernel
    return draws


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", REAL)
def test_draws_from_the_state_before_them(dtype, device):
    torch.manual_seed(0)
    for layout in LAYOUTS:
        x = LAYOUTS[layout](torch.randn(3, 5, 7, 9).to(dtype).to(device))
        for name, draw in _draws(x).items():
            state = read_state(x.device)
            made = torch.utils._pytree.tree_leaves(draw())
            after = read_state(x.device)
            torch.rand(3, device=device)
            now = read_state(x.device)
            again = torch.utils._pytree.tree_leaves(replay(state, x.device, draw))
            assert all(map(alike, made, again)), f"{name} {layout}"
            assert torch.equal(read_state(x.device), now) and not torch.equal(state, after), name


@pytest.mark.parametrize("dtype", REAL + COMPLEX)
def test_gradients_in_their_parameters_layout(dtype):
    """What the joint graph hands out is what the engine would have made of it, and the engine leaves it alone."""
    from lowtide.torch.tracing.gradient_layout import _is_taken, _order, copied

    graph, mode = torch.fx.Graph(), torch._subclasses.FakeTensorMode()
    for (a, of), (b, like) in itertools.product(LAYOUTS.items(), LAYOUTS.items()):
        gradient = of(numbers((3, 5, 7, 9), dtype))
        parameter = like(torch.zeros(3, 5, 7, 9, dtype=dtype)).detach().requires_grad_()
        node = graph.placeholder("gradient")
        node.meta["val"] = mode.from_tensor(gradient)
        held = gradient
        if not _is_taken(gradient, parameter):
            made = copied(graph, node, _order(parameter))
            order = _order(parameter)
            back = sorted(range(4), key=order.__getitem__)
            held = gradient.permute(order).clone(memory_format=torch.contiguous_format).permute(back)
            assert made.meta["val"].stride() == held.stride()
        parameter.backward(gradient)
        sizes = [(n, mine) for n, mine in zip(gradient.shape, zip(held.stride(), parameter.grad.stride(), strict=True),
                                              strict=True) if n > 1]
        assert all(mine == theirs for _, (mine, theirs) in sizes), f"{a} {b}"
        assert alike(held.contiguous(), parameter.grad.contiguous()), f"{a} {b}"


# ---- whole steps


class OneNormTwoInputs(nn.Module):
    """A batch norm that runs twice, and whose first run nothing but its statistics ties to the second."""

    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x, y):
        second = self.norm(y.exp()).tanh()
        return (self.norm(x.cos()).sigmoid() * second).mean()


def test_statistics_that_move_twice_move_in_order():
    torch.manual_seed(0)
    module = OneNormTwoInputs()
    inputs = tuple(torch.randn(256, 16).requires_grad_() for _ in range(2))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    mine, step, _ = optimized(module, inputs, "act:1%")
    assert equal(train(mine, inputs, step), expected)


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Conv2d(3, 32, 3, padding=1), nn.Conv2d(32, 8, 3, padding=1)])
        self.norm = nn.InstanceNorm2d(32, affine=True)

    def forward(self, x):
        with torch.autocast("cpu", torch.bfloat16):
            x = F.leaky_relu(self.norm(self.convs[0](x)))
            return self.convs[1](F.max_pool2d(x, 2)).float().square().mean()


def test_kernels_are_priced_on_what_their_predecessors_make():
    """Under autocast the fake batch norm says other number types than the real one, on which its backward needs
    scratch as large as its result."""
    torch.manual_seed(0)
    module, inputs = Normed(), (torch.randn(2, 3, 24, 24),)
    mine, step, report = optimized(module, inputs, "act:1%")
    step(*inputs).backward()
    mine.zero_grad()
    assert measure_peak(lambda: step(*inputs).backward(), held=(mine, inputs)) <= report.peak + 64


dice = numpy.random.default_rng(0)


@torch.library.custom_op("lowtide_test::noise", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def noise(x: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(dice.random(x.shape)).to(x.dtype)


noise.register_fake(torch.empty_like)
noise.register_autograd(lambda ctx, gradient: torch.zeros_like(gradient))


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
            x = x * noise(x)
        return x.square().mean()


def test_ops_with_random_numbers_from_outside_pytorch_run_once():
    """No generator of PyTorch's tells where its numbers come from, so none can bring them back."""
    global dice
    torch.manual_seed(0)
    module, inputs = Noisy(), (torch.randn(512, 64),)
    plain = twin(module)
    dice = numpy.random.default_rng(1)
    expected = train(plain, inputs, plain)
    mine, step, _ = optimized(module, inputs, "act:1%")
    dice = numpy.random.default_rng(1)
    assert equal(train(mine, inputs, step), expected)
