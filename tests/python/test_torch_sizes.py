"""Sizes that change share a plan as far as it keeps the budget; numbers that are no sizes share one."""

import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device.meter import bytes_held, peak_rise
from lowtide.torch.graphs import near_sizes
from lowtide.torch.tensors import storages
from torch import nn
from torch_run import Body, equal, gradients, planned, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    getattr(torch._dynamo.utils, "_is_tensorify_enabled", lambda: None)()  # 2.13 reads it once in a process
    torch._dynamo.reset()


class Sizes(nn.Module):
    """Sizes in arithmetic, as arguments of operators, and among the results."""

    def __init__(self):
        super().__init__()
        self.layer, self.table = nn.Linear(16, 16), nn.Embedding(64, 16)

    def forward(self, x):
        n = x.shape[0]
        y = self.layer(x).tanh() * (n * 2) / (n + 1) + self.table(torch.arange(n)) + torch.zeros(n, 16)
        y = F.dropout(y, 0.2, self.training).view(n // 2, 2, 16).mean(1)
        return y, n, n // 2, x.new_full((n,), n)


class Scaled(nn.Module):
    """A number in arithmetic of numbers and of tensors, saved for the backward; no size depends on it."""

    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x, step):
        y = self.a(x).tanh() * (step + 1)
        y = torch.where(y > step, y, y.square() / (2 * step + 1)) + step
        return self.b(y) * step, step * 3


class Branching(Scaled):
    def forward(self, x, step):
        y = self.a(x).tanh() * step
        return (self.b(y) if step > 5 else y - step), step


class Sliced(Scaled):
    """The number is a size."""

    def forward(self, x, step):
        return self.b(self.a(x[:step]).tanh()).repeat(step, 1), torch.arange(step).sum()


def run(module, call, calls):
    torch.manual_seed(2)
    seen = []
    for arguments in calls:
        module.zero_grad()
        results = call(*arguments)
        results[0].square().mean().backward()
        seen += [t.detach() if isinstance(t, torch.Tensor) else torch.tensor(t) for t in results] + gradients(module)
    return [*seen, torch.get_rng_state()]


def plans_of(build, calls, dtype=torch.float32, **options):
    """How many plans these calls took; they gave what they give without a plan."""
    torch.manual_seed(0)
    module = build().to(dtype)
    plain, mine = twin(module), twin(module)
    settings = {"budget": "100%", "costs": "cpu", "work": 1000, "time": None, "fallback": "error"}
    before = len(lowtide.torch.reports())
    step = torch.compile(mine, backend="lowtide", options=settings, **options)
    assert equal(run(mine, step, calls), run(plain, plain, calls))
    return len(lowtide.torch.reports()) - before


@pytest.mark.parametrize("dynamic", [True, None])
def test_sizes_in_arithmetic_and_among_results(dynamic):
    calls = [(torch.randn(n, 16),) for n in (8, 12, 20, 12, 8)]
    assert plans_of(Sizes, calls, dynamic=dynamic) <= 2


def test_a_size_that_is_marked():
    module, mine = Body(0.1), Body(0.1)
    mine.load_state_dict(module.state_dict())
    step = planned(mine)
    for n in (64, 32, 64):
        x = torch.randn(n, 64)
        torch._dynamo.mark_dynamic(x, 0)
        torch.manual_seed(n)
        got = step(x)
        torch.manual_seed(n)
        assert torch.equal(got, module(x))


def test_each_size_keeps_the_budget():
    class Whole(Body):
        def forward(self, x):
            return super().forward(x).square().mean()

    torch.manual_seed(0)
    module, xs = Whole(), [torch.randn(n, 64) for n in (128, 384, 256, 384)]
    held = bytes_held(module)
    rises = [peak_rise(lambda x=x: twin(module)(x).backward()) for x in xs]
    budget = held + xs[1].nbytes + int(0.8 * rises[1])
    before = len(lowtide.torch.reports())
    step = torch.compile(module, backend="lowtide", dynamic=True, options={"budget": budget})
    for _ in range(2):
        for x in xs:
            step(x).backward()
            module.zero_grad()
    assert len(lowtide.torch.reports()) - before <= 2  # the plan for the largest serves all
    for x in xs:
        peak = bytes_held(module, x) + peak_rise(lambda x=x: step(x).backward())
        assert peak <= budget
        module.zero_grad()


def test_threads_that_come_with_sizes_of_their_own():
    """What is traced at a call is traced by one thread at a time."""
    module = Body()
    step = torch.compile(module, backend="lowtide", dynamic=True,
                         options={"budget": "8GiB", "costs": "flops", "work": 100, "time": None, "fallback": "error"})

    def steps(first):
        return [step(torch.ones(n, 64)).sum().item() for n in range(first, first + 3)]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(steps, (8, 20)))
    assert found == [[module(torch.ones(n, 64)).sum().item() for n in range(first, first + 3)] for first in (8, 20)]


def test_at_other_sizes_tensors_take_whole_blocks_too(monkeypatch):
    """As a GPU's allocator hands them out."""
    def in_blocks(size, _):
        return -(-size // 512) * 512

    monkeypatch.setattr(storages, "allocated", in_blocks)
    monkeypatch.setattr(near_sizes, "allocated", in_blocks)
    found, at = [], near_sizes.NearSizes.at
    monkeypatch.setattr(near_sizes.NearSizes, "at", lambda *given: found.append(at(*given)) or found[-1])
    step = torch.compile(Body(), backend="lowtide", dynamic=True, options={"budget": "8GiB", "costs": "flops", "work": 100, "time": None})
    for n in (8, 11):
        step(torch.randn(n, 64)).sum().backward()
    (there,) = found
    assert all(t.bytes % 512 == 0 for t in there.program.graph.tensors)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("kind", [int, float])
def test_a_number_that_is_no_size_needs_no_plan_of_its_own(kind, dtype):
    x = torch.randn(8, 16, dtype=dtype)
    calls = [(x, kind(step) + (0.25 if kind is float else 0)) for step in (0, 1, 2, 3, 7, 1000, 3, 2**40)]
    assert plans_of(Scaled, calls, dtype, dynamic=True) == 1


def test_a_number_that_changes_from_call_to_call():
    x = torch.randn(8, 16)
    assert plans_of(Scaled, [(x, step) for step in range(3, 12)]) == 1


def test_a_number_and_a_size():
    calls = [(torch.randn(n, 16), step) for step, n in enumerate((8, 12, 8, 12, 12, 8), 2)]
    assert plans_of(Scaled, calls, dynamic=True) == 1


def test_a_branch_on_a_number_makes_two_plans():
    x = torch.randn(8, 16)
    assert plans_of(Branching, [(x, step) for step in range(2, 10)], dynamic=True) == 2


def test_a_number_that_is_a_size():
    x = torch.randn(8, 16)
    assert plans_of(Sliced, [(x, step) for step in (2, 3, 4, 3, 2)], dynamic=True) == 1


def test_a_number_where_nothing_is_trained():
    torch.manual_seed(0)
    module, x = Scaled(), torch.randn(8, 16)
    step, before = planned(twin(module), "100%"), len(lowtide.torch.reports())
    with torch.no_grad():
        for k in (2, 3, 4, 5):
            assert torch.equal(step(x, k)[0], module(x, k)[0])
    assert len(lowtide.torch.reports()) - before == 1


@torch.library.custom_op("lowtide_tests::half", mutates_args=())
def half(x: torch.Tensor) -> torch.Tensor:
    return x / 2


@half.register_fake
def _(x):
    return torch.empty_like(x)


def _half_backward(context, gradient):
    if type(gradient) is not torch.Tensor:
        raise RuntimeError("this one is for eager execution")
    return gradient / 2


half.register_autograd(_half_backward)


def test_a_number_in_a_region_that_falls_back():
    class Scaled(Body):
        def forward(self, x, scale):
            return (half(super().forward(x)) * scale).square().mean()

    module, x = Scaled(), torch.randn(32, 64)
    step = planned(module, fallback="warn", share="100%")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for scale in (0.1, 0.2, 0.3, 0.4):
            loss = step(x, scale)
            loss.backward()
            assert torch.equal(loss, module(x, scale))


class Dropping(nn.Module):
    """A number of the module in an operator; broken: the tracer makes two graphs of it."""

    def __init__(self, p, broken=False):
        super().__init__()
        self.a, self.b, self.p, self.broken = nn.Linear(64, 64), nn.Linear(64, 64), p, broken

    def forward(self, x):
        y = F.dropout(self.a(x).tanh(), self.p, self.training)
        if self.broken:
            torch._dynamo.graph_break()
        return F.dropout(self.b(y).tanh(), self.p, self.training).square().mean()


@pytest.mark.parametrize("broken", [False, True])
def test_optimize_plans_before_it_returns_where_numbers_and_sizes_are_open(broken):
    for p, n in ((0.5, 32), (0.1, 48), (0.2, 64), (0.2, 80)):  # from the second model on the tracer leaves both open
        with pytest.raises(lowtide.torch.BudgetError):
            lowtide.torch.optimize(Dropping(p, broken), torch.randn(n, 64), budget="1KiB")
        before = len(lowtide.torch.reports())
        module, x = Dropping(p, broken), torch.randn(n, 64)
        plain, state = twin(module), torch.get_rng_state()
        step = lowtide.torch.optimize(module, x, budget="100%", costs="cpu", fallback="error")
        assert torch.equal(torch.get_rng_state(), state)
        planned_first = len(lowtide.torch.reports())
        assert planned_first > before
        assert equal(run_once(step, x), run_once(plain, x))
        assert len(lowtide.torch.reports()) == planned_first  # nothing is left to be planned when it runs


def run_once(module, x):
    torch.manual_seed(3)
    loss = module(x)
    loss.backward()
    return [loss.detach(), *(p.grad for p in module.parameters())]


def test_optimize_says_so_where_a_handler_of_the_model_would_swallow_it():
    class Handling(Dropping):
        def forward(self, x):
            try:
                return super().forward(x)
            except Exception:
                return x.mean()

    for p in (0.5, 0.1):
        with pytest.raises(lowtide.torch.BudgetError):
            lowtide.torch.optimize(Handling(p), torch.randn(8, 64), budget="1KiB")


class Ragged(nn.Module):
    """Rows are sent where their numbers say, as many as there are."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts, self.last = nn.Linear(16, 3), nn.ModuleList(nn.Linear(16, 16) for _ in range(3)), nn.Linear(16, 4)

    def forward(self, x):
        chosen = self.gate(x).argmax(-1)
        order = chosen.argsort(stable=True)
        parts = torch.split(x[order], torch.bincount(chosen, minlength=3).tolist())
        y = torch.cat([F.gelu(expert(part)) for expert, part in zip(self.experts, parts)])
        return self.last(F.dropout(torch.zeros_like(x).index_add(0, order, y), 0.1, self.training)).square().mean(), x


def test_sizes_that_depend_on_data_share_a_plan():
    calls = [(torch.randn(64, 16),) for _ in range(10)]
    with warnings.catch_warnings():
        warnings.simplefilter("error", lowtide.torch.LowtideWarning)
        warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
        assert plans_of(Ragged, calls) <= 4  # two graphs, of which the second is traced once more for all sizes


def test_a_plan_is_used_again_only_where_it_keeps_the_budget():
    class Whole(Body):
        def forward(self, x):
            return super().forward(x).square().mean()

    torch.manual_seed(0)
    module, xs = Whole(), [torch.randn(n, 64) for n in (96, 100, 92, 400, 384)]
    planned(twin(module), "100%")(xs[3]).backward()
    budget = int(0.85 * lowtide.torch.reports()[-1].budget)
    torch._dynamo.reset()
    counts = []
    step = torch.compile(module, backend="lowtide", dynamic=True, options={"budget": budget, "work": 20_000, "time": None})
    for x in xs:
        step(x).backward()
        module.zero_grad()
        counts.append(len(lowtide.torch.reports()))
    assert counts[0] == counts[1] == counts[2] < counts[3] == counts[4]  # the fourth needs a plan with less, which does for the fifth
    report = lowtide.torch.reports()[-2]
    assert report.peak <= budget  # at the largest size that it has served
    for x in xs:
        assert bytes_held(module, x) + peak_rise(lambda x=x: step(x).backward()) <= budget
        module.zero_grad()


def test_sizes_that_need_a_plan_each_are_said_once():
    module = Body(0.1)
    step = torch.compile(module, backend="lowtide", dynamic=True,
                         options={"budget": "100%", "techniques": "all", "work": 500, "time": None, "costs": "cpu"})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", lowtide.torch.LowtideWarning)
        for n in range(16, 32, 2):
            step(torch.randn(n, 64))
    assert len([w for w in said if "change from step to step" in str(w.message)]) == 1


class WithKeys(nn.Module):
    """A result beside the loss that lies in another order than its gradient, as keys that a language model returns for a cache."""

    def __init__(self):
        super().__init__()
        self.queries, self.keys = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x):
        queries, keys = (layer(x).view(2, -1, 2, 8).transpose(1, 2) for layer in (self.queries, self.keys))
        return (queries @ keys.transpose(2, 3)).square().mean(), keys


def test_results_that_corrections_lay_out_anew_grow_with_sizes():
    assert plans_of(WithKeys, [(torch.randn(2, n, 16),) for n in (6, 8, 10, 12, 9)], dynamic=True) == 1
