"""What a plan does not count, or does not obey, is said once, with what would count it."""

import functools
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts
from torch_run import equal, train, twin


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def optimized(module, x, budget, **options):
    return lowtide.torch.optimize(module, (x,), budget=budget,
                                  **({"costs": "cpu", "work": 50_000, "time": None, "fallback": "error"} | options))


def compiled(module, x, budget, **options):
    options = {"budget": budget, "costs": "cpu", "work": 50_000, "time": None, "fallback": "error"} | options
    return torch.compile(module, backend="lowtide", options=options)


class Said:
    """The words of the warnings of a category that `with` saw."""

    def __init__(self, category=lowtide.torch.LowtideWarning):
        self._category = category
        self._catch = warnings.catch_warnings(record=True)

    def __enter__(self):
        self._seen = self._catch.__enter__()
        warnings.simplefilter("always")
        return self

    def __exit__(self, *error):
        self._catch.__exit__(*error)
        self.words = [str(w.message) for w in self._seen if issubclass(w.category, self._category)]


class Layers(nn.Module):
    def __init__(self, n=6, d=128):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(d, d) for _ in range(n))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x.square().mean()


# ---- gradients that stand


def accumulate(module, step, x, how):
    """Three optimizer steps of two microbatches each, or of one over zeros."""
    for _ in range(3):
        step(x).backward()
        if how == "two batches":
            step(x).backward()
        module.zero_grad(set_to_none=how == "two batches")
    step(x).backward()  # and what is measured finds gradients


@pytest.mark.parametrize("how", ["two batches", "zeros"])
@pytest.mark.parametrize("begin", [optimized, compiled])
def test_gradients_that_stand_are_said_once_with_the_reserve_that_counts_them(begin, how):
    torch.manual_seed(0)
    module, x = Layers(), torch.randn(256, 128)
    gradients = sum(p.numel() * p.element_size() for p in module.parameters())
    step = begin(module, x, "90%")
    with Said(lowtide.torch.OverBudgetWarning) as said:
        accumulate(module, step, x, how)
        peak = lowtide.torch.measure_peak(lambda: step(x).backward(), held=(module, x))
    report = lowtide.torch.reports()[-1]
    assert peak > report.budget  # or there was nothing to say
    (words,) = said.words
    assert "gradients of" in words and f"reserve={gradients} " in words

    torch._dynamo.reset()
    module.zero_grad()
    step = begin(module, x, report.budget + gradients, reserve=gradients)
    with Said() as said:
        accumulate(module, step, x, how)
        peak = lowtide.torch.measure_peak(lambda: step(x).backward(), held=(module, x))
    assert not said.words and peak <= lowtide.torch.reports()[-1].budget == report.budget + gradients


def test_gradients_that_stand_within_the_budget_are_not_said():
    module, x = Layers(), torch.randn(256, 128)
    step = optimized(module, x, 10_000_000)
    with Said() as said:
        accumulate(module, step, x, "two batches")
    assert not said.words


class TwoLosses(Layers):
    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x.square().mean(), x.mean()


def test_one_graph_is_refused_beside_gradients_made_before_without_words_on_several():
    module, x = TwoLosses(), torch.randn(256, 128)
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        optimized(module, x, 1)
    step = optimized(module, x, refused.value.smallest)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lowtide.torch.OverBudgetWarning)
        loss, other = step(x)
        loss.backward(retain_graph=True)
        other.backward()
    module.zero_grad()
    with pytest.raises(lowtide.torch.BudgetError, match="no plan was found that keeps this step within .* beside what earlier steps held"):
        step(x)


class Twice(nn.Module):
    """Two graphs."""

    def __init__(self):
        super().__init__()
        self.first, self.last = Layers(3), nn.Linear(128, 128)

    def forward(self, x):
        for layer in self.first.layers:
            x = torch.tanh(layer(x))
        torch._dynamo.graph_break()
        return self.last(x).square().mean()


def test_gradients_of_other_regions_count_too():
    torch.manual_seed(0)
    module, x = Twice(), torch.randn(256, 128)
    gradients = sum(p.numel() * p.element_size() for p in module.parameters())
    step = optimized(module, x, "100%")
    with Said(lowtide.torch.OverBudgetWarning) as said:
        accumulate(module, step, x, "two batches")
    assert any(f"({gradients} bytes), made before, exist" in words for words in said.words), said.words


def test_an_input_that_is_no_leaf_any_more_is_asked_for_no_gradient():
    """PyTorch warns whoever asks."""
    module, x, scale = Layers(2, 8), torch.randn(4, 8, requires_grad=True), torch.randn(4, 8, requires_grad=True)
    step = compiled(module, x, "1GiB")
    step(x).backward()
    module.zero_grad()
    x.grad = None
    x.requires_grad_(False).mul_(scale)
    with Said(UserWarning) as said:
        step(x).backward()
        module.zero_grad()
        step(x.detach()).backward()
    assert scale.grad is not None and not any(".grad attribute" in words for words in said.words), said.words


# ---- torch.utils.checkpoint


class Checkpointed(nn.Module):
    def __init__(self, how, n=4, d=64):
        super().__init__()
        self.layers, self.how = nn.ModuleList(nn.Linear(d, d) for _ in range(n)), how

    def block(self, layer, x):
        return F.dropout(torch.tanh(layer(x)), 0.2, self.training)

    def forward(self, x):
        for layer in self.layers:
            if self.how is None:
                x = self.block(layer, x)
            else:
                x = checkpoint(self.block, layer, x, **self.how)
        return x.square().mean()


def save_products(context, operator, *args, **kwargs):
    saved = operator in (torch.ops.aten.addmm.default, torch.ops.aten.mm.default)
    return CheckpointPolicy.MUST_SAVE if saved else CheckpointPolicy.MUST_RECOMPUTE


MARKS = [{"use_reentrant": False}, {"use_reentrant": True},
         {"use_reentrant": False,
          "context_fn": functools.partial(create_selective_checkpoint_contexts, save_products)}]


@pytest.mark.parametrize("how", MARKS, ids=["plain", "reentrant", "selective"])
def test_marks_of_checkpoint_are_leave_and_no_orders(how):
    torch.manual_seed(0)
    module, x = Checkpointed(how), torch.randn(128, 64, requires_grad=True)
    plain = twin(module)
    expected = train(plain, (x,), plain)
    reports = {}
    for name, budget in (("all", "100%"), ("little", "act:65%")):
        for mine in (twin(module), Checkpointed(None)):
            mine.load_state_dict(module.state_dict())
            torch._dynamo.reset()
            with Said() as said:
                step = compiled(mine, x, budget)
                assert equal(train(mine, (x,), step), expected)
            marked = mine.how is not None
            assert sum("allow recomputation but do not request it" in words for words in said.words) == marked
            reports[name, marked] = lowtide.torch.reports()[-1]
    assert not reports["all", True].again  # an order would be obeyed
    assert reports["little", True].again
    for name in ("all", "little"):  # the plan of a model without marks
        assert reports[name, True].peak == reports[name, False].peak
        assert reports[name, True].duration == reports[name, False].duration


# ---- code outside of all graphs


class Parted(nn.Module):
    """Three graphs, with code between that the tracer leaves alone; `outside` is that code."""

    def __init__(self, outside, d=128):
        super().__init__()
        self.layers, self.between = nn.ModuleList(nn.Linear(d, d) for _ in range(6)), outside

    @torch.compiler.disable
    def outside(self, x):
        return self.between(x)

    def two(self, i, x):
        for layer in self.layers[i:i + 2]:
            x = torch.tanh(torch.tanh(layer(x)))
        return x

    def forward(self, x):
        x = self.outside(self.two(0, x))
        x = self.outside(self.two(2, x))
        return self.two(4, x).square().mean()


def gate(x):
    return torch.sigmoid(torch.tanh(x).exp() * x)


@pytest.mark.parametrize("outside", [gate, torch.relu, lambda x: 2 * x], ids=["gate", "relu", "twice"])
def test_code_between_regions_is_said_once_with_the_reserve_that_counts_it(outside):
    torch.manual_seed(0)
    module, x = Parted(outside), torch.randn(256, 128)

    def steps(step):
        peaks = []
        with Said() as said:
            for _ in range(3):
                peaks.append(lowtide.torch.measure_peak(lambda: step(x).backward(), held=(module, x)))
                module.zero_grad()
        return [words for words in said.words if "code between the graphs" in words], peaks

    words, peaks = steps(optimized(module, x, "100%"))
    budget = lowtide.torch.reports()[-1].budget
    assert peaks[0] > budget  # or there was nothing to say
    (words,) = words
    reserve = int(words.rsplit("reserve=", 1)[1])
    torch._dynamo.reset()
    words, peaks = steps(optimized(module, x, budget + reserve, reserve=reserve))
    assert not words and max(peaks) <= budget + reserve


def test_code_between_regions_that_holds_nothing_is_not_said():
    module, x = Twice(), torch.randn(256, 128)
    step = optimized(module, x, "100%")
    with Said() as said:
        step(x).backward()
    assert not said.words


class Features(nn.Module):
    """The loss is computed outside."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(64, n) for n in (64, 64, 512))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


@pytest.mark.parametrize("loss", [lambda y: y.square().mean(), lambda y: F.cross_entropy(y, torch.zeros(256).long())],
                         ids=["squares", "cross entropy"])
def test_a_loss_outside_is_said_once_with_the_reserve_that_counts_it(loss):
    torch.manual_seed(0)
    module, x = Features(), torch.randn(256, 64)

    def steps(step):
        with Said() as said:
            for _ in range(2):
                loss(step(x)).backward()
                module.zero_grad()
            peak = lowtide.torch.measure_peak(lambda: loss(step(x)).backward(), held=(module, x))
            module.zero_grad()
        return said.words, peak

    words, peak = steps(optimized(module, x, "100%"))
    budget = lowtide.torch.reports()[-1].budget
    assert peak > budget
    (words,) = words
    assert "behind the last graph" in words and "within the module" in words
    reserve = int(words.rsplit("reserve=", 1)[1])
    torch._dynamo.reset()
    words, peak = steps(optimized(module, x, budget + reserve, reserve=reserve))
    assert not words and peak <= budget + reserve


def test_a_result_that_nobody_differentiates_is_no_loss_outside():
    class Both(Features):
        def forward(self, x):
            y = super().forward(x)
            return y.square().mean(), y

    module, x = Both(), torch.randn(256, 64)
    step = optimized(module, x, "100%")
    with Said() as said:
        step(x)[0].backward()
    assert not said.words


def test_copies_of_a_rehearsal_do_not_count_as_memory_beside_a_step(monkeypatch):
    """On a GPU its allocator is asked what stands, while copies of inputs and buffers stand beside what they are copies of."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.layer = nn.BatchNorm1d(256), nn.Linear(256, 256)

        def forward(self, x):
            return self.layer(self.norm(x)).square().mean()

    known = []
    monkeypatch.setattr(lowtide.torch.settings.Settings, "standing", lambda self, size, *_: known.append(size) or 0)
    module, x = Net(), torch.randn(512, 256)
    step = lowtide.torch.optimize(module, x, budget="100%", costs="flops", fallback="error")
    held = lowtide.torch.device.meter.bytes_held
    parameters, copied = held(list(module.parameters())), held(x, list(module.buffers()))
    assert known and set(known) == {parameters + 2 * copied}
    known.clear()
    step(x).backward()
    lowtide.torch.optimize(Net(), budget="100%", costs="flops", fallback="error")(x)
    assert known and set(known) == {parameters + copied}  # nothing is copied where the first call plans


@pytest.mark.parametrize(("segments", "sizes", "expected"), [
    ([{"is_expandable": False}], [1 << 20, 512], 0),
    ([{"is_expandable": False}], [3 << 19, 5 << 20], 2 << 16),
    ([{}], [3 << 20] * 1000, 1000 << 16),
    ([{"is_expandable": True}], [3 << 20] * 1000, 0)])
def test_room_is_left_for_what_a_gpu_gives_out_beyond_large_tensors(monkeypatch, segments, sizes, expected):
    monkeypatch.setattr(torch.cuda, "memory_snapshot", lambda: segments)
    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "native")
    left_over = lowtide.torch.tensors.storages.left_over
    assert left_over(sizes, torch.device("cuda")) == expected and left_over(sizes, torch.device("cpu")) == 0


def test_an_allocator_that_tells_nothing_of_its_blocks_is_not_asked(monkeypatch):
    def snapshot(*_, **__):
        raise RuntimeError("Calling snapshot with backend:cudaMallocAsync is not meaningful")

    monkeypatch.setattr(torch.cuda, "get_allocator_backend", lambda: "cudaMallocAsync")
    monkeypatch.setattr(torch.cuda, "memory_snapshot", snapshot)
    monkeypatch.setattr(torch.cuda.memory, "_record_memory_history", snapshot)
    monkeypatch.setattr(torch._C, "_cuda_isHistoryEnabled", snapshot, raising=False)
    assert lowtide.torch.tensors.storages.left_over([3 << 20], torch.device("cuda")) == 0
    assert lowtide.torch.compat.cuda.allocations_of(lambda: None, torch.device("cuda")) is None
