"""Models of several graphs, forwards beside one another, and that planning before the first step leaves no trace."""

import copy
import gc
import warnings
import weakref

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch import measure_peak
from torch import nn


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def losses(module, step, x, steps=3):
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(module.parameters(), lr=0.01)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = step(x)
        loss.backward()
        found += [loss.detach().clone(), *(p.grad.clone() for p in module.parameters())]
        optimizer.step()
    return found


def optimize(module, x, budget="100%", **options):
    return lowtide.torch.optimize(module, (x,), budget=budget, costs="cpu", work=50_000, time=None, **options)


class LazyMask(nn.Module):
    """Builds a table at the first call, counts its calls and remembers a result, as models do."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.mask = self.last = None
        self.calls = 0

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.arange(8.0)
        self.calls += 1
        y = torch.tanh(self.layer(x)) * self.mask / self.calls
        if self.last is not None:
            y = y + self.last
        self.last = y.detach().mean(0)
        return y.square().sum()


class Block(nn.Module):
    """A layer with a break of the graph in its middle, where it notes a value."""

    def __init__(self, d):
        super().__init__()
        self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
        self.seen = []

    def forward(self, x):
        h = nn.functional.gelu(self.up(x))
        self.seen.append(h.sum().item())
        return x + self.down(h)


class Broken(nn.Module):
    def __init__(self, blocks=4, d=64):
        super().__init__()
        self.blocks = nn.ModuleList(Block(d) for _ in range(blocks))

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x.square().mean()


def kept_by(module):
    """What the module's own code keeps."""
    return [{name: copy.copy(value) for name, value in vars(part).items() if name[0] != "_"} for part in module.modules()]


@pytest.mark.parametrize("build", [LazyMask, Broken])
def test_planning_leaves_no_trace_in_the_module(build):
    torch.manual_seed(0)
    module = build()
    plain, x = copy.deepcopy(module), torch.randn(16, 8 if build is LazyMask else 64)
    given, before = x.clone(), kept_by(module)
    step = optimize(module, x)
    assert kept_by(module) == before
    assert torch.equal(x, given)
    expected, got = losses(plain, plain, x), losses(module, step, x)
    assert all(map(torch.equal, expected, got))
    if build is Broken:
        assert kept_by(module) == kept_by(plain)


def test_a_region_that_runs_for_every_block_is_counted_for_every_block():
    torch.manual_seed(0)
    module, x = Broken(), torch.randn(512, 64)
    kept = 0
    for budget in ("100%", "90%", "60%"):
        torch._dynamo.reset()
        mine = copy.deepcopy(module)
        try:
            step = optimize(mine, x, budget)
        except lowtide.torch.BudgetError as error:
            assert error.floor > 0 and "graphs" in str(error)
            continue
        step(x).backward()
        mine.zero_grad()
        peak = measure_peak(lambda step=step: step(x).backward(), held=(mine, x))
        assert peak <= lowtide.torch.reports()[-1].budget
        kept += 1
    assert kept > 1
    with pytest.raises(lowtide.torch.BudgetError):
        optimize(copy.deepcopy(module), x, "40%")


@pytest.mark.parametrize("inner", ["eager", "fused"])
def test_a_gradient_may_be_a_copy_of_what_a_later_region_hands_back(uncompiled, inner):
    class Added(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear, self.offset = nn.Linear(4, 4), nn.Parameter(torch.randn(4, 8).t())

        def forward(self, x):
            y = self.linear(x).tanh() + self.offset
            torch._dynamo.graph_break()
            return y.square().mean()

    torch.manual_seed(0)
    module, x = Added(), torch.randn(8, 4)
    mine = copy.deepcopy(module)
    step = optimize(mine, x, inner=inner, fallback="error")
    for got, expected in zip(losses(mine, step, x), losses(module, module, x), strict=True):
        torch.testing.assert_close(got, expected)


class BrokenBeforeItsHead(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.up, self.head = nn.Embedding(2048, 32), nn.Linear(32, 32), nn.Linear(32, 2048)

    def forward(self, x):
        h = torch.tanh(self.up(self.embed(x)))
        torch._dynamo.graph_break()
        return nn.functional.cross_entropy(self.head(h).flatten(0, 1), x.flatten())


@pytest.mark.filterwarnings("ignore:lowtide. several graphs")
def test_the_last_of_several_regions_runs_in_parts():
    """Which is where a language model's peak is."""
    torch.manual_seed(0)
    module, x = BrokenBeforeItsHead(), torch.randint(0, 2048, (16, 16))
    plain = copy.deepcopy(module)
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        optimize(copy.deepcopy(module), x, "50%")
    torch._dynamo.reset()
    count = len(lowtide.torch.reports())
    step = optimize(module, x, "50%", techniques="all")
    reports = lowtide.torch.reports()[count:]
    assert [bool(report.transforms) for report in reports] == [False, True]
    assert all(report.budget < refused.value.floor for report in reports)
    for run in (step, plain):
        run(x).backward()
    names = {name for name, p in module.named_parameters() if not torch.equal(p.grad, plain.get_parameter(name).grad)}
    assert names <= {*reports[1].exactness.sums, *reports[1].exactness.follows} <= {"head.weight", "head.bias"}
    module.zero_grad()
    assert measure_peak(lambda: step(x).backward(), held=(module, x)) <= reports[1].budget
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        optimize(copy.deepcopy(plain), x, 1, techniques="all")
    assert refused.value.floor <= refused.value.smallest < reports[1].budget


def test_that_several_regions_stay_whole_is_said_once():
    torch.manual_seed(0)
    module, x = Broken(2), torch.randn(64, 64)
    plain = copy.deepcopy(module)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step = optimize(module, x, "95%", techniques="all")
    assert len([w for w in said if "several graphs of this model share the budget" in str(w.message)]) == 1
    assert not any(report.transforms for report in lowtide.torch.reports()[-3:])
    assert all(map(torch.equal, losses(module, step, x), losses(plain, plain, x)))


def test_a_share_is_one_of_the_whole_step_whatever_its_regions():
    torch.manual_seed(0)
    module, x = Broken(2), torch.randn(512, 64)
    optimize(module, x, "100%")
    own = lowtide.torch.reports()[-1].budget
    torch._dynamo.reset()
    count = len(lowtide.torch.reports())
    optimize(module, x, "95%")
    budgets = {report.budget for report in lowtide.torch.reports()[count:]}
    assert len(budgets) == 1 and abs(budgets.pop() - 0.95 * own) <= 1


def test_the_state_of_all_regions_parameters_is_counted():
    module, x = Broken(2), torch.randn(16, 64)
    count = len(lowtide.torch.reports())
    optimize(module, x, "1GiB", optimizer="adam")
    state = 2 * sum(p.numel() * 4 for p in module.parameters())
    assert all(report.resident >= state for report in lowtide.torch.reports()[count:])


def test_a_second_forward_before_the_backward_is_said_to_break_the_budget():
    class Body(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(6))

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return x

    module, x = Body(), torch.randn(1024, 64)
    step = optimize(module, x, "act:70%")
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.OverBudgetWarning)
        for _ in range(2):
            step(x).mean().backward()
            module.zero_grad()
    with pytest.warns(lowtide.torch.OverBudgetWarning, match="others hold .* beside .* reserve="):
        (step(x).mean() + step(-x).mean()).backward()


def test_regions_that_come_later_are_said_to_break_the_budget():
    torch.manual_seed(0)
    module, x = Broken(2, d=128), torch.randn(16, 128)
    step = torch.compile(module, backend="lowtide", options={"budget": "100%", "costs": "cpu"})
    with pytest.warns(lowtide.torch.OverBudgetWarning, match="plans all graphs together"):
        step(x).backward()


def test_nothing_of_a_model_outlives_it():
    module = nn.Linear(8, 8)
    options = {"budget": "1GiB", "costs": "cpu", "optimizer": torch.optim.Adam(module.parameters())}
    step = torch.compile(module, backend="lowtide", options=options)
    step(torch.randn(16, 8)).sum().backward()
    gone = weakref.ref(options["optimizer"])
    del module, step, options
    torch._dynamo.reset()
    gc.collect()
    assert gone() is None


def test_a_class_may_be_planned_often():
    with torch._dynamo.config.patch(recompile_limit=2):
        for i in range(4):
            module = Broken(1)
            count = len(lowtide.torch.reports())
            optimize(module, torch.randn(16, 64), f"{100 + i}MB")
            assert len(lowtide.torch.reports()) > count
