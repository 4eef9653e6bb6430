"""A report says which bits are those of a step without a plan, and so it is: what it does not name is equal, and what it
calls a loop's is what a loop over microbatches gives."""

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend.planning import search
from lowtide.torch.device.meter import peak_rise
from lowtide.torch.tensors.operators import Kernel
from lowtide.torch.transforms.joins import add, copied_bytes
from lowtide.torch.transforms.rows import keeps_rows_bits, lies_otherwise
from torch import nn
from torch.nn import functional as F
from torch_architectures import ARCHITECTURES
from torch_run import alone, cast, force, fresh, in_parts, largest, twin

import lowtide

PARTS = 4


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        yield


class Words(nn.Module):
    """Guesses the next word; tied: with the weights by which it reads them."""

    def __init__(self, dropout=0.0, tied=False, weighted=False, classes=512):
        super().__init__()
        self.embed, self.up, self.down = nn.Embedding(classes, 32), nn.Linear(32, 64), nn.Linear(64, 32)
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, classes)
        self.dropout = dropout
        if tied:
            self.head.weight = self.embed.weight
        self.register_buffer("weights", torch.rand(classes) + 0.5 if weighted else None)

    def forward(self, x, y):
        h = self.embed(x)
        h = h + self.down(F.dropout(F.gelu(self.up(self.norm(h))), self.dropout, self.training))
        return F.cross_entropy(self.head(h).flatten(0, 1), y.flatten(), self.weights)


class Pictures(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.Conv2d(8, 8, 3, padding=1)
        self.last = nn.Linear(8 * 64, 10)

    def forward(self, x, y):
        h = F.gelu(self.norm(self.first(x)))
        return F.mse_loss(self.last(F.avg_pool2d(h + self.second(h), 2).flatten(1)), y)


def words(**options):
    return lambda: (Words(**options), (torch.randint(0, 512, (16, 16)), torch.randint(0, 512, (16, 16))))


def pictures():
    return Pictures(), (torch.randn(16, 3, 16, 16), torch.randn(16, 10))


def smallest_head(survey):
    return min((i for i, region in enumerate(survey) if region["what"] == "suffix"), key=lambda i: len(survey[i]["ops"]))


def take(monkeypatch, what, parts=PARTS):
    """Have the planner take one region: "head", or the "largest", or only the hoist."""
    def choose(problem):
        transforms = in_parts(problem, parts, smallest_head if what == "head" else largest)
        return transforms[:1] if what == "hoist" else transforms

    force(monkeypatch, choose)


def planned(module, inputs, budget=10**9, **options):
    options = {"costs": "cpu", "work": 20_000, "time": None, "fallback": "error"} | options
    step = lowtide.torch.optimize(module, inputs, budget=budget, **options)
    return step, lowtide.torch.reports()[-1]


def results(module, inputs, step, seed=1):
    """The loss and the gradients, by their names."""
    torch.manual_seed(seed)
    module.zero_grad()
    loss = step(*inputs)
    loss.backward()
    return {"loss": loss.detach(), **{name: p.grad for name, p in module.named_parameters()}}


def unlike(got, expected):
    return {name for name, t in got.items() if not torch.equal(t, expected[name])}


def named(exactness):
    return {*exactness.sums, *exactness.follows}


def looped(module, inputs, parts):
    """Gradients of a loop over microbatches, which single precision adds up."""
    totals = {}
    for given in zip(*(t.chunk(parts) for t in inputs), strict=True):
        module.zero_grad()
        (module(*given) / parts).backward()
        for name, p in module.named_parameters():
            part = p.grad.float()
            totals[name] = totals[name] + part if name in totals else part
    return {name: totals[name].to(p.dtype) for name, p in module.named_parameters()}


def test_a_hoisted_backward_is_equal_for_powers_of_two(monkeypatch):
    module, inputs = fresh(words())
    plain = twin(module)
    take(monkeypatch, "hoist")
    step, report = planned(module, inputs, techniques="all", loss_scale=1)
    assert report.exactness.equal
    assert str(report.exactness) == "bit-identical, if the loss is scaled by powers of two only"
    for scale in (1, 0.5, 64):
        got = results(module, inputs, lambda *given, scale=scale: scale * step(*given))
        assert not unlike(got, results(plain, inputs, lambda *given, scale=scale: scale * plain(*given)))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_head_in_parts_names_what_it_adds_up(dtype, monkeypatch):
    module, inputs = fresh(words())
    module = module.to(dtype)
    plain = twin(module)
    expected = results(plain, inputs, plain)
    take(monkeypatch, "head")
    step, report = planned(module, inputs, techniques="all")
    found = report.exactness
    assert "head.weight" in found.sums and not named(found) & {"loss", "up.weight", "embed.weight"}
    assert not found.whole and not found.equal and "head.weight" in str(report) and f"sums over {PARTS} parts" in str(report)
    got = results(module, inputs, step)
    assert unlike(got, expected) <= named(found)
    assert "head.weight" in unlike(got, expected)  # or the test says nothing


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("make", [words(), words(tied=True), pictures], ids=["words", "tied", "pictures"])
def test_a_whole_step_in_parts_is_a_loop_over_micro_batches(make, dtype, monkeypatch):
    module, inputs = fresh(make)
    module, inputs = module.to(dtype), tuple(t.to(dtype) if t.is_floating_point() else t for t in inputs)
    plain = twin(module)
    expected = results(plain, inputs, plain)
    take(monkeypatch, "largest")
    step, report = planned(module, inputs, techniques="all")
    found = report.exactness
    assert found.whole and {*found.sums} >= {name for name, _ in module.named_parameters()} and not found.follows
    assert found.in_single == (dtype is torch.bfloat16)
    assert f"all gradients (sums over {PARTS} parts" in str(report) and f"a loop over {PARTS} microbatches" in str(report)
    got = results(module, inputs, step)
    assert unlike(got, expected) <= named(found)
    loop = looped(plain, inputs, PARTS)
    assert not unlike({name: got[name] for name in loop}, loop)


def test_masks_in_parts_are_said(monkeypatch):
    module, inputs = fresh(words(dropout=0.3))
    take(monkeypatch, "largest")
    _, report = planned(module, inputs, techniques="all")
    assert report.exactness.masks and "with slices of the whole batch's masks" in str(report)


def test_weights_of_classes_are_counted_in_another_order(monkeypatch):
    """So whatever the loss is divided by may differ, and nothing is promised of the loop."""
    module, inputs = fresh(words(weighted=True))
    take(monkeypatch, "largest")
    _, report = planned(module, inputs, techniques="all")
    found = report.exactness
    assert "loss" in named(found) and not found.whole and "head.weight" in found.follows
    assert "(computed differently, or from such sums)" in str(report)


@pytest.mark.parametrize("half", [torch.bfloat16, torch.float16])
def test_sums_of_parts_are_rounded_once(half):
    """Also the first of them, of two parts in half."""
    torch.manual_seed(0)
    parts = [torch.randn(3, 7000).to(half) for _ in range(3)]
    like = {"shape": (3, 7000), "strides": (7000, 1)}
    exact = parts[0].float() + parts[1].float()
    first = add(parts[0], parts[1], torch.float32, **like, over=None)
    assert torch.equal(first, exact)
    total = add(first, parts[2], torch.float32, **like, over=0)
    assert total is first and torch.equal(total, exact + parts[2].float())
    assert torch.equal(add(first, parts[2], half, **like, over=None), (first + parts[2].float()).to(half))
    assert torch.equal(add(parts[0], parts[1], half, **like, over=None), parts[0] + parts[1])
    for before, part, dtype in ((parts[0], parts[1], torch.float32), (first, parts[2], torch.float32), (first, parts[2], half)):
        rise = peak_rise(lambda before=before, part=part, dtype=dtype: add(before, part, dtype, **like, over=None))
        assert rise <= before.numel() * dtype.itemsize + copied_bytes(before.dtype, part.dtype, dtype, before)


class Gated(nn.Module):
    """Its rows are no whole number of vectors, in which kernels compute exp and the like."""

    def __init__(self, inner, outer, gate):
        super().__init__()
        self.up, self.down, self.gate = nn.Linear(9, inner), nn.Linear(inner, outer), gate

    def forward(self, x, y):
        return F.mse_loss(self.down(self.gate(self.up(x))), y)


@pytest.mark.parametrize(("inner", "outer", "gate"), [(35, 9, F.silu), (64, 1, F.relu)], ids=["vectors", "a column"])
def test_rows_that_may_have_other_bits_in_parts_are_named(inner, outer, gate, monkeypatch):
    """Which ones have, a CPU decides; that nothing is a loop's is said wherever it may be so."""
    module, inputs = fresh(lambda: (Gated(inner, outer, gate), (torch.randn(12, 9), torch.randn(12, outer))))
    plain = twin(module)
    expected = results(plain, inputs, plain)
    take(monkeypatch, "largest", 2)
    step, report = planned(module, inputs, techniques="all")
    assert "down.weight" in report.exactness.follows and not report.exactness.whole
    assert unlike(results(module, inputs, step), expected) <= named(report.exactness)


def test_results_changed_by_rules_are_named_at_the_smallest_budget():
    """Also where they run in parts."""
    module, inputs = cast(*fresh(ARCHITECTURES["plain/highway"][1]), "bf16")
    plain = twin(module)
    expected = results(plain, inputs, plain)
    options = {"techniques": "all", "work": 30_000}
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(twin(module), inputs, 1, **options)
    torch._dynamo.reset()
    step, report = planned(module, inputs, refused.value.smallest, **options)
    assert unlike(results(module, inputs, step), expected) <= named(report.exactness), report.transforms


def test_an_operand_that_a_rule_reads_in_another_layout_is_detected():
    """A product that takes an operand as it lies, in the place of a copy, may be another kernel."""
    def op(*operands):
        return {"operands": [{"argument": name, "shape": shape, "strides": strides} for name, shape, strides in operands]}

    whole = op(("self", [8, 4], [4, 1]), ("mat2", [4, 6], [6, 1]))
    assert not lies_otherwise(whole, whole)
    assert lies_otherwise(op(("self", [8, 4], [4, 1]), ("mat2", [4, 6], [1, 4])), whole)
    assert not lies_otherwise(op(("self", [4, 4], [4, 1]), ("mat2", [4, 6], [6, 1])), whole)  # a part of its rows


def entry_of(x, made):
    return {"operands": [{"argument": "self", "shape": list(x.shape)}], "results": [{"argument": "", "shape": list(made.shape)}]}


@pytest.mark.parametrize("threads", [1, 3, 4])
@pytest.mark.parametrize("name", ["silu", "exp", "gelu", "relu", "mul"])
def test_elements_keep_their_bits_as_is_said(name, threads):
    """Cut along rows, and along columns; what a thread of several gets may end within a vector."""
    function = {"silu": torch.ops.aten.silu.default, "exp": torch.ops.aten.exp.default, "gelu": torch.ops.aten.gelu.default,
                "relu": torch.ops.aten.relu.default, "mul": torch.ops.aten.mul.Scalar}[name]
    more = (3.3,) if name == "mul" else ()
    torch.manual_seed(0)
    said = []
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for rows, width in ((8, 35), (8, 32), (6, 64), (12, 11), (16, 160), (514, 128), (1532, 128)):
            for parts, dim in ((2, 0), (3, 0), (4, 0), (2, 1)):
                x = torch.randn(rows, width) * 3
                whole = function(x, *more)
                pieces = x.split((rows if dim == 0 else width) // parts, dim)
                made = [function(t, *more) for t in pieces]
                kernels = [Kernel(function, (t, *more), {}, [t], [result], result)
                           for t, result in zip(pieces, made, strict=True)]
                keeps = all(keeps_rows_bits(kernel, entry_of(t, result), entry_of(x, whole))
                            for kernel, t, result in zip(kernels, pieces, made, strict=True))
                assert not keeps or torch.equal(torch.cat(made, dim), whole), (rows, width, parts, dim)
                said.append(keeps)
    finally:
        torch.set_num_threads(before)
    assert any(said) and all(said) == (name in ("relu", "mul"))


def test_columns_of_a_sum_over_rows_are_not_called_equal():
    """A kernel adds up several columns at once, and those beyond whole groups in another order."""
    x = torch.randn(64, 128)
    function = torch.ops.aten.sum.dim_IntList
    for piece, whole, equal in ((x[:, :16], x, False), (x[:32], x, True)):
        made = [function(t, [0]) for t in (piece, whole)]
        kernel = Kernel(function, (piece, [0]), {}, [piece], [made[0]], made[0])
        assert keeps_rows_bits(kernel, entry_of(piece, made[0]), entry_of(whole, made[1])) == equal


def test_a_plan_that_changes_bits_has_to_win_or_to_reach_a_budget_that_others_do_not(monkeypatch):
    worth = search._WORTH_BITS
    take(monkeypatch, "largest")
    monkeypatch.setattr(search, "_WORTH_BITS", worth)
    torch.manual_seed(0)
    module, inputs = pictures()
    plain = twin(module)
    step, report = planned(module, inputs, techniques="all")  # within which a plan that changes none fits
    assert report.exactness.equal and not any("split" in t for t in report.transforms)
    assert not unlike(results(module, inputs, step), results(plain, inputs, plain))
    with pytest.raises(lowtide.torch.BudgetError):
        planned(module, inputs, "60%")
    _, report = planned(module, inputs, "60%", techniques="all")
    assert not report.exactness.equal
