"""`lowtide.torch.step` with the optimizer's state on the host: the bits of the loop, the budget as measured, every wait needed."""

import copy
import gc
import io

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device.host import host_of, is_on_host
from lowtide.torch.device.meter import bytes_held, measure_peak, peak_rise
from lowtide.torch.optimizer.host_states import HostStates
from lowtide.torch.runtime import transfers
from torch import nn
from torch.nn import functional as F
from torch_run import alone, deterministic, equal, twin
from torch_zoo import ZOO

SLACK = 64
HOST = host_of(torch.device("cpu"))
OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, 0.01, momentum=0.9),
    "adamw": lambda p: torch.optim.AdamW(p, 1e-3),
    "fused": lambda p: torch.optim.AdamW(p, 1e-3, fused=True),
    "foreach": lambda p: torch.optim.Adam(p, 1e-3, foreach=True, amsgrad=True),
    "adafactor": lambda p: torch.optim.Adafactor(p, 1e-3),
    "rmsprop": lambda p: torch.optim.RMSprop(p, 1e-3, momentum=0.9, centered=True),
}


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    gc.collect()
    with alone(monkeypatch):
        yield


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.head = nn.ModuleList(nn.Linear(96, 96) for _ in range(4)), nn.Linear(96, 10)

    def forward(self, x, y):
        for layer in self.layers:
            x = F.dropout(F.gelu(layer(x)), 0.2, self.training)
        return F.cross_entropy(self.head(x), y)


def net():
    torch.manual_seed(0)
    return Net(), (torch.randn(64, 96), torch.randint(10, (64,)))


def stepping(model, optimizer, inputs, budget="100%", **options):
    return lowtide.torch.step(model, optimizer, inputs, budget=budget, **{
        "state_home": "host", "link": "1GB/s,10us", "costs": "cpu", "work": 20_000, "time": None} | options)


def eager(model, optimizer, inputs):
    loss = model(*inputs)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.detach()


def losses(step, times=4):
    found = []
    for i in range(times):
        torch.manual_seed(i)
        found.append(step())
    return found


def both(make, **options):
    """The loop's model and optimizer, ours, our step, and the loop's."""
    model, inputs = net()
    mine = twin(model)
    theirs, ours = make(model.parameters()), make(mine.parameters())
    step = stepping(mine, ours, inputs, **options)
    return model, theirs, mine, ours, lambda: step(*inputs), lambda: eager(model, theirs, inputs), step.report


def assert_same(model, optimizer, mine, ours):
    assert equal(list(model.parameters()), list(mine.parameters()))
    state, own = optimizer.state_dict(), ours.state_dict()
    assert state["param_groups"] == own["param_groups"]
    for key, entries in state["state"].items():
        for name, value in entries.items():
            assert torch.equal(torch.as_tensor(value).cpu(), torch.as_tensor(own["state"][key][name]).cpu()), name


def large(optimizer):
    return [t for state in optimizer.state.values() for t in state.values() if torch.is_tensor(t) and t.nbytes > 64]


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_bits_are_those_of_the_loop_within_the_budget_as_measured(name):
    model, theirs, mine, ours, step, loop, report = both(OPTIMIZERS[name], budget="60%" if name != "adafactor" else "80%")
    assert sum(v for k, v in report.offloaded.items() if k.startswith("input")) > 0
    held = bytes_held(mine) + 64 * 96 * 4 + 64 * 8
    found = []
    for i, expected in enumerate(losses(loop)):
        torch.manual_seed(i)
        peak = held + peak_rise(lambda: found.append(step()))
        assert peak <= report.peak + SLACK
        assert torch.equal(found.pop(), expected)
        assert all(map(is_on_host, large(ours))), "between steps"
    assert_same(model, theirs, mine, ours)
    assert measure_peak(step, held=(mine, ours)) <= report.peak + SLACK  # in which the host's memory does not count


def test_less_than_the_state_itself_takes():
    model, _ = net()
    parameters = bytes_held(model)
    with pytest.raises(lowtide.torch.BudgetError) as on_device:
        stepping(model, torch.optim.AdamW(model.parameters()), net()[1], "1%", state_home="device", techniques="default,offload")
    with pytest.raises(lowtide.torch.BudgetError) as on_host:
        both(OPTIMIZERS["adamw"], budget="1%")
    assert on_host.value.smallest < on_device.value.smallest - 1.4 * parameters


@pytest.mark.parametrize("wait", ["arrive", "gone"])
def test_without_a_wait_the_bits_are_wrong(wait, monkeypatch):
    if wait == "arrive":
        monkeypatch.setattr(transfers.Coming, "land", lambda self: self._t)
    else:
        monkeypatch.setattr(transfers.Leaving, "land", lambda self: self._host)
    model, _, mine, _, step, loop, _ = both(OPTIMIZERS["adamw"], budget="60%", techniques=["recompute", "offload"])
    losses(step), losses(loop)
    assert not equal(list(model.parameters()), list(mine.parameters()))


def test_a_state_that_ordinary_steps_made_or_that_was_loaded_goes_home():
    model, inputs = net()
    mine = twin(model)
    theirs, ours = (torch.optim.AdamW(m.parameters(), 1e-3) for m in (model, mine))
    for m, optimizer in ((model, theirs), (mine, ours)):
        losses(lambda m=m, optimizer=optimizer: eager(m, optimizer, inputs), 2)
    step = stepping(mine, ours, inputs, "60%")
    assert not any(map(is_on_host, large(ours)))
    assert equal(losses(lambda: eager(model, theirs, inputs)), losses(lambda: step(*inputs)))
    assert all(map(is_on_host, large(ours)))
    file = io.BytesIO()
    torch.save(ours.state_dict(), file)
    file.seek(0)
    ours.load_state_dict(torch.load(file))
    theirs.load_state_dict(copy.deepcopy(theirs.state_dict()))
    assert not any(map(is_on_host, large(ours)))
    assert equal(losses(lambda: eager(model, theirs, inputs)), losses(lambda: step(*inputs)))
    assert_same(model, theirs, mine, ours)
    losses(lambda: eager(mine, ours, inputs), 1)  # and an ordinary loop goes on
    losses(lambda: eager(model, theirs, inputs), 1)
    assert_same(model, theirs, mine, ours)


def test_a_step_that_fails_in_the_middle_loses_nothing(monkeypatch):
    model, theirs, mine, ours, step, loop, _ = both(OPTIMIZERS["adamw"], budget="60%")
    losses(step), losses(loop)
    real, seen = transfers.Leaving.give_up, []

    def fails(self):
        seen.append(1)
        if len(seen) == 3:
            raise MemoryError("on purpose")
        real(self)

    before = copy.deepcopy((mine.state_dict(), ours.state_dict()))
    monkeypatch.setattr(transfers.Leaving, "give_up", fails)
    with pytest.raises(MemoryError, match="on purpose"):
        step()
    monkeypatch.undo()
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    ours.zero_grad()
    for p in large(ours):
        assert torch.isfinite(p).all(), "nothing of what is there is half a copy"
    mine.load_state_dict(before[0])
    ours.load_state_dict(before[1])
    assert equal(losses(loop), losses(step))
    assert_same(model, theirs, mine, ours)


def test_memory_does_not_grow():
    *_, step, _, _ = both(OPTIMIZERS["adamw"], budget="60%")
    losses(step, 3)
    gc.collect()
    used, held = HOST.bytes_now(), HOST.held
    losses(step, 20)
    gc.collect()
    assert (HOST.bytes_now(), HOST.held) == (used, held)


def test_parts_and_a_state_on_the_host():
    model, theirs, mine, ours, step, loop, report = both(OPTIMIZERS["fused"], budget="60%", techniques="all")
    mine.eval(), model.eval()
    expected = losses(loop)
    for a, b in zip(losses(step), expected, strict=True):
        torch.testing.assert_close(a, b)
    assert report.offloaded and all(map(is_on_host, large(ours)))


def test_the_smallest_budget_is_less_than_half_of_that_by_recomputation_and_is_kept():
    torch.manual_seed(0)
    model, inputs = ZOO["encoder"]()  # of the language models the one that gains least
    options = {"costs": "cpu", "work": 60_000, "time": None}
    with pytest.raises(lowtide.torch.BudgetError) as recomputed:
        lowtide.torch.optimize(twin(model), inputs, budget="1%", techniques="recompute", optimizer="adamw", **options)

    def smallest(budget):
        torch._dynamo.reset()
        mine = twin(model)
        return mine, stepping(mine, torch.optim.AdamW(mine.parameters(), fused=True), inputs, budget, techniques="all", **options)

    with pytest.raises(lowtide.torch.BudgetError) as found:
        smallest("1%")
    assert found.value.smallest <= recomputed.value.smallest / 2
    mine, step = smallest(found.value.smallest)
    step(*inputs)
    peak = bytes_held(mine, inputs) + peak_rise(lambda: step(*inputs))
    assert peak <= found.value.smallest + SLACK


def test_a_needlessly_fetched_tensor_is_at_home_afterwards():
    p = nn.Parameter(torch.randn(64, 64))
    optimizer = torch.optim.AdamW([p])
    states = HostStates(optimizer)
    for name in ("fetch", "gone"):  # before the first update there is nothing yet
        getattr(states, name)(p, "exp_avg")
    p.grad = torch.randn(64, 64)
    optimizer.step()
    made = optimizer.state[p]["exp_avg"].clone()
    states.go_home([(p, "exp_avg")])
    home = optimizer.state[p]["exp_avg"]
    for _ in range(2):
        states.fetch(p, "exp_avg")
        states.gone(p, "exp_avg")
        assert optimizer.state[p]["exp_avg"] is home and torch.equal(home, made)
    states.fetch(p, "exp_avg")
    states.arrive(p)
    optimizer.state[p]["exp_avg"].add_(1)
    states.leave(p, "exp_avg")
    states.gone(p, "exp_avg")
    assert is_on_host(optimizer.state[p]["exp_avg"]) and torch.equal(optimizer.state[p]["exp_avg"], made + 1)
    states.fetch(p, "exp_avg")
    states.arrive(p)
    with pytest.raises(lowtide.InternalError, match="exp_avg: what an update has made is given up before it is home"):
        states.gone(p, "exp_avg")


def test_wrong_options_are_refused():
    model, inputs = net()
    optimizer = torch.optim.AdamW(model.parameters())
    with pytest.raises(ValueError, match="state_home must be 'device' or 'host', not 'disk'"):
        stepping(model, optimizer, inputs, state_home="disk")
    with pytest.raises(ValueError, match="state_home='host' needs offloading, but techniques excludes it"):
        stepping(model, optimizer, inputs, techniques="recompute", link=None)
    with pytest.raises(ValueError, match="lowtide knows no option 'state_home'"):
        lowtide.torch.optimize(model, inputs, budget="100%", state_home="host")
    with pytest.raises(lowtide.torch.BudgetError, match="host_budget: 1000 bytes are less than the 305664 of the optim"):
        stepping(model, optimizer, inputs, host_budget=1000)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu_the_state_is_pinned_and_the_bits_are_those_of_the_loop(monkeypatch):
    model, inputs = net()
    model, inputs = model.cuda(), [t.cuda() for t in inputs]
    mine = twin(model)
    theirs, ours = (torch.optim.AdamW(m.parameters(), 1e-3) for m in (model, mine))
    step = stepping(mine, ours, inputs, "act:80%", costs="measured")
    with deterministic(monkeypatch):
        for i in range(4):
            torch.manual_seed(i)
            expected = eager(model, theirs, inputs)
            torch.manual_seed(i)
            assert torch.equal(step(*inputs), expected)
    assert all(t.device.type == "cpu" and t.is_pinned() for t in large(ours))
    assert_same(model, theirs, mine, ours)
