"""Networks of every kind train under a plan as without one, in every number type, and within their budgets."""

import os

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch.device.meter import peak_rise
from torch_run import NUMBERS, cast, equal, fresh, optimized, train, twin
from torch_zoo import ZOO

SCALE = int(os.environ.get("LOWTIDE_TEST_SCALE", "1"))
# each network in f32 for three steps, and every second one in another number type for two, within its hardest budget; in
# long runs all in all types within all three.  Easier budgets in every type are those of random modules
# (test_torch_random.py)
TYPES = [name for name in NUMBERS if name != "f64"]  # which the random modules draw
IN_TURN = [(name, numbers) for i, name in enumerate(ZOO)
           for numbers in (TYPES if SCALE >= 10 else ("f32", TYPES[1 + i // 2 % 4]) if i % 2 else ("f32",))]
BUDGETS = ("act:100%", "act:80%", "act:65%")  # from the peak without a plan down to what is hard
# complex weights have no half precision; autocast in the network itself asks for f32 parameters
ONLY_AUTOCAST = {"spectral", "autocast", "half"}
# the scratch of these kernels moves by a cache line or two with where their operands lie
SCRATCH_MOVES = {"autocast", "half", "cnn", "unet", "frozen_norm", "norm_twice", "group_norm", "spectral", "encoder",
                 "attention_dropout", "norms"}


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


@pytest.mark.parametrize(("name", "numbers"), IN_TURN)
def test_a_plan_changes_no_bit(name, numbers):
    if name in ONLY_AUTOCAST and numbers in ("bf16", "f16"):
        numbers = f"autocast {numbers}"
    module, inputs = cast(*fresh(ZOO[name]), numbers)
    plain = twin(module)
    steps = 3 if numbers == "f32" or SCALE >= 10 else 2
    expected = train(plain, inputs, plain, steps)
    for budget in BUDGETS if SCALE >= 10 else BUDGETS[-1:]:
        mine, step, report = optimized(module, inputs, budget, work=100_000 if SCALE >= 10 else 20_000)
        words = f"{name} in {numbers} within {report.budget}"
        got = train(mine, inputs, step, steps)
        assert report.peak <= report.budget
        mine.zero_grad()
        rise = peak_rise(lambda step=step: step(*inputs).backward())
        predicted = report.peak - report.inputs - report.resident
        assert abs(rise - predicted) <= 64 + (predicted // 100 if name in SCRATCH_MOVES or numbers != "f32" else 0), \
            f"{words}: {rise} measured, {predicted} predicted"
        assert equal(got, expected), words
