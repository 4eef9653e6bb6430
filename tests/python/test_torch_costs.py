"""What kernels are measured to cost, and what of it, and of plans, is kept on disk."""

import contextlib
import json
import types

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from lowtide.torch.device import limits, rates
from lowtide.torch.device.identity import identity
from lowtide.torch.pricing import costs
from lowtide.torch.pricing.remembered import Remembered
from lowtide.torch.tensors.operators import Kernel
from torch import nn
from torch_run import Body, deterministic


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def test_the_same_operators_on_other_sizes_are_measured_anew():
    """Such as the parts of a region in four and in six."""
    def kernel(rows):
        x, y, made = torch.empty(rows, 8), torch.empty(8, 8), torch.empty(rows, 8)
        return Kernel(torch.ops.aten.mm.default, (x, y), {}, [x, y], [made], made)

    asked = []

    class Price:
        real = True

        def prepare(self, kernels):
            asked.append(len(kernels))

        def __call__(self, kernel):
            return kernel.written[0].nbytes, 0, []

    price, found = Remembered(Price()), []
    for rows in (4, 6, 6, 4):
        kernels = [kernel(rows), kernel(rows)]
        price.prepare(kernels)
        found += [price(kernel)[0] for kernel in kernels]
    assert found == [128, 128, 192, 192, 192, 192, 128, 128] and len(asked) == 3  # what is as before is remembered


@pytest.mark.parametrize(("loss", "reduction", "weighed"), [
    (F.mse_loss, "mean", False), (F.mse_loss, "sum", False), (F.mse_loss, "mean", True),
    (F.smooth_l1_loss, "mean", True), (F.binary_cross_entropy, "mean", False), (F.soft_margin_loss, "sum", False),
    (F.l1_loss, "mean", False)])
def test_storage_of_a_loss_beyond_its_scalar_is_counted(loss, reduction, weighed):
    """Some kernels of the CPU sum their terms up in place: the scalar keeps their storage."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64)

        def forward(self, x, y):
            value = loss(torch.sigmoid(self.layer(x)), y, reduction=reduction)
            return 2 * value * value if weighed else value

    module, inputs = Net(), (torch.rand(512, 64), torch.rand(512, 64))
    step = lowtide.torch.optimize(module, inputs, budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    step(*inputs).backward()
    module.zero_grad()
    report = lowtide.torch.reports()[-1]
    peak = lowtide.torch.measure_peak(lambda: step(*inputs).backward(), held=(module, inputs))
    assert peak <= report.budget and report.peak - 64 <= peak <= report.peak


class Conjugates(nn.Module):
    """Products of conjugates and of their negatives, which no kernel has computed."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(8, 4, 16, dtype=torch.complex64))

    def forward(self, x):
        y = torch.bmm(x, self.weight)
        return (torch.bmm(y.mH, y).real + torch.bmm(y.mH.imag, y.real)).square().mean()


def test_the_workspace_of_a_product_includes_the_copy_of_a_conjugate():
    module, x = Conjugates(), torch.randn(8, 16, 4, dtype=torch.complex64)
    step = lowtide.torch.optimize(module, (x,), budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    step(x).backward()
    module.zero_grad()
    report = lowtide.torch.reports()[-1]
    peak = lowtide.torch.measure_peak(lambda: step(x).backward(), held=(module, x))
    assert report.peak - 64 <= peak <= report.peak + 64


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_the_workspace_of_embedding_bags_is_that_of_bags_which_hold_something(mode):
    module = nn.EmbeddingBag(64, 256, mode=mode)
    inputs = torch.randint(64, (100,)), torch.arange(0, 100, 5)
    step = lowtide.torch.optimize(module, inputs, budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    gradient = torch.ones(20, 256)
    step(*inputs).backward(gradient)
    module.zero_grad()
    report = lowtide.torch.reports()[-1]
    peak = lowtide.torch.measure_peak(lambda: step(*inputs).backward(gradient), held=(module, inputs))
    assert report.peak - 64 <= peak + gradient.nbytes <= report.peak + 64


@pytest.mark.parametrize("parts", [(0, 0, 128), (128, 0, 0), (30, 40, 58)])
def test_the_workspace_of_grouped_products_is_that_of_all_rows_in_one_group(parts):
    """In bf16 a product takes memory for itself, the more the more rows it has; how many, values say."""
    class Groups(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights = nn.Parameter(torch.randn(3, 32, 128, dtype=torch.bfloat16))

        def forward(self, x, ends):
            return torch._grouped_mm(x, self.weights, offs=ends).float().square().mean()

    module, x = Groups(), torch.randn(128, 32, dtype=torch.bfloat16)
    ends = torch.tensor(parts, dtype=torch.int32).cumsum(0, dtype=torch.int32)
    step = lowtide.torch.optimize(module, (x, ends), budget="100%", costs="cpu", work=1000, time=None, fallback="error")
    module.zero_grad()
    report = lowtide.torch.reports()[-1]
    peak = lowtide.torch.measure_peak(lambda: step(x, ends).backward(), held=(module, x, ends))
    assert peak <= report.peak + 64 and (peak >= report.peak - 64 or 128 not in parts)


class Scored(nn.Module):
    """A layer under a mean squared error, which holds more than it shows."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x, y):
        return F.mse_loss(torch.tanh(self.layer(x)), y)


def start(folder):
    """The report of a start of its own of one step with figures in `folder`, and the figures after it."""
    torch._dynamo.reset()
    inputs = torch.zeros(512, 64), torch.zeros(512, 64)
    lowtide.torch.optimize(Scored(), inputs, budget="100%", work=1000, time=None, fallback="error")
    files = sorted((folder / "costs").iterdir(), key=lambda file: file.stat().st_mtime)
    return lowtide.torch.reports()[-1], files[-1]


def test_figures_of_another_format_are_not_believed(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    first, file = start(tmp_path)
    figures = json.loads(file.read_text())
    assert figures["held"]
    file.write_text(json.dumps(figures | {"held": {}}))
    assert start(tmp_path)[0].own_peak < first.own_peak  # believed
    monkeypatch.setattr(costs, "_FORMAT", costs._FORMAT + 1)
    again, other = start(tmp_path)
    assert other != file and again.own_peak == first.own_peak


def test_a_kernel_that_failed_is_tried_again_at_the_next_start(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    run = costs.workspace

    def full(function, device):
        raise torch.OutOfMemoryError("no room")

    monkeypatch.setattr(costs, "workspace", full)
    without, file = start(tmp_path)
    assert json.loads(file.read_text())["workspace"] == {}
    monkeypatch.setattr(costs, "workspace", run)
    measured, file = start(tmp_path)
    figures = json.loads(file.read_text())
    assert measured.own_peak > without.own_peak
    assert figures["held"] and figures["workspace"].keys() == figures["ns"].keys()


def test_time_being_up_spares_what_needed_nothing_and_nothing_after_a_failure(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    monkeypatch.setattr(costs, "_LIMIT", 0.0)
    ran, run = [], costs.Prices._run

    def counted(self, kernel):
        ran.append(kernel)
        if len(kernel.read[0].shape) == 2 and kernel.read[0].shape[0] == fails:
            raise torch.OutOfMemoryError("no room")
        return run(self, kernel)

    class Sizes(nn.Module):
        def forward(self, *xs):
            return sum(torch.tanh(x).sum() for x in xs)

    monkeypatch.setattr(costs.Prices, "_run", counted)
    for fails, tanhs in ((0, 1), (1024, 3)):  # noqa: B007  (`counted` reads it)
        torch._dynamo.reset()
        ran.clear()
        inputs = tuple(torch.zeros(n, 64, requires_grad=True) for n in (32, 512, 1024))
        lowtide.torch.optimize(Sizes(), inputs, budget="100%", work=1000, time=None, fallback="error")
        assert sum(kernel.target is torch.ops.aten.tanh.default for kernel in ran) == tanhs
        next((tmp_path / "costs").iterdir()).unlink()


def test_time_being_up_spares_no_convolution(monkeypatch):
    ran, run = [], costs.Prices._run
    monkeypatch.setattr(costs, "_LIMIT", 0.0)
    monkeypatch.setattr(costs.Prices, "_run", lambda self, kernel: ran.append(kernel.target) or run(self, kernel))
    module = nn.Sequential(nn.Conv2d(4, 8, 1, bias=False), nn.Conv2d(8, 8, 3, bias=False), nn.Conv2d(8, 4, 5, bias=False))
    lowtide.torch.optimize(module, torch.randn(2, 4, 16, 16), budget="100%", costs="cpu", work=1000, time=None)
    assert ran.count(torch.ops.aten.convolution.default) == ran.count(torch.ops.aten.convolution_backward.default) == 3


def test_time_being_up_spares_no_kernel_whose_input_lies_otherwise(monkeypatch, tmp_path):
    # a layer norm copies what is not contiguous, and needs nothing beside its results where it is
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    monkeypatch.setattr(costs, "_LIMIT", 0.0)

    class Norms(nn.Module):
        def forward(self, *xs):
            return sum(F.layer_norm(x if x.shape[-1] == 64 else x.transpose(1, 2), (64,)).square().mean() for x in xs)

    inputs = tuple(torch.randn(shape, requires_grad=True) for shape in ((2, 8, 64), (4, 64, 256), (4, 16, 64)))
    lowtide.torch.optimize(Norms(), inputs, budget="100%", costs="cpu", work=1000, time=None)
    (file,) = (tmp_path / "costs").iterdir()
    norms = {key: needed for key, needed in json.loads(file.read_text())["workspace"].items()
             if "native_layer_norm.default" in key}
    assert sorted(norms.values()) == [0, 0, inputs[1].nbytes]


def test_a_second_start_takes_its_plan_from_the_cache(monkeypatch, tmp_path):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    module, x = Body(0.2), torch.randn(256, 64)
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        lowtide.torch.optimize(module, x, budget="70%", work=100_000, time=None)
        found.append(lowtide.torch.reports()[-1])
    assert [report.cached for report in found] == [False, True]
    assert found[0].peak == found[1].peak and found[0].duration == found[1].duration
    for file in (tmp_path / "plans").iterdir():  # a damaged entry is as good as none
        file.write_text('{"steps": [["compute", 0]], "bound": 1}')
    torch._dynamo.reset()
    lowtide.torch.optimize(module, x, budget="70%", work=100_000, time=None)
    assert not lowtide.torch.reports()[-1].cached


@pytest.mark.parametrize("text", [
    '{"a kernel": [10796, 0]}', '{"ns": 3, "workspace": [1], "held": {"k": 3}}', "[]", "7", '{"ns": {"k": "x"}}'])
def test_costs_that_something_else_wrote_are_measured_anew(monkeypatch, tmp_path, text):
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    (tmp_path / "costs").mkdir()
    module, x = Body(), torch.randn(256, 64)
    lowtide.torch.optimize(module, x, budget="100%", work=1000, time=None)
    (file,) = (tmp_path / "costs").iterdir()
    file.write_text(text)
    torch._dynamo.reset()
    lowtide.torch.optimize(module, x, budget="100%", work=1000, time=None)
    assert set(json.loads(file.read_text())) == {"ns", "workspace", "held"}


def test_seeds_that_a_gpu_kernel_reads_on_the_host_are_made_there():
    """Its backward would follow a pointer into the device's memory, which ends the process."""
    attention = torch.ops.aten._scaled_dot_product_efficient_attention_backward.default
    meta = torch.device("meta")
    seed = torch.empty((), dtype=torch.int64, device=meta)
    rest = [torch.empty(2, 4, 8, 16, device=meta) for _ in range(7)]
    args, _ = costs.real_arguments(attention, (*rest, seed, seed, 0.1, [True] * 4), {}, meta)
    assert [t.device.type for t in args[:9]] == ["meta"] * 7 + ["cpu"] * 2
    assert args[9:] == (0.1, [True] * 4)


def test_rows_of_a_table_are_made_to_differ():
    prices = costs.Prices(torch.device("cpu"), None, 1.0, True)
    grad, indices = torch.empty(6, 8), torch.empty(6, dtype=torch.int64)
    made = torch.empty(4, 8)
    kernel = Kernel(torch.ops.aten.embedding_dense_backward.default, (grad, indices, 4, -1, False), {}, [grad, indices], [made], made)
    args, _ = prices._made_up(kernel)
    assert args[1].tolist() == [0, 1, 2, 3, 0, 1]


@torch.library.custom_op("lowtide_tests::compiles", mutates_args=())
def compiles(x: torch.Tensor) -> torch.Tensor:
    return torch.compile(torch.sin, backend="eager")(x)


compiles.register_fake(torch.empty_like)
compiles.register_autograd(lambda _, gradient: gradient.clone())


def test_an_operator_that_compiles_within_is_measured():
    """In another thread than the tracer's it would wait for the tracer, and the tracer for it."""
    layer = nn.Linear(8, 8)
    module = nn.Module()
    module.forward = lambda x: compiles(layer(x)).sum()
    run = torch.compile(module, backend="lowtide", options={"budget": "8GiB", "time": None, "work": 100, "fallback": "error"})
    run(torch.ones(4, 8)).backward()
    assert torch.equal(layer.bias.grad, torch.full((8,), 4.0))


def test_kernels_that_take_most_of_a_step_are_measured_first(monkeypatch):
    """When the time for measuring is used up, a kernel that is left may be an estimate that is ten times off."""
    def product(n):
        x, made = torch.empty(n, n), torch.empty(n, n)
        return Kernel(torch.ops.aten.mm.default, (x, x), {}, [x, x], [made], made, flops=2 * n**3)

    measured = []
    monkeypatch.setattr(costs.Prices, "_runnable", lambda self, kernel: measured.append(kernel.read[0].shape[0]))
    prices = costs.Prices(torch.device("cpu"), None, 1.0, True)
    prices.prepare([product(n) for n in (16, *[128] * 80, 256, 32)])
    assert measured == [128, 256, 32, 16]  # 80 of the second size take longer than one of the largest


def test_estimates_on_a_gpu_are_those_of_its_card(monkeypatch):
    x = torch.empty(1 << 20, dtype=torch.bfloat16)
    kernel = Kernel(torch.ops.aten.tanh.default, (x,), {}, [x], [x], x)
    monkeypatch.setattr(costs, "known_as", lambda device: "h100")
    found = costs.Prices(torch.device("cuda"), None, 1.0, False)
    assert found._estimate(kernel) == costs.roofline(costs.DEVICES["h100"])(kernel) != costs.roofline(costs.DEVICES["a100"])(kernel)


def test_rates_are_measured_with_numbers_that_differ_and_no_generator_moves():
    before = torch.get_rng_state()
    made = rates._numbers((64, 64), torch.device("cpu"), torch.bfloat16)
    assert made.unique().numel() > 30 and torch.equal(torch.get_rng_state(), before)


class Clock:
    """Stands in for events on a GPU: a time is what has run until then."""

    now = 0.0

    def __init__(self, enable_timing):
        assert enable_timing

    def record(self):
        self.at = Clock.now

    def synchronize(self):
        pass

    def elapsed_time(self, last):
        return last.at - self.at


@pytest.mark.parametrize(("ms", "runs"), [(0.01, 33), (0.3, 13), (1.5, 1), (40.0, 1)])
def test_a_long_kernel_of_a_gpu_is_timed_once(monkeypatch, ms, runs):
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(torch.cuda, "_sleep", lambda cycles: None)
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    ran = []

    def kernel():
        ran.append(None)
        Clock.now += ms

    took = costs.Prices(torch.device("cuda"), lambda kernel: 1, 1.0, False)._time(kernel)
    assert took == pytest.approx(ms * 1e6, rel=1e-3) and len(ran) == runs


@pytest.fixture
def smi(monkeypatch, tmp_path):
    """A stand-in for nvidia-smi, as a shell script: what it does."""
    def does(script):
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho >> {tmp_path}/asked\n{script}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
        (tmp_path / "asked").write_text("")
        limits._limits_by_card.cache_clear()
        return lambda: (tmp_path / "asked").read_text().count("\n")

    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    yield does
    limits._limits_by_card.cache_clear()


def test_the_key_of_a_gpus_times_has_the_limits_of_its_card(monkeypatch, smi):
    cards = {torch.device("cuda", i): types.SimpleNamespace(name="a card", total_memory=1, uuid=uuid) for i, uuid in enumerate("abc")}
    monkeypatch.setattr(torch.cuda, "get_device_properties", cards.__getitem__)
    first, second, third = cards
    asked = smi("echo 'GPU-a, 700.00 W, 1980 MHz, 2619 MHz'; echo 'GPU-b, 400.00 W, 1980 MHz, 2619 MHz'")
    key = identity(first)
    assert key[-1] == ("700.00 W", "1980 MHz", "2619 MHz") and identity(second)[-1] == ("400.00 W", "1980 MHz", "2619 MHz")
    assert identity(third)[-1] == ()  # such as a part of a card
    assert asked() == 1
    smi("echo 'GPU-a, 500.00 W, 1980 MHz, 2619 MHz'")
    assert identity(first) != key and identity(first)[:-1] == key[:-1]


@pytest.mark.parametrize("script", ["exit 9", "echo no devices were found", "exec sleep 60"])
def test_a_card_of_which_nothing_is_told_has_a_key_without_limits(monkeypatch, smi, script):
    monkeypatch.setattr(limits, "_SECONDS", 0.2)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: types.SimpleNamespace(name="a card", total_memory=1, uuid="a"))
    asked = smi(script)
    keys = {identity(torch.device("cuda")) for _ in range(3)}
    assert [key[-1] for key in keys] == [()] and asked() <= 1


def test_times_of_a_gpu_are_those_of_its_card_and_of_the_modes_that_choose_its_kernels(monkeypatch):
    card = types.SimpleNamespace(name="a card", total_memory=1 << 34)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    gpu = torch.device("cuda")
    keys = [identity(gpu)]
    for owner, name, value in ((torch.backends.cuda.matmul, "fp32_precision", "tf32"), (torch.backends.cudnn, "benchmark", True),
                               (torch.backends.cudnn, "deterministic", True), (card, "name", "another"), (card, "total_memory", 1 << 35),
                               (torch.backends.cuda.matmul, "allow_bf16_reduced_precision_reduction", False)):
        before = getattr(owner, name)
        setattr(owner, name, value)
        keys.append(identity(gpu))
        setattr(owner, name, before)
    with deterministic(monkeypatch):
        keys.append(identity(gpu))
    monkeypatch.undo()
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: card)
    assert len(set(keys)) == len(keys) and identity(gpu) == keys[0]
