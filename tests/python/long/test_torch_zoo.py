"""Architectures of other people's packages train under three budgets each as without a plan, to the last bit, in
single precision, in bf16 and f16 throughout, and under autocast.

LOWTIDE_RECORD names a file for one JSON line a case.
"""

import json
import os
import time
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.torch.device.meter import peak_rise
from torch_architectures import ARCHITECTURES, available
from torch_run import cast, equal, fresh, train, train_traced, twin

pytestmark = pytest.mark.skipif(os.environ.get("LOWTIDE_BUILD", "release") != "release", reason="the package is the release's")

# where the code around the graph drops what it is handed, so that less is held than the plan says, and why
HELD_SHORTER = {
    "timm/swinv2_cr_tiny_224": "10 kB of it, still to be explained",
    "timm/xcit_nano_12_p16_224": "8 kB of it in bf16, in the workspace of a convolution's backward, still to be explained",
    "transformers/Mixtral": "how rows fall to the experts decides what their products take in half precision",
    "plain/normed": "Dynamo hands out the vectors of spectral norm a second time and drops them",
}
# where the autograd engine copies gradients whose strides are not their parameter's, which no plan knows of yet
COPIED_GRADIENTS = {"timm/pvt_v2_b0"}
# what cannot be compared, and why
SKIPPED = {
    "transformers/Segformer": "torch.compile makes several graphs of it, and the three budgets are those of one",
    "transformers/Wav2Vec2": "torch.compile makes several graphs of it, and the three budgets are those of one",
    "transformers/Bart in f16": "its code branches on whether all numbers are finite: several graphs",
    "transformers/PatchTST": "AOTAutograd's own trace of its batch norm views what cannot be viewed: the backward fails "
                             "without a plan too",
}
# what asks for single precision by itself (complex weights, Fourier transforms, casts of its own)
ONLY_F32 = (TypeError, RuntimeError, NotImplementedError)
SLACK = 64  # bytes of scalars that the autograd engine makes beside the graph


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    rnn = torch._dynamo.config.patch(allow_rnn=True)  # or nn.LSTM and the like run in eager mode
    with rnn, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", lowtide.torch.LowtideWarning)
        warnings.filterwarnings("ignore", "lowtide: the marks of torch.utils.checkpoint", lowtide.torch.LowtideWarning)
        yield
    torch.set_num_threads(threads)


def planned(module, inputs, budget, **options):
    """A twin of `module` under a plan, the step and the report."""
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget=budget, costs="cpu", work=30_000, time=None, fallback="error",
                                   **options)
    return mine, step, lowtide.torch.reports()[-1]


def within(module, inputs, own, share, **options):
    """The same at `share` of the way from the proven floor up to the peak without a plan, or where a plan is."""
    budget = own.floor + int((own.own_peak - own.floor) * share)
    for _ in range(4):
        try:
            return planned(module, inputs, budget, **options)
        except lowtide.torch.BudgetError as error:
            assert error.floor > budget or error.smallest is None or error.smallest > budget
            budget = max(budget + (own.own_peak - budget) // 2, error.smallest or 0)
    return planned(module, inputs, own.own_peak, **options)


def repeats_itself(module, inputs):
    """Whether PyTorch's own step has the same bits each time: convolutions over three dimensions in bf16 do not."""
    first, second = twin(module), twin(module)
    return equal(train(first, inputs, first), train(second, inputs, second))


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("numbers", ["bf16", "autocast bf16", "f16", "f32"])
def test_three_budgets(name, numbers):
    for what in (name, f"{name} in {numbers}"):
        if what in SKIPPED:
            pytest.skip(f"{what}: {SKIPPED[what]}")
    package, make = ARCHITECTURES[name]
    if package != "plain" and not available(package):
        pytest.skip(f"{name}: {package} is not installed")
    began = time.perf_counter()
    module, inputs = cast(*fresh(make), numbers)
    plain, traced = twin(module), None
    try:
        expected = train(plain, inputs, plain)
    except ONLY_F32 as error:
        if numbers == "f32":
            raise
        pytest.skip(f"{name} has no {numbers} without a plan either: {error}")
    before = len(lowtide.torch.reports())
    rows, own = [], None
    for share in (1.0, 0.5, 0.2):
        mine, step, report = within(module, inputs, own, share) if own else planned(module, inputs, "100%")
        own = own or report
        assert len(lowtide.torch.reports()) == before + len(rows) + 1, "not one graph"
        assert report.peak <= report.budget
        got = train(mine, inputs, step)
        mine.zero_grad()
        measured = report.inputs + report.resident + peak_rise(lambda step=step: step(*inputs).backward())
        words = f"{name} in {numbers} within {report.budget}: {measured} measured, {report.peak} predicted"
        same = equal(got, expected)
        if not same and not report.exactness.as_eager:  # then tracing itself may have changed bits
            torch._dynamo.reset()
            plain = twin(module)
            traced = traced or train_traced(plain, inputs)
            same = equal(got, traced)
        repeats = same or repeats_itself(module, inputs)
        assert same or not repeats, words
        rows.append({"budget": report.budget, "predicted": report.peak, "measured": measured,
                     "overhead": report.overhead, "repeats": repeats})
        assert measured <= report.budget + SLACK, words
        assert measured <= report.peak + SLACK or name in COPIED_GRADIENTS, words
        assert measured >= report.peak - SLACK or name in HELD_SHORTER, words
    if os.environ.get("LOWTIDE_RECORD"):
        with open(os.environ["LOWTIDE_RECORD"], "a") as file:
            file.write(json.dumps({"name": name, "numbers": numbers, "ops": own.ops, "own_peak": own.own_peak, "inputs": own.inputs,
                                   "floor": own.floor, "rows": rows, "seconds": time.perf_counter() - began}) + "\n")


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize("numbers", ["bf16", "f32"])
def test_every_technique(name, numbers):
    """With parts and a hoisted backward: within the budget as measured, and as near to double precision as eager."""
    for what in (name, f"{name} in {numbers}"):
        if what in SKIPPED:
            pytest.skip(f"{what}: {SKIPPED[what]}")
    package, make = ARCHITECTURES[name]
    if package != "plain" and not available(package):
        pytest.skip(f"{name}: {package} is not installed")
    began = time.perf_counter()
    module, inputs = cast(*fresh(make), numbers)
    plain = twin(module)
    try:
        exact = first_gradients(*cast(*fresh(make), "f64"))
        eager = first_gradients(plain, inputs)
    except ONLY_F32 as error:
        pytest.skip(f"{name} has no {numbers} or no double precision without a plan either: {error}")
    rows = []
    own = planned(module, inputs, "100%")[2]
    with pytest.raises(lowtide.torch.BudgetError) as refused:
        planned(module, inputs, 1, techniques="all")
    least = refused.value.smallest
    for budget in (own.floor + (own.own_peak - own.floor) // 5, (least + own.own_peak) // 2, least):
        try:
            mine, step, report = planned(module, inputs, budget, techniques="all")
        except lowtide.torch.BudgetError as error:  # parts are priced, and found to hold more than was estimated
            assert error.smallest > budget
            mine, step, report = planned(module, inputs, error.smallest, techniques="all")
        got = first_gradients(mine, inputs, step)
        mine.zero_grad()
        measured = report.inputs + report.resident + peak_rise(lambda step=step: step(*inputs).backward())
        words = f"{name} in {numbers} within {report.budget}: {measured} measured, {report.peak} predicted"
        rows.append({"budget": report.budget, "predicted": report.peak, "measured": measured, "overhead": report.overhead,
                     "transforms": report.transforms, "error": far(got, exact), "eager": far(eager, exact)})
        assert measured <= report.budget + SLACK, words
        assert rows[-1]["error"] <= 2 * rows[-1]["eager"] + 1e-4, f"{words}: {rows[-1]}"
    if os.environ.get("LOWTIDE_RECORD"):
        with open(os.environ["LOWTIDE_RECORD"], "a") as file:
            file.write(json.dumps({"name": name, "numbers": numbers, "own_peak": own.own_peak, "floor": own.floor,
                                   "rows": rows, "seconds": time.perf_counter() - began}) + "\n")


def first_gradients(module, inputs, step=None):
    """All gradients of a step, one after the other, in double precision."""
    torch.manual_seed(1)
    module.zero_grad()
    (module if step is None else step)(*inputs).backward()
    return torch.cat([p.grad.flatten().double() for p in module.parameters() if p.grad is not None])


def far(got, exact):
    """The distance of two vectors, by the length of the second."""
    return ((got - exact).norm() / exact.norm().clamp(min=1e-30)).item()
