"""Parameters updated in the backward: the same bits as a step after it, in less memory, and never in silence."""

import copy
import gc
import warnings

import lowtide.torch
import pytest
import torch
import torch.nn.functional as F
from lowtide.torch.meter import bytes_held, peak_rise
from torch import nn
from torch.optim import lr_scheduler

pytestmark = pytest.mark.filterwarnings("ignore:lowtide. update='backward' leaves no gradients")


class Mlp(nn.Module):
    def __init__(self, width=32, layers=3, dropout=0.1):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.dropout = dropout

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(F.gelu(layer(x)), self.dropout, self.training)
        return x.square().mean()


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.second, self.head = nn.Conv2d(8, 8, 3, padding=1), nn.Linear(8, 5)

    def forward(self, x, y):
        x = F.relu(self.norm(self.first(x)))
        return F.cross_entropy(self.head(F.relu(self.second(x)).mean((2, 3))), y)


class Gpt(nn.Module):
    """A language model whose head is its embedding."""

    def __init__(self, words=64, width=32, layers=2):
        super().__init__()
        self.embed = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(width, 2, 4 * width, 0.1, "gelu", batch_first=True, norm_first=True)
            for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return F.cross_entropy(self.head(x)[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())


def mlp_inputs(i=0):
    return (torch.randn(8, 32, generator=torch.Generator().manual_seed(i)),)


def cnn_inputs(i=0):
    generator = torch.Generator().manual_seed(i)
    return torch.randn(4, 3, 8, 8, generator=generator), torch.randint(0, 5, (4,), generator=generator)


def gpt_inputs(i=0):
    return (torch.randint(0, 64, (2, 12), generator=torch.Generator().manual_seed(i)),)


def compiled(model, inputs, optimizer, **options):
    return lowtide.torch.optimize(model, inputs, budget="100%", optimizer=optimizer, update="backward", costs="flops",
                                  work=1000, time=None, fallback="error", **options)


def flat(state):
    """What a state_dict of an optimizer holds, by its path."""
    if isinstance(state, dict):
        return {(key, *path): value for key in state for path, value in flat(state[key]).items()}
    if isinstance(state, (list, tuple)):
        return {(i, *path): value for i, part in enumerate(state) for path, value in flat(part).items()}
    return {(): state}


def assert_same(one, other):
    """Two pairs of module and optimizer: are all bits the same?"""
    for (name, a), b in zip(one[0].state_dict().items(), other[0].state_dict().values(), strict=True):
        assert torch.equal(a, b), name
    a, b = flat(one[1].state_dict()), flat(other[1].state_dict())
    assert a.keys() == b.keys()
    for key in a:
        assert torch.equal(a[key], b[key]) if isinstance(a[key], torch.Tensor) else a[key] == b[key], key


def steps(module, optimizer, inputs, count=3, scheduler=None):
    torch.manual_seed(7)
    losses = []
    for i in range(count):
        loss = module(*inputs(i))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        if scheduler:
            scheduler.step()
        losses.append(loss.item())
    return losses, torch.get_rng_state()


def check(build, inputs, optimizer, schedule=None, count=3):
    torch.manual_seed(0)
    plain = build()
    mine = copy.deepcopy(plain)
    by, by_mine = optimizer(plain), optimizer(mine)
    run = compiled(mine, inputs(), by_mine)
    assert lowtide.torch.reports()[-1].updated == len(list(mine.parameters()))
    (losses, state), (losses_mine, state_mine) = (
        steps(module, o, inputs, count, schedule and schedule(o)) for module, o in ((plain, by), (run, by_mine)))
    assert losses == losses_mine
    assert torch.equal(state, state_mine)
    assert all(p.grad is None for p in mine.parameters())
    assert_same((plain, by), (mine, by_mine))


OPTIMIZERS = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1),
    "momentum": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, foreach=True),
    "fused SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01, maximize=True),
    "foreach AdamW": lambda p: torch.optim.AdamW(p, 0.01, foreach=True),
    "fused AdamW": lambda p: torch.optim.AdamW(p, 0.01, fused=True),
    "AdamW with a tensor": lambda p: torch.optim.AdamW(p, torch.tensor(0.01)),
    "RMSprop": lambda p: torch.optim.RMSprop(p, momentum=0.9, centered=True),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.1),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p),
    "Adadelta": lambda p: torch.optim.Adadelta(p, maximize=True),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "Rprop": lambda p: torch.optim.Rprop(p),
    "ASGD": lambda p: torch.optim.ASGD(p),
    "Adafactor": lambda p: torch.optim.Adafactor(p),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_bits_are_those_of_a_step_after_the_backward(name):
    check(lambda: Mlp(layers=2), mlp_inputs, lambda m: OPTIMIZERS[name](m.parameters()))


def in_groups(model):
    parameters = list(model.parameters())
    return torch.optim.AdamW([{"params": parameters[::2], "lr": 0.01}, {"params": parameters[1::2], "betas": (0.5, 0.9)}])


@pytest.mark.parametrize(("build", "inputs"), [(Cnn, cnn_inputs), (Gpt, gpt_inputs),
                                               (lambda: Mlp().bfloat16(), lambda i=0: (mlp_inputs(i)[0].bfloat16(),))])
def test_models(build, inputs):
    check(build, inputs, in_groups)
    check(build, inputs, lambda m: torch.optim.SGD(m.parameters(), 0.1, momentum=0.9))


@pytest.mark.parametrize("schedule", [
    lambda o: lr_scheduler.StepLR(o, 2), lambda o: lr_scheduler.OneCycleLR(o, 0.1, total_steps=5),
    lambda o: lr_scheduler.LambdaLR(o, lambda i: 0.5**i)])
def test_schedulers(schedule):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        warnings.filterwarnings("ignore", "lowtide: update='backward' leaves")
        check(Mlp, mlp_inputs, lambda m: torch.optim.AdamW(m.parameters(), 0.01), schedule, 4)


def test_what_is_not_the_optimizers_keeps_its_gradient():
    model = Mlp()
    optimizer = torch.optim.SGD(model.layers[0].parameters(), 0.1)
    run = compiled(model, mlp_inputs(), optimizer)
    run(*mlp_inputs()).backward()
    assert model.layers[0].weight.grad is None
    assert model.layers[1].weight.grad is not None


def test_torch_compile():
    torch._dynamo.reset()
    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    options = {"budget": "100%", "optimizer": by_mine, "update": "backward", "costs": "flops", "fallback": "error"}
    run = torch.compile(mine, backend="lowtide", options=options)
    assert steps(plain, by, mlp_inputs)[0] == steps(run, by_mine, mlp_inputs)[0]
    assert_same((plain, by), (mine, by_mine))
    for module, optimizer in ((plain, by), (run, by_mine)):  # a batch of another size is another region
        torch.manual_seed(1)
        module(mlp_inputs()[0][:3]).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert_same((plain, by), (mine, by_mine))


def micro(module, optimizer, outside):
    torch.manual_seed(3)
    for step in range(2):
        for i in range(3):
            with lowtide.torch.accumulate(module if i < outside else nn.Module()):
                module(*gpt_inputs(3 * step + i)).backward()
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("outside", [2, 3])
def test_micro_batches(outside):
    """The last of them outside of the block, or all of them within: then the step is an ordinary one."""
    plain = Gpt()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, gpt_inputs(), by_mine, reserve="1MB")
    micro(plain, by, outside)
    micro(run, by_mine, outside)
    assert_same((plain, by), (mine, by_mine))


def test_accumulate_says_what_stands():
    model = Mlp(256)
    x = torch.randn(8, 256)
    run = compiled(model, x, torch.optim.AdamW(model.parameters(), fused=True))
    with lowtide.torch.accumulate(model), pytest.warns(lowtide.torch.OverBudgetWarning, match="reserve=789504 counts them"):
        run(x).backward()
    with pytest.raises(TypeError, match="accumulate takes the torch.nn.Module"), lowtide.torch.accumulate(3):
        pass


def test_the_state_goes_on_in_an_ordinary_loop():
    plain = Mlp()
    mine = copy.deepcopy(plain)
    by, by_mine = (torch.optim.AdamW(m.parameters()) for m in (plain, mine))
    run = compiled(mine, mlp_inputs(), by_mine)
    steps(plain, by, mlp_inputs)
    steps(run, by_mine, mlp_inputs)
    other = copy.deepcopy(mine)
    by_other = torch.optim.AdamW(other.parameters())
    by_other.load_state_dict(by_mine.state_dict())
    by_mine.load_state_dict(copy.deepcopy(by.state_dict()))
    for module, optimizer in ((plain, by), (other, by_other), (run, by_mine)):
        steps(module, optimizer, mlp_inputs, 1)
    assert_same((plain, by), (other, by_other))
    assert_same((plain, by), (mine, by_mine))


def test_memory_is_what_the_plan_says_and_a_fifth():
    model = Mlp(512, 8, 0.0)
    x = torch.randn(16, 512)
    plain = copy.deepcopy(model)
    by, by_mine = (torch.optim.AdamW(m.parameters(), fused=True) for m in (plain, model))
    run = compiled(model, x, by_mine)
    report = lowtide.torch.reports()[-1]

    def step(module, optimizer):
        module(x).backward()
        optimizer.step()
        optimizer.zero_grad()

    held = bytes_held(model, x)
    assert held + peak_rise(lambda: step(run, by_mine)) <= report.peak  # the first, which makes the state
    step(plain, by)
    peaks = []
    for module, optimizer in ((plain, by), (run, by_mine)):
        loss = module(x)
        peaks.append(peak_rise(lambda loss=loss, optimizer=optimizer: (loss.backward(), optimizer.step())))
        optimizer.zero_grad()
    assert peaks[1] <= 0.2 * peaks[0]


@pytest.fixture
def trained():
    """A module whose plan updates in the backward, as it was compiled, and its optimizer."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = Mlp(layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    return model, compiled(model, mlp_inputs(), optimizer), optimizer


def assert_refused(model, words, function):
    before = [p.detach().clone() for p in model.parameters()]
    with pytest.raises(RuntimeError, match=words):
        function()
    assert all(map(torch.equal, before, model.parameters()))


def test_refusals_change_nothing(trained):
    model, run, optimizer = trained
    x, = mlp_inputs()

    first, second = run(x), run(x)
    assert_refused(model, "another forward with the same parameters waits", first.backward)
    del first, second

    kept = run(x)
    kept.backward(retain_graph=True)
    assert_refused(model, "a second backward: parameters were updated|modified by an inplace operation", kept.backward)
    del kept
    loss = run(x)
    assert_refused(model, "a second backward before optimizer.step", loss.backward)
    optimizer.step()

    loss = run(x)
    model.layers[0].bias.grad = torch.ones(32)
    assert_refused(model, "has a gradient from elsewhere", loss.backward)
    optimizer.zero_grad()

    loss = run(x)
    assert_refused(model, "hand none back", lambda: torch.autograd.grad(loss, [model.layers[0].weight]))

    hook = model.layers[0].weight.register_hook(lambda g: g)
    loss = run(x)
    assert_refused(model, "hooks on its gradient", loss.backward)
    hook.remove()
    hook = optimizer.register_step_post_hook(lambda *_: None)
    loss = run(x)
    assert_refused(model, "hooks on its step", loss.backward)
    hook.remove()

    loss = run(x)
    loss.backward()
    model.layers[0].weight.grad = torch.zeros(32, 32)
    assert_refused(model, "would update it twice", optimizer.step)


def test_a_scaled_loss_is_refused(trained):
    model, run, _ = trained
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    loss = scaler.scale(run(*mlp_inputs()))
    assert_refused(model, "scaled by a GradScaler", loss.backward)


@pytest.mark.parametrize(("optimizer", "words"), [
    (lambda m: None, "needs the optimizer that makes the updates"),
    (lambda m: "adamw", "needs the optimizer that makes the updates"),
    (lambda m: torch.optim.LBFGS(m.parameters()), "LBFGS reads all gradients at once"),
    (lambda m: torch.optim.SparseAdam(m.parameters()), "SparseAdam takes sparse gradients"),
    (lambda m: type("Mine", (torch.optim.SGD,), {})(m.parameters(), 0.1), "Mine is none of torch.optim")])
def test_optimizers_that_are_refused(optimizer, words):
    model = Mlp(layers=1)
    with pytest.raises((TypeError, ValueError), match=words):
        compiled(model, mlp_inputs(), optimizer(model))


def test_an_exception_within_an_update_leaves_an_ordinary_optimizer(trained, monkeypatch):
    model, run, optimizer = trained
    steps(run, optimizer, mlp_inputs, 1)
    groups = optimizer.param_groups
    loss = run(*mlp_inputs())
    with monkeypatch.context() as patched:
        patched.setitem(groups[0], "betas", None)
        with pytest.raises(TypeError):
            loss.backward()
    assert optimizer.param_groups is groups
    assert all(p.grad is None for p in model.parameters())
    optimizer.step()
    steps(run, optimizer, mlp_inputs, 1)
    model(*mlp_inputs()).backward()
    optimizer.step()


def test_a_hundred_steps_leave_nothing(trained):
    _, run, optimizer = trained
    steps(run, optimizer, mlp_inputs, 2)
    gc.collect()
    before = sum(isinstance(o, torch.Tensor) for o in gc.get_objects())
    steps(run, optimizer, mlp_inputs, 100)
    gc.collect()
    assert sum(isinstance(o, torch.Tensor) for o in gc.get_objects()) <= before + 2
