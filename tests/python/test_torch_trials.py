"""Kernels of parts are tried on the processor at hand: what a trial passes has the bits of the whole on other numbers too."""

import json
import random

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.pricing import trial
from lowtide.torch.pricing.trial import Trial
from lowtide.torch.tensors.operators import Kernel
from lowtide.torch.transforms import rows
from lowtide.torch.transforms.rows import keeps_rows_bits, needs_trial
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import flop_registry
from torch_run import alone, force, fresh, in_parts, twin

aten = torch.ops.aten
PARTS = 3
# every one of these has rows that do not keep their bits somewhere, on some processor
PRODUCTS = [((80, 8), (8, 7)), ((18, 512), (512, 5)), ((24, 33), (33, 20)), ((12, 64), (64, 64))]


@pytest.fixture(autouse=True)
def by_itself(monkeypatch):
    with alone(monkeypatch):
        trial._kept.clear()
        yield


def entry(args, result):
    operands = [{"argument": str(i), "shape": list(t.shape)} for i, t in enumerate(args) if isinstance(t, torch.Tensor)]
    return {"operands": operands, "results": [{"argument": "", "shape": list(result.shape)}]}


def first(made):
    return made if isinstance(made, torch.Tensor) else made[0]


def call(target, args):
    """The kernel of a call, as the planner knows it."""
    made = target(*args)
    count = flop_registry.get(target.overloadpacket)
    return Kernel(target, args, {}, [t for t in args if isinstance(t, torch.Tensor)], [first(made)], made,
                  count(*args, out_val=made) if count else 0)


def tried(target, args, cut, parts=PARTS):
    """Is a part said to keep its rows' bits, after a trial where one is needed?  cut: which arguments are sliced."""
    part = call(target, [t.chunk(parts)[0] if cut[i] else t for i, t in enumerate(args)])
    whole = first(target(*args))
    said = keeps_rows_bits(part, entry(part.args, part.written[0]), entry(args, whole))
    if not said or not needs_trial(part, entry(part.args, part.written[0]), entry(args, whole)):
        return said
    schema = target._schema.arguments
    named = {a.name: a.default_value for a in schema} | dict(zip((a.name for a in schema), args, strict=False))
    return Trial(part, named).passes()


def is_equal(target, args, cut, parts=PARTS):
    pieces = [first(target(*(t.chunk(parts)[i] if cut[j] else t for j, t in enumerate(args)))) for i in range(parts)]
    return torch.equal(torch.cat(pieces), first(target(*args)))


def samples(draw):
    """Products, convolutions and attention of odd sizes, with which of their arguments are cut."""
    def g(*size, dtype):
        return torch.randn(size).to(dtype)

    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        for _ in range(12):
            n, a, b = PARTS * draw.randint(1, 9), draw.randint(1, 200), draw.randint(1, 40)
            yield aten.mm.default, [g(n, a, dtype=dtype), g(a, b, dtype=dtype)], [True, False]
            yield aten.bmm.default, [g(n, 7, a, dtype=dtype), g(n, a, b, dtype=dtype)], [True, True]
            channels, out, size, kernel = draw.choice([1, 3, 4, 8]), draw.choice([1, 4, 16]), draw.randint(4, 9), draw.randint(1, 3)
            x, w = g(n, channels, size, size, dtype=dtype), g(out, channels, kernel, kernel, dtype=dtype)
            more = [None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1]
            yield aten.convolution.default, [x, w, *more], [True] + [False] * 8
            back = g(*torch.convolution(x, w, *more).shape, dtype=dtype)
            yield (aten.convolution_backward.default, [back, x, w, None, *more[1:], [True, False, False]],
                   [True, True] + [False] * 9)
            heads = [g(n, 2, draw.randint(1, 30), 16, dtype=dtype)] * 3
            y = g(n, 3, b, dtype=dtype)
            _, mean, rstd = aten.native_layer_norm(y, [b], None, None, 1e-5)
            weight = g(b, dtype=dtype)  # whose gradient is a sum over rows
            yield (aten.native_layer_norm_backward.default, [y * 2, y, [b], mean, rstd, weight, weight, [True, True, True]],
                   [True, True, False, True, True] + [False] * 3)
            yield aten._scaled_dot_product_flash_attention_for_cpu.default, [*heads, 0.0, True], [True] * 3 + [False] * 2


def test_kernels_that_pass_their_trial_keep_the_bits_of_the_whole():
    torch.manual_seed(0)
    said = [0, 0]
    for target, args, cut in samples(random.Random(0)):
        passes = tried(target, args, cut)
        said[passes] += 1
        assert not passes or is_equal(target, args, cut), (target, [getattr(t, "shape", t) for t in args], args[0].dtype)
    assert said[True] > sum(said) // 2, said  # or it says nothing


@pytest.mark.parametrize(("left", "right"), PRODUCTS)
def test_a_trial_says_what_is_seen(left, right):
    """As often as it is asked, and of what is kept of it."""
    args = [torch.randn(left), torch.randn(right)]
    equal = {is_equal(aten.mm.default, [torch.randn(left), torch.randn(right)], [True, False]) for _ in range(8)} == {True}
    assert {tried(aten.mm.default, args, [True, False]) for _ in range(2)} == {equal}


def test_a_kernel_that_refuses_its_trial_is_not_promised():
    part = call(aten.mm.default, [torch.randn(2, 3), torch.randn(3, 5)])
    assert not Trial(part, {"self": torch.randn(6, 4), "mat2": torch.randn(3, 5)}).passes()
    assert not Trial(part, {"self": torch.randn(6, 4), "mat2": torch.randn(4, 5)}).passes()  # whose rows are other ones


def test_answers_are_kept_and_others_are_tried_again(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    ran = []
    monkeypatch.setattr(Trial, "_try", lambda self, device: ran.append(self) or False)
    args = [torch.randn(12, 16), torch.randn(16, 8)]
    assert not tried(aten.mm.default, args, [True, False])
    trial._kept.clear()
    assert not tried(aten.mm.default, args, [True, False]) and len(ran) == 1
    (file,) = (tmp_path / "rows").iterdir()
    assert list(json.loads(file.read_text()).values()) == [False]
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "AVX")  # another machine, as far as kernels go
    trial._kept.clear()
    assert not tried(aten.mm.default, args, [True, False]) and len(ran) == 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(32, 512), nn.Linear(512, 64)

    def forward(self, x, y):
        return F.mse_loss(self.down(F.relu(self.up(x))), y)


@pytest.mark.parametrize("keeps", [True, False])
def test_a_report_says_what_trials_found(keeps, monkeypatch):
    """Where rows do not keep their bits, nothing is said to be a loop's."""
    module, inputs = fresh(lambda: (Net(), (torch.randn(64, 32), torch.randn(64, 64))))
    monkeypatch.setattr(Trial, "_try", lambda self, device: keeps)
    force(monkeypatch, lambda problem: in_parts(problem, 4))
    lowtide.torch.optimize(twin(module), inputs, budget=10**9, techniques="all", costs="cpu", work=20_000, time=None,
                           fallback="error")
    found = lowtide.torch.reports()[-1].exactness
    assert f"rows tested here with {torch.backends.cpu.get_cpu_capability()}" in str(found)
    assert found.whole == keeps and ("up.weight" in found.sums) == keeps and ("up.weight" in found.follows) != keeps


def test_one_rounding_needs_no_trial(monkeypatch):
    monkeypatch.setattr(Trial, "passes", lambda self: pytest.fail("tried"))
    assert tried(aten.relu.default, [torch.randn(6, 5)], [True])
    assert rows._is_cut_first(entry([torch.randn(2, 5)], torch.randn(2, 5)), entry([torch.randn(6, 5)], torch.randn(6, 5)))
