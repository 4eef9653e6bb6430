"""Graphs that are planned as they come: from the second step on the budget holds for all of them together."""

import sys
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.api import entry
from lowtide.torch.device.meter import bytes_held, peak_rise
from lowtide.torch.graphs.accounts import Accounts
from torch import nn
from torch_run import equal, twin

OPTIONS = {"fallback": "error", "work": 30_000, "time": None}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def tower(d, layers, last):
    parts = [part for _ in range(layers) for part in (nn.Linear(d, d), nn.GELU())]
    return nn.Sequential(*parts, nn.Linear(d, last))


class Broken(nn.Module):
    """A break of the graph between two towers."""

    def __init__(self):
        super().__init__()
        self.first, self.second = tower(64, 4, 64), tower(64, 4, 1)

    def forward(self, x):
        y = self.first(x)
        torch._dynamo.graph_break()
        return self.second(y).square().mean()


class Branch(nn.Module):
    """Which tower comes second is read from the data."""

    def __init__(self):
        super().__init__()
        self.first, self.low, self.high = tower(64, 3, 64), tower(64, 3, 1), tower(64, 5, 1)

    def forward(self, x):
        y = self.first(x)
        return (self.high if x[0, 0] > 0 else self.low)(y).square().mean()


class Gan(nn.Module):
    """Generator and discriminator, trained in turn."""

    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = tower(64, 4, 64), tower(64, 4, 1)

    def forward(self, z, real=None):
        fake = self.generator(z)
        if real is None:
            return F.softplus(-self.discriminator(fake)).mean()
        return F.softplus(self.discriminator(fake.detach())).mean() + F.softplus(-self.discriminator(real)).mean()


def zero(module):
    for p in module.parameters():
        p.grad = None


def steps_of(module, xs):
    """For each x what comes before its step, and the step of what is called in the module's place."""
    return [(lambda: zero(module), lambda step, x=x: step(x).backward()) for x in xs]


def branch_steps(module, x, signs):
    def before(sign):
        zero(module)
        x[0, 0] = sign

    return [(lambda sign=sign: before(sign), lambda step: step(x).backward()) for sign in signs]


def gan_steps(module, z, real, turns):
    return [(lambda: zero(module.discriminator), lambda step: step(z, real).backward()),
            (lambda: zero(module.generator), lambda step: step(z).backward())] * turns


def peaks_of(module, steps, step, held):
    """The measured peak of each step, and the gradients after it."""
    peaks, seen = [], []
    for before, run in steps:
        before()
        peaks.append(bytes_held(module, held) + peak_rise(run, step))
        seen += [p.grad.clone() for p in module.parameters() if p.grad is not None]
    return peaks, seen


def scenarios():
    x = torch.randn(512, 64)
    z, real = torch.randn(512, 64), torch.randn(512, 64)
    return {
        "break": (Broken, lambda m: steps_of(m, [x] * 4), (x,), 1),
        "branch": (Branch, lambda m: branch_steps(m, x, [-1, -1, 1, -1, 1, -1]), (x,), (0, 2)),
        "gan": (Gan, lambda m: gan_steps(m, z, real, 3), (z, real), 2),
    }


@pytest.mark.parametrize("name", ["break", "branch", "gan"])
def test_the_budget_holds_once_all_regions_were_seen(name):
    torch.manual_seed(0)
    build, steps, held, first = scenarios()[name]
    module = build()
    plain, mine = twin(module), twin(module)
    expected_peaks, expected = peaks_of(plain, steps(plain), plain, held)
    base = bytes_held(twin(module), held)
    budget = base + (max(expected_peaks) - base) // 2
    step = torch.compile(mine, backend="lowtide", options={"budget": budget, **OPTIONS})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        peaks, got = peaks_of(mine, steps(mine), step, held)
    assert equal(got, expected)
    late = range(first, len(peaks)) if isinstance(first, int) else [i for i in range(len(peaks)) if i not in first]
    assert all(peaks[i] <= budget for i in late)
    early = [i for i in range(len(peaks)) if i not in late and peaks[i] > budget]
    assert not early or any(w.category is lowtide.torch.OverBudgetWarning for w in said)


class Whole(nn.Module):
    """One graph, whose loss is computed outside."""

    def __init__(self):
        super().__init__()
        self.tower = tower(64, 5, 64)

    def forward(self, x):
        return self.tower(x)


def with_reports(run):
    before = len(lowtide.torch.reports())
    run()
    return lowtide.torch.reports()[before:]


def test_forwards_that_wait_for_one_backward_are_planned_together_from_the_second_time_on():
    torch.manual_seed(0)
    module, x = Whole(), torch.randn(512, 64)
    plain, mine = twin(module), twin(module)

    def both_ways(call):
        (call(x)[0].sum() + call(-x)[0].sum()).backward()

    eager = bytes_held(plain, x) + peak_rise(both_ways, plain)
    budget = bytes_held(mine, x) + int(0.7 * (eager - bytes_held(mine, x)))
    step = torch.compile(mine, backend="lowtide", options={"budget": budget, **OPTIONS})
    for turn in range(3):
        zero(mine)
        if turn == 0:
            with pytest.warns(lowtide.torch.OverBudgetWarning, match="planned together"):
                both_ways(step)
        else:
            both_ways(step)
        assert equal([p.grad for p in mine.parameters()], [p.grad for p in plain.parameters()])
    zero(mine)
    assert bytes_held(mine, x) + peak_rise(both_ways, step) <= budget


def test_a_budget_that_regions_cannot_keep_together_is_refused_with_one_that_they_can():
    torch.manual_seed(0)
    module, x = Broken(), torch.randn(512, 64)
    alone_in = bytes_held(module, x)
    rise = peak_rise(lambda: twin(module)(x).backward())
    budget = alone_in + int(0.28 * rise)
    options = {"budget": budget, **OPTIONS, "costs": "cpu"}

    def train(model, settings):
        step = torch.compile(model, backend="lowtide", options=settings)
        for _ in range(3):
            zero(model)
            step(x).backward()
        zero(model)
        return bytes_held(model, x) + peak_rise(lambda: step(x).backward())

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
        with pytest.raises(lowtide.torch.BudgetError, match="smallest budget found") as caught:
            train(twin(module), options)
        assert caught.value.floor <= caught.value.smallest and caught.value.smallest > budget
        torch._dynamo.reset()
        assert train(twin(module), options | {"budget": caught.value.smallest}) <= caught.value.smallest


@pytest.mark.parametrize("given", [False, True])
def test_optimize_plans_what_it_did_not_find_from_the_next_step_on(given):
    torch.manual_seed(0)
    module, x = Branch(), torch.randn(512, 64)
    x[0, 0] = 1
    held = bytes_held(module, x)
    budget = held + int(0.6 * peak_rise(lambda: twin(module)(x).backward()))
    plain = twin(module)
    plain(x).backward()
    step = lowtide.torch.optimize(module, x if given else None, budget=budget, **OPTIONS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
        for _ in range(2):
            zero(module)
            step(x).backward()
    assert equal([p.grad for p in module.parameters() if p.grad is not None],
                 [p.grad for p in plain.parameters() if p.grad is not None])
    zero(module)
    assert bytes_held(module, x) + peak_rise(lambda: step(x).backward()) <= budget


def test_steps_that_were_seen_are_planned_once():
    torch.manual_seed(0)
    module, x = Broken(), torch.randn(256, 64)
    budget = bytes_held(module, x) + int(0.6 * peak_rise(lambda: twin(module)(x).backward()))
    step = torch.compile(module, backend="lowtide", options={"budget": budget, **OPTIONS})
    seen = []
    for _ in range(6):
        zero(module)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
            step(x).backward()
        seen.append([id(report) for report in lowtide.torch.reports()])
    assert seen[0] != seen[1] and all(later == seen[1] for later in seen[2:])
    assert len(seen[1]) == len(seen[0])


def test_forwards_without_a_backward_run_beside_each_others_inputs():
    torch.manual_seed(0)
    module, x = Broken(), torch.randn(512, 64)
    with torch.no_grad():
        expected = module(x)
        budget = bytes_held(module, x) + peak_rise(module, x)
        step = torch.compile(module, backend="lowtide", options={"budget": budget, **OPTIONS})
        for _ in range(2):
            assert torch.equal(step(x), expected)
        assert bytes_held(module, x) + peak_rise(step, x) <= budget


def last_group():
    """What is known of the graphs of the model that was compiled last."""
    return max(entry._groups.values(), key=lambda group: max((r.number for r in group.captured_graphs), default=-1))


def test_an_output_that_somebody_keeps_ends_no_step():
    module, x = Broken(), torch.randn(64, 64)
    step = torch.compile(module, backend="lowtide", options={"budget": "10MB", **OPTIONS})

    def steps(count):
        for _ in range(count):
            zero(module)
            step(x).backward()

    steps(3)
    kept = step(x)  # its backward never comes
    steps(30)
    calls = last_group().calls
    nodes = calls._nodes
    steps(30)
    assert calls._nodes == nodes and len(calls.step) <= 6
    assert calls.waiting_bytes() > 0 and kept.requires_grad


class Shuffled(nn.Module):
    """Its layers run in the order that the data say, a graph each."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(tower(16, 1, 16) for _ in range(3))

    def forward(self, x, order):
        for i in order:
            x = self.layers[i](x)
            torch._dynamo.graph_break()
        return x.square().mean()


def test_orders_of_calls_that_fit_cost_no_more_than_themselves(monkeypatch):
    module, x = Shuffled(), torch.randn(8, 16)
    step = torch.compile(module, backend="lowtide", options={"budget": "10MB", **OPTIONS})
    asked = []
    others = Accounts.others
    monkeypatch.setattr(Accounts, "others", lambda self, *args: asked.append(1) or others(self, *args))
    counts = []
    for number in range(40):
        zero(module)
        asked.clear()
        step(x, [int(i) for i in torch.randint(3, (6,), generator=torch.Generator().manual_seed(number))]).backward()
        counts.append(len(asked))
    events = 2 * (6 + 1)
    assert max(counts[10:]) <= 3 * events  # as it runs, and before the next step


def test_several_threads_may_train_at_once():
    module, x = Broken(), torch.randn(64, 64)
    step = torch.compile(module, backend="lowtide", options={"budget": "10MB", **OPTIONS})
    step(x).backward()
    failed = []

    def train():
        try:
            for _ in range(30):
                torch.autograd.grad(step(x), list(module.parameters()))
        except Exception as error:  # any
            failed.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=train) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert not failed


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = tower(64, 2, 64)

    def forward(self, x):
        return self.tower(x)


class Deep(nn.Module):
    """As many blocks as a step says run, each a graph."""

    def __init__(self, blocks=6):
        super().__init__()
        self.blocks = nn.ModuleList(Block() for _ in range(blocks))

    @torch._dynamo.disable(recursive=False)
    def forward(self, x, depth):
        for block in self.blocks[:depth]:
            x = block(x)
        return x.mean()


def deep_steps(module, budget, depths, **options):
    """The peaks of steps of these depths, and the warnings."""
    torch._dynamo.reset()
    step = torch.compile(module, backend="lowtide", options={"budget": budget, **OPTIONS, "costs": "cpu", **options})
    x, peaks = torch.randn(512, 64), []
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", lowtide.torch.LowtideWarning)
        for depth in depths:
            zero(module)
            peaks.append(bytes_held(module, x) + peak_rise(lambda depth=depth: step(x, depth).backward()))
    return peaks, [str(w.message) for w in said if issubclass(w.category, lowtide.torch.OverBudgetWarning)]


def test_steps_of_other_depths_are_said_once_with_a_reserve_that_is_enough():
    torch.manual_seed(0)
    module, x = Deep(), torch.randn(512, 64)
    own = bytes_held(module, x)
    budget = own + int(0.75 * peak_rise(lambda: twin(module)(x, 4).backward()))
    depths = (4, 3, 5, 4, 5, 2)
    _, said = deep_steps(twin(module), budget, depths)
    (words,) = said  # the first step's; what is new later is within what it names
    reserve = int(words.rsplit("reserve=", 1)[1])
    peaks, said = deep_steps(twin(module), budget + reserve, depths, reserve=reserve)
    assert not said and max(peaks) <= budget + reserve


def test_where_depths_vary_one_more_than_was_seen_fits():
    torch.manual_seed(0)
    module, x = Deep(), torch.randn(512, 64)
    budget = bytes_held(module, x) + int(0.8 * peak_rise(lambda: twin(module)(x, 5).backward()))
    peaks, _ = deep_steps(module, budget, (4, 5, 6, 5))
    assert peaks[1] > budget and all(peak <= budget for peak in peaks[2:])
