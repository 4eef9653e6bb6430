"""What updates in the backward cannot do is an error with a remedy, before anything wrong is written."""

import copy
import io
import os

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch import UpdateError
from torch import nn
from torch._dynamo import compiled_autograd
from torch.nn.parallel import DistributedDataParallel
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch_updates import Broken, Mlp, compiled, mlp_inputs, steps

X, = mlp_inputs()


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def trained():
    """A module whose plan updates in the backward, as it was compiled, and its optimizer."""
    model = Mlp(layers=2)
    optimizer = torch.optim.AdamW(model.parameters())
    return model, compiled(model, mlp_inputs(), optimizer), optimizer


def assert_refused(model, words, function, error=UpdateError):
    """No parameter changes, and no gradient comes."""
    before = [(p.detach().clone(), p.grad) for p in model.parameters()]
    with pytest.raises(error, match=words):
        function()
    assert all(torch.equal(p, q) and p.grad is g for p, (q, g) in zip(model.parameters(), before, strict=True))


def test_parameters_that_the_forward_writes_to():
    class Normed(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.out = nn.Embedding(8, 4, max_norm=0.5), nn.Linear(4, 4)

        def forward(self, i):
            return self.out(self.table(i)).square().mean()

    model, i = Normed(), torch.randint(8, (6,))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(lowtide.torch.CaptureError, match="update: the forward writes to .*max_norm"):
        lowtide.torch.step(model, optimizer, (i,), budget="1GiB", costs="cpu")


def done(optimizer):
    optimizer.step()
    optimizer.zero_grad()


def test_forwards_and_backwards(trained):
    model, run, optimizer = trained
    first, second = run(X), run(X)
    assert_refused(model, "another forward with the same parameters waits", first.backward)
    assert_refused(model, "another forward with the same parameters waits", second.backward)
    assert_refused(model, "gets a gradient from 2 places", (first + second).backward)
    with lowtide.torch.accumulate(model):
        assert_refused(model, "gets a gradient from 2 places", (first + second).backward)
    del first, second

    kept = run(X)
    assert_refused(model, "retain_graph=True keeps this forward", lambda: kept.backward(retain_graph=True))
    kept.backward()
    assert_refused(model, "a second backward before optimizer.step", kept.backward)
    assert_refused(model, "a forward before optimizer.step", lambda: run(X))
    with torch.no_grad():
        assert_refused(model, "a forward before optimizer.step", lambda: run(X))
    with lowtide.torch.accumulate(model):
        assert_refused(model, "a forward before optimizer.step", lambda: run(X))
    optimizer.zero_grad()
    assert_refused(model, "a forward before optimizer.step", lambda: run(X))
    optimizer.step()
    run(X).backward()


def test_a_graph_whose_saved_tensors_moved(trained):
    """Nobody sees that such a forward waits, but its number is there."""
    model, run, optimizer = trained
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        first, second = run(X), run(X)
    first.backward()
    done(optimizer)
    assert_refused(model, "modified by an inplace operation|of other weights", second.backward, RuntimeError)


@pytest.mark.parametrize("use", [
    lambda m: nn.utils.clip_grad_norm_(m.parameters(), 1.0), lambda m: nn.utils.clip_grad_value_(m.parameters(), 1.0),
    lambda m: nn.utils.clip_grad_norm_(m.parameters(), 1.0, foreach=True),
    lambda m: m.layers[0].bias.grad.add_(0.1 * m.layers[0].bias.detach()), lambda m: m.layers[0].bias.grad.abs().max(),
    lambda m: m.layers[0].bias.grad.data, lambda m: m.layers[0].bias.grad.double().norm(),
    lambda m: m.layers[0].bias.square().sum().backward(),
    lambda m: torch.optim.SGD(m.parameters(), 0.1).step()])
def test_gradients_that_are_no_more(trained, use):
    """Clipping, regularizers and whatever else reads gradients finds none, and is told so."""
    model, run, optimizer = trained
    run(X).backward()
    assert_refused(model, "uses a gradient that is no more.*use update='step'", lambda: use(model))
    assert "updated in the backward" in repr(model.layers[0].bias.grad)
    done(optimizer)
    run(X).backward()
    done(optimizer)


@pytest.mark.parametrize("move", [
    nn.Module.double, nn.Module.share_memory, lambda m: m.to("meta"), lambda m: m.to(memory_format=torch.channels_last),
    lambda m: m.to_empty(device="cpu"), copy.deepcopy, lambda m: torch.save(m, io.BytesIO()), repr])
def test_a_module_goes_elsewhere_with_gradients_that_are_no_more(trained, move):
    model, run, optimizer = trained
    run(X).backward()
    optimizer.step()
    move(model)
    model.zero_grad()
    assert all(p.grad is None for p in model.parameters())


def test_gradients_from_elsewhere(trained):
    model, run, optimizer = trained
    loss = run(X) + 0.1 * sum(p.square().sum() for p in model.parameters())
    assert_refused(model, "from 2 places of one backward.*such as a regularizer", loss.backward)
    loss = run(X)
    assert_refused(model, "asks for some gradients", lambda: torch.autograd.grad(loss, [model.layers[0].weight]))
    assert_refused(model, "asks for some gradients", lambda: loss.backward(inputs=[model.layers[0].weight]))
    loss.backward(inputs=list(model.parameters()))
    optimizer.step()
    assert_refused(model, "has not been set to None or zero.*optimizer.zero_grad", run(X).backward)
    optimizer.zero_grad()

    run(X).backward()
    model.layers[0].weight.grad = torch.zeros(32, 32)
    for _ in range(2):
        assert_refused(model, "would update it twice", optimizer.step)
    optimizer.zero_grad()
    optimizer.step()
    model.layers[0].weight.grad = torch.zeros(32, 32).to_sparse()
    assert_refused(model, "gradient of layout torch.sparse_coo", run(X).backward)
    optimizer.zero_grad()
    optimizer.param_groups[0]["params"].pop()
    assert_refused(model, "in no group of the optimizer any more", run(X).backward)


@pytest.mark.parametrize("rate", [0.01, torch.tensor(0.01)])
def test_a_rate_that_changes_between_backward_and_step(rate):
    model = Mlp(layers=1)
    optimizer = torch.optim.AdamW(model.parameters(), rate)
    run = compiled(model, mlp_inputs(), optimizer)
    steps(run, optimizer, mlp_inputs, 2)
    group = optimizer.param_groups[0]
    run(X).backward()
    if isinstance(rate, torch.Tensor):
        rate.fill_(0.1)
    else:
        group["lr"] = 0.1
    assert_refused(model, "settings of one of the optimizer's groups, such as lr, have changed", optimizer.step)


def test_backwards_outside_of_the_region_are_allowed(trained):
    """The gradient of what a loss outside of the model takes; backwards of the module as it was."""
    model, run, optimizer = trained
    out = run(X)
    loss = out.square()
    assert torch.equal(torch.autograd.grad(loss, out, retain_graph=True)[0], 2 * out)
    loss.backward()
    done(optimizer)
    weight = model.layers[0].weight
    (model(X) + weight.sum()).backward(retain_graph=True)
    assert weight.grad is not None
    optimizer.step()
    optimizer.zero_grad()


def test_hooks(trained):
    model, run, optimizer = trained
    for register in (model.layers[0].weight.register_hook, model.layers[0].bias.register_post_accumulate_grad_hook):
        hook = register(lambda g: None)
        assert_refused(model, "hooks on its gradient", run(X).backward)
        with lowtide.torch.accumulate(model):
            assert_refused(model, "hooks on its gradient", run(X).backward)
        with pytest.raises(UpdateError, match="hooks on its gradient"):
            compiled(model, mlp_inputs(), optimizer)
        hook.remove()
    for register in (optimizer.register_step_post_hook, register_optimizer_step_pre_hook):
        hook = register(lambda *_: None)
        assert_refused(model, "hooks on its step", run(X).backward)
        hook.remove()
    run(X).backward()


def test_several_regions_are_refused_before_the_first_is_updated():
    model = Broken()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    run = compiled(model, mlp_inputs(), optimizer)
    hook = model.first.weight.register_hook(lambda g: g)
    assert_refused(model, "hooks on its gradient", run(X).backward)
    hook.remove()
    loss = run(X)
    assert_refused(model, "asks for some gradients", lambda: loss.backward(inputs=list(model.first.parameters())))
    with lowtide.torch.accumulate(model.second):
        assert_refused(model, "some are not", loss.backward)
    loss.backward()
    done(optimizer)


def test_a_parameter_in_two_regions():
    model = Broken(tied=True)
    run = compiled(model, mlp_inputs(), torch.optim.SGD(model.parameters(), 0.1))
    assert_refused(model, "from two graphs", run(X).backward)


class Block(nn.Linear):
    def forward(self, x):
        return torch.tanh(super().forward(x))


class Blocks(nn.Module):
    def __init__(self, tied):
        super().__init__()
        self.first = Block(32, 32)
        self.second = self.first if tied else Block(32, 32)

    def forward(self, x):
        return self.second(self.first(x)).square().mean()


@pytest.mark.parametrize("tied", [True, False])
def test_blocks_that_are_compiled_one_by_one(tied):
    """A block that runs twice in a step; the code of one block for another."""
    model = Blocks(tied)
    options = {"budget": "100%", "optimizer": torch.optim.SGD(model.parameters(), 0.1), "update": "backward",
               "costs": "flops", "fallback": "error"}
    for block in (model.first, model.second):
        block.compile(backend="lowtide", options=options)
    x = X.clone().requires_grad_()
    words = "from two graphs, two calls of one" if tied else "one block's code for another block"
    assert_refused(model, words, lambda: model(x).backward())


def test_scaled_losses(trained):
    model, run, optimizer = trained
    steps(run, optimizer, mlp_inputs, 1)
    disabled, other = torch.amp.GradScaler("cpu", enabled=False), torch.amp.GradScaler("cpu")
    other.scale(torch.ones(()))
    disabled.scale(run(X)).backward()
    done(optimizer)
    (run(X) * torch.tensor(3.0)).backward()
    done(optimizer)
    for scale in (1024.0, 1.0):
        scaler = torch.amp.GradScaler("cpu", init_scale=scale)
        assert_refused(model, "scaled by a GradScaler", scaler.scale(run(X)).backward)
        assert_refused(model, "scaled by a GradScaler", sum(scaler.scale([run(X).square()])).backward)


def test_compiled_autograd(trained):
    model, run, _ = trained
    loss = run(X)
    with compiled_autograd._enable(torch.compile(backend="eager")):
        assert_refused(model, "compiled autograd puts", loss.backward)


@pytest.mark.skipif(not (torch.distributed.is_available() and torch.distributed.is_gloo_available()), reason="no gloo")
def test_ranks(trained, tmp_path):
    model, run, _ = trained
    torch.distributed.init_process_group("gloo", store=torch.distributed.FileStore(os.fspath(tmp_path / "store"), 1), rank=0,
                                         world_size=1)
    try:
        assert_refused(model, "within DistributedDataParallel", lambda: DistributedDataParallel(run)(X))
    finally:
        torch.distributed.destroy_process_group()


@pytest.mark.parametrize(("optimizer", "words"), [
    (lambda p: None, "needs the optimizer that makes the updates"),
    (lambda p: "adamw", "needs the optimizer that makes the updates"),
    (lambda p: torch.optim.LBFGS(p), "LBFGS reads all gradients at once"),
    (lambda p: torch.optim.SparseAdam(p), "SparseAdam takes sparse gradients"),
    (lambda p: torch.optim.AdamW(p, differentiable=True), "differentiable=True keeps the graph"),
    (lambda p: torch.optim.AdamW(p, capturable=True), "capturable=True is for steps within CUDA graphs"),
    (lambda p: type("Mine", (torch.optim.SGD,), {})(p, 0.1), "Mine is none of torch.optim")])
def test_optimizers(optimizer, words):
    model = Mlp(layers=1)
    with pytest.raises((TypeError, ValueError), match=words):
        compiled(model, mlp_inputs(), optimizer(list(model.parameters())))


def test_options():
    model = Mlp(layers=1)
    with pytest.raises(ValueError, match="update must be 'step' or 'backward', not 'early'"):
        lowtide.torch.optimize(model, mlp_inputs(), budget="100%", optimizer=torch.optim.SGD(model.parameters(), 0.1), update="early")


def test_an_exception_within_an_update_leaves_an_ordinary_optimizer(trained, monkeypatch):
    model, run, optimizer = trained
    steps(run, optimizer, mlp_inputs, 1)
    groups = optimizer.param_groups
    loss = run(X)
    with monkeypatch.context() as patched:
        patched.setitem(groups[0], "betas", None)
        with pytest.raises(TypeError):
            loss.backward()
    assert optimizer.param_groups is groups
    done(optimizer)
    steps(run, optimizer, mlp_inputs, 1)
    model(X).backward()
    assert all(type(p.grad) is torch.Tensor for p in model.parameters())
    done(optimizer)
