"""What is written between a forward and its backward: plans leave it alone as eager execution does, or say what was
written and what to do."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch._dynamo.exc import BackendCompilerFailed
from torch_run import alone, equal, twin


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Queue(nn.Module):
    """Compares with a clone of a buffer, which its backward needs, and not the buffer."""

    def __init__(self, width=64, entries=4096):
        super().__init__()
        self.layers = nn.Sequential(*[nn.Sequential(nn.Linear(width, width), nn.Tanh()) for _ in range(3)])
        self.register_buffer("queue", torch.randn(width, entries))

    def forward(self, x):
        return (self.layers(x) @ self.queue.clone()).square().mean()


class First(nn.Module):
    """Its first weight is read by no backward of eager execution, nor is what is added to the input."""

    def __init__(self, width=64):
        super().__init__()
        self.first, self.second, self.third = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, bias):
        return self.third(torch.tanh(self.second(torch.tanh(self.first(x + bias))))).square().mean()


OPTIONS = {"costs": "flops", "work": 3000, "time": None, "fallback": "error"}


def planned(module, budget, dynamic=None, **options):
    torch._dynamo.reset()
    return torch.compile(module, backend="lowtide", dynamic=dynamic, options={"budget": budget, **OPTIONS, **options})


def queue():
    torch.manual_seed(0)
    return Queue(), torch.randn(32, 64)


def stepped(run, module, x, write):
    """Gradients of three steps, in each of which the loop writes to the module's buffers before the backward."""
    found = []
    for _ in range(3):
        module.zero_grad()
        loss = run(x)
        with torch.no_grad():
            write(module)
        loss.backward()
        found += [loss.detach(), *(p.grad.clone() for p in module.parameters())]
    return found


def enqueue(module):
    module.queue[:, :8] += 1.0


def without_a_version(module):
    module.queue.data.mul_(0.9)


def smallest(module, *inputs):
    """The smallest budget that is found for a module's step."""
    with pytest.raises(BackendCompilerFailed) as error:
        planned(twin(module), "1KiB")(*inputs)
    return error.value.inner_exception.smallest


def named_in(error):
    return int(str(error.value).partition("a budget of ")[2].partition(" bytes")[0])


def smallest_that_bears_writes(module, x):
    """The smallest budget of a plan that leaves buffers alone, by what is said at one that is too small for that."""
    module = twin(module)
    run = planned(module, smallest(module, x))
    with pytest.raises(lowtide.torch.WrittenError) as error:
        stepped(run, module, x, enqueue)
    return named_in(error)


@pytest.mark.parametrize("write", [enqueue, without_a_version])
def test_a_buffer_may_be_written_before_the_backward(write):
    module, x = queue()
    budget, plain = smallest_that_bears_writes(module, x), twin(module)
    run = planned(module, budget)
    assert equal(stepped(run, module, x, write), stepped(plain, plain, x, write))


def test_a_write_that_no_plan_can_bear_names_the_buffer():
    module, x = queue()
    run = planned(module, smallest(module, x))
    run(x).backward()  # nobody has written
    module.zero_grad()
    loss = run(x)
    module.queue[:, :8] = 1.0
    with pytest.raises(lowtide.torch.WrittenError, match=r"the buffer queue of shape \[64, 4096\] has been modified by an inplace "
                                                         r"operation .* or give a budget of \d+ bytes"):
        loss.backward()


def test_between_two_forwards_it_may_be_written_too():
    module, x = queue()
    budget, plain = smallest_that_bears_writes(module, x), twin(module)
    # two forwards wait: room for what the first has saved
    run = planned(module, budget * 2)
    got = []
    for call, model in ((run, module), (plain, plain)):
        first = call(x)
        enqueue(model)
        second = call(x * 2)
        enqueue(model)
        (first + second).backward()
        got.append([first.detach(), second.detach(), *(p.grad for p in model.parameters())])
    assert equal(*got)


def test_an_input_may_be_written():
    torch.manual_seed(0)
    module = First()
    plain, x, bias = twin(module), torch.randn(256, 64), torch.randn(64)
    for budget in ("100%", "90%"):
        run = planned(module, budget)
        for call in (run, plain):
            one, other = x.clone(), bias.clone()
            loss = call(one, other)
            one.zero_()
            other.zero_()
            loss.backward()
        assert equal([p.grad for p in module.parameters()], [p.grad for p in plain.parameters()])
        module.zero_grad()
        plain.zero_grad()


def test_a_parameter_that_is_written_is_left_alone_from_the_next_call_on():
    """Eager execution does not need the first weight for its backward; a plan may, until it is seen that somebody writes."""
    torch.manual_seed(0)
    module = First()
    plain, x, bias = twin(module), torch.randn(256, 64), torch.randn(64)
    run = planned(module, smallest(module, x, bias))

    def step(call, model):
        model.zero_grad()
        loss = call(x, bias)
        with torch.no_grad():
            model.first.weight.mul_(0.5)
        loss.backward()
        return [p.grad.clone() for p in model.parameters()]

    with pytest.raises(lowtide.torch.WrittenError, match=r"the parameter first\.weight of shape \[64, 64\] has been"):
        step(run, module)
    with pytest.raises(lowtide.torch.WrittenError, match=r"no plan within the budget was found that does not") as error:
        step(run, module)
    run = planned(module, named_in(error))
    with pytest.raises(lowtide.torch.WrittenError, match=r"or run this step again"):
        step(run, module)
    plain = twin(module)
    assert equal([*step(run, module), *step(run, module)], [*step(plain, plain), *step(plain, plain)])


def test_errors_of_eager_execution_are_errors_under_a_plan():
    torch.manual_seed(0)
    module = First()
    x, bias = torch.randn(256, 64), torch.randn(64)
    run = planned(module, "100%")
    loss = run(x, bias)
    with torch.no_grad():
        module.third.weight.mul_(0.5)
    with pytest.raises(lowtide.torch.WrittenError, match=r"third\.weight .* as it does in eager execution, which refuses that too"):
        loss.backward()


def test_nothing_is_held_for_the_look():
    module, x = queue()
    run = planned(module, "100%")
    loss = run(x)
    loss.backward()
    ref = weakref.ref(x)
    del x
    gc.collect()
    assert ref() is None and loss.grad_fn is not None


class HandsOut(nn.Module):
    """Its second result is read by no backward of eager execution."""

    def __init__(self, width=64):
        super().__init__()
        self.first, self.second = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        hidden = self.first(x)
        return torch.tanh(self.second(torch.tanh(hidden))).square().mean(), hidden


def test_a_result_that_is_written_is_left_alone_from_the_next_call_on():
    torch.manual_seed(0)
    module, x = HandsOut(), torch.randn(512, 64)
    plain = twin(module)

    def step(call, model):
        model.zero_grad()
        loss, hidden = call(x)
        hidden.detach().zero_()
        loss.backward()
        return [loss.detach(), *(p.grad.clone() for p in model.parameters())]

    run = planned(module, smallest(module, x))
    with pytest.raises(lowtide.torch.WrittenError, match=r"result 1 of shape \[512, 64\] has been modified .* run this step again"):
        step(run, module)
    with pytest.raises(lowtide.torch.WrittenError, match=r"no plan within the budget was found that does not") as error:
        step(run, module)
    run = planned(module, named_in(error))
    with pytest.raises(lowtide.torch.WrittenError, match=r"run this step again"):
        step(run, module)
    assert equal([*step(run, module), *step(run, module)], [*step(plain, plain), *step(plain, plain)])


def test_a_buffer_is_counted_once_by_optimize():
    """Which rehearses a copy of the module: its buffers are those of the module, as far as memory goes."""
    module, x = queue()
    lowtide.torch.optimize(module, (x,), budget="8GiB", **OPTIONS)
    before = lowtide.torch.reports()[-1]
    planned(module, "8GiB")(x).backward()
    alone = lowtide.torch.reports()[-1]
    assert (before.resident, before.peak, before.own_peak) == (0, alone.peak, alone.own_peak)


class HandsOn(nn.Module):
    """Hands on a view of its argument before anything of its own."""

    def __init__(self):
        super().__init__()
        self.inner = First()

    def forward(self, x, bias):
        return x.view(-1), self.inner(x, bias)


class Passed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return gradient


def test_a_write_is_found_where_a_view_of_what_others_made_comes_first():
    torch.manual_seed(0)
    module = HandsOn()
    x, bias = Passed.apply(torch.randn(256, 64, requires_grad=True)), torch.randn(64)
    run = planned(module, "100%")
    view, loss = run(x, bias)
    with torch.no_grad():
        module.inner.third.weight.mul_(0.5)
    with pytest.raises(lowtide.torch.WrittenError, match=r"third\.weight"):
        loss.backward()


def test_where_sizes_cannot_stay_open_the_code_that_there_is_goes_on():
    """After the write a plan of open sizes is wanted anew, for two arguments in one storage."""
    torch.manual_seed(0)
    module, x, bias = First(), torch.randn(256, 64), torch.randn(256, 64)
    with pytest.raises((BackendCompilerFailed, lowtide.torch.BudgetError)) as error:
        planned(twin(module), "1KiB", dynamic=True)(x, bias)
    run = planned(module, getattr(error.value, "inner_exception", error.value).smallest, dynamic=True)
    loss = run(x, bias)
    with torch.no_grad():
        module.first.weight.mul_(0.5)
    with pytest.raises(lowtide.torch.WrittenError, match=r"the parameter first\.weight of shape"):
        loss.backward()
    del loss
    both, plain = torch.randn(512, 64), twin(module)
    run(both[:256], both[256:]).backward()
    plain(both[:256], both[256:]).backward()
    assert equal([p.grad for p in module.parameters()], [p.grad for p in plain.parameters()])
