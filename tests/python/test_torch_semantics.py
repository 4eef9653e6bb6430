"""What a training loop may do with a planned module, and that it gives what it gives without a plan."""

import json
import warnings

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
import torch.nn.functional as F
from torch import nn
from torch_run import equal, fresh, train, twin
from torch_zoo import ZOO, Cnn, DropoutMlp, Gpt


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


def planned(module, share="act:80%", **options):
    """`module` compiled to a budget of that share of what each region can plan."""
    options = {"budget": share, "costs": "cpu", "work": 100_000, "time": None, "fallback": "error"} | options
    return torch.compile(module, backend="lowtide", options=options)


def both(make, run, **options):
    """run(module, step) on a plain twin and on a planned one: what each returned."""
    torch.manual_seed(0)
    module = make()
    plain, mine = twin(module), twin(module)
    torch.manual_seed(1)
    expected = run(plain, plain)
    rng = torch.get_rng_state()
    torch.manual_seed(1)
    got = run(mine, planned(mine, **options))
    assert torch.equal(torch.get_rng_state(), rng)
    return got, expected


def gradients(module):
    return [p.grad.clone() for p in module.parameters() if p.grad is not None]


class Body(nn.Module):
    """Hands out features; the loss is computed outside."""

    def __init__(self, p=0.0):
        super().__init__()
        self.layers, self.p = nn.ModuleList(nn.Linear(64, 64) for _ in range(6)), p

    def forward(self, x):
        for layer in self.layers:
            x = F.dropout(torch.tanh(layer(x)), self.p, self.training)
        return x


def test_the_backend_is_found_by_its_name():
    assert "lowtide" in torch._dynamo.list_backends(exclude_tags=())


def test_a_loss_outside_the_region():
    x = torch.randn(256, 64)

    def run(module, step):
        loss = step(x).square().mean()
        loss.backward()
        return [loss.detach(), *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_two_forwards_before_a_backward():
    x, y = torch.randn(2, 256, 64)

    def run(module, step):
        a = step(x).square().mean()
        b = step(y).square().mean()
        (a + 2 * b).backward()
        return [a.detach(), b.detach(), *gradients(module)]

    got, expected = both(lambda: Body(0.3), run)
    assert equal(got, expected)


def test_gradients_add_up_over_steps():
    xs = torch.randn(3, 256, 64)

    def run(module, step):
        for x in xs:
            step(x).square().mean().backward()
        return gradients(module)

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_retain_graph_and_a_second_backward():
    x = torch.randn(256, 64)

    def run(module, step):
        loss = step(x).square().mean()
        loss.backward(retain_graph=True)
        loss.backward()
        return gradients(module)

    got, expected = both(lambda: Body(0.3), run)
    assert equal(got, expected)


def test_hooks_on_parameters_run_once():
    x = torch.randn(256, 64)

    def run(module, step):
        calls = []
        for p in module.parameters():
            p.register_hook(lambda g: calls.append(1) or 2 * g)
            p.register_post_accumulate_grad_hook(lambda p: calls.append(2))
        step(x).square().mean().backward()
        return [torch.tensor(calls), *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_evaluation_and_no_grad():
    x, y = torch.randn(4, 3, 16, 16), torch.randint(10, (4,))

    def run(module, step):
        out = []
        for mode in (True, False, True):
            module.train(mode)
            with torch.no_grad():
                out.append(step(x, y))
            out.append(step(x, y).detach())
        with torch.inference_mode():
            out.append(step(x, y).clone())
        return [*out, *module.state_dict().values()]

    got, expected = both(Cnn, run)
    assert equal(got, expected)


def test_inputs_that_are_no_tensors_and_several_outputs():
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x, scale, names=("u",), *, deep=True, extra=None):
            y = self.a(x).tanh() * scale
            z = self.b(y).tanh() if deep else y
            return {"y": y, "z": (z, z.detach(), x.view(-1)), "n": len(names), "none": extra}

    x = torch.randn(256, 64)

    def run(module, step):
        out = step(x, 2.5, names=("a", "b"))
        assert out["n"] == 2 and out["none"] is None
        (out["y"].mean() + out["z"][0].square().mean()).backward()
        return [out["y"].detach(), *(t.detach() for t in out["z"]), *gradients(module)]

    got, expected = both(Odd, run, budget="100%")
    assert equal(got, expected)


def test_gradients_of_inputs():
    def run(module, step):
        x = torch.linspace(-1, 1, 256 * 64).view(256, 64).requires_grad_()
        step(x).square().mean().backward()
        return [x.grad, *gradients(module)]

    got, expected = both(Body, run)
    assert equal(got, expected)


def test_an_input_changed_in_place():
    class Shift(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x, seen):
            y = self.a(x).tanh()
            seen.add_(y.detach().sum(0))
            return self.b(y).tanh().square().mean()

    x = torch.randn(256, 64)

    def run(module, step):
        seen = torch.zeros(64)
        for _ in range(2):
            step(x, seen).backward()
        return [seen, *gradients(module)]

    got, expected = both(Shift, run)
    assert equal(got, expected)


def test_shared_modules_and_tied_weights():
    class Shared(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x):
            for _ in range(3):
                x = self.b(self.a(x).tanh()).tanh()
            return x.square().mean()

    x = torch.randn(256, 64)
    got, expected = both(Shared, lambda module, step: train(module, (x,), step))
    assert equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_number_types(dtype):
    x = torch.randn(256, 64, dtype=dtype)

    def run(module, step):
        loss = step(x).abs().square().mean()
        loss.backward()
        return [loss.detach(), *gradients(module)]

    got, expected = both(lambda: Body().to(dtype), run)
    assert equal(got, expected)


def test_a_graph_break_makes_two_regions():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = Body(), Body()

        def forward(self, x):
            y = self.a(x)
            if y.sum() > 1e9:
                y = y + 1
            return self.b(y).square().mean()

    x = torch.randn(256, 64)
    before = len(lowtide.torch.reports())
    got, expected = both(Broken, lambda module, step: train(module, (x,), step))
    assert equal(got, expected)
    assert len(lowtide.torch.reports()) - before == 2


class Halves(nn.Module):
    """Two bodies with a branch on a value between them, where the tracer breaks."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = Body(), nn.BatchNorm1d(64), Body(0.2)

    def forward(self, x):
        y = self.first(x)
        if y.sum() > 1e9:
            y = y + 1
        return self.second(self.norm(y)).square().mean()


def test_regions_share_the_budget():
    torch.manual_seed(0)
    module, inputs = Halves(), (torch.randn(512, 64),)
    plain = twin(module)
    expected = train(plain, inputs, plain)
    plain.zero_grad()
    held = lowtide.torch.meter.bytes_held(plain, inputs)
    rise = lowtide.torch.meter.peak_rise(lambda: plain(*inputs).backward())
    for share in (0.9, 0.6):
        budget = held + int(share * rise)
        torch._dynamo.reset()
        mine, before = twin(module), len(lowtide.torch.reports())
        state, rng = [t.clone() for t in mine.state_dict().values()], torch.get_rng_state()
        step = lowtide.torch.optimize(mine, inputs, budget=budget, costs="flops", fallback="error")
        assert equal(list(mine.state_dict().values()), state) and torch.equal(torch.get_rng_state(), rng)
        assert len(lowtide.torch.reports()) - before == 2
        assert equal(train(mine, inputs, step), expected)
        mine.zero_grad()
        assert held + lowtide.torch.meter.peak_rise(lambda step=step: step(*inputs).backward()) <= budget
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.BudgetError):
        lowtide.torch.optimize(twin(module), inputs, budget=held + rise // 20, costs="flops")


def test_a_region_is_planned_beside_what_the_one_before_has_saved():
    module, x = fresh(lambda: (Halves(), torch.randn(512, 64)))
    before = len(lowtide.torch.reports())
    step = planned(module, share="100MB")
    step(x).backward()
    first, second = lowtide.torch.reports()[before:]
    assert first.resident == 0 and 512 * 64 * 4 < second.resident < first.own_peak


def test_every_size_gets_a_plan_of_its_own():
    xs = [torch.randn(n, 64) for n in (256, 320, 384, 256, 512)]

    def run(module, step):
        out = []
        for x in xs:
            module.zero_grad()
            loss = step(x).square().mean()
            loss.backward()
            out += [loss.detach(), *gradients(module)]
        return out

    before = len(lowtide.torch.reports())
    got, expected = both(lambda: Body(0.2), run)
    assert equal(got, expected)
    peaks = {report.own_peak for report in lowtide.torch.reports()[before:]}
    assert len(peaks) == 4


def test_double_backward_is_refused_with_words():
    x = torch.randn(256, 64, requires_grad=True)
    step = planned(Body())
    (gradient,) = torch.autograd.grad(step(x).square().mean(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        gradient.sum().backward()


def test_a_budget_below_the_floor_fails_with_the_floor():
    x = torch.randn(256, 64)
    with pytest.raises(lowtide.torch.BudgetError, match=r"proven") as caught:
        lowtide.torch.optimize(Body(), x, budget="150KB")
    assert caught.value.floor > 150_000 and "150" in str(caught.value)
    with pytest.raises(torch._dynamo.exc.BackendCompilerFailed, match="no plan keeps this step within"):
        planned(Body(), share="150KB")(x)


def test_the_smallest_peak_that_an_error_names_is_a_budget_that_is_kept():
    module, x = Body(), torch.randn(512, 64)
    with pytest.raises(lowtide.torch.BudgetError) as caught:
        lowtide.torch.optimize(module, x, budget="act:1%", costs="cpu", work=1000, time=None)
    smallest = caught.value.smallest
    assert caught.value.floor <= smallest
    torch._dynamo.reset()
    lowtide.torch.optimize(module, x, budget=smallest, costs="cpu", work=1000, time=None)
    assert lowtide.torch.reports()[-1].peak <= smallest


@pytest.mark.parametrize(("options", "words"), [
    ({}, "needs a budget"),
    ({"budget": "8GiB", "ordre": "free"}, "did you mean 'order'"),
    ({"budget": "8GiB", "order": "any"}, "'free' or 'given'"),
    ({"budget": "8GiB", "optimizer": "lion"}, "no rule for the state of optimizer 'lion'"),
    ({"budget": "8GiB", "reserve": -1}, "reserve is bytes"),
    ({"budget": "8GiB", "fallback": "ignore"}, "'warn' or 'error'"),
    ({"budget": "8 parsecs"}, "parsecs"),
    ({"budget": "8GiB", "costs": "abacus"}, "unknown costs 'abacus'"),
])
def test_wrong_options_are_said(options, words):
    with pytest.raises(Exception, match=words):
        torch.compile(Body(), backend="lowtide", options=options)(torch.randn(4, 64))


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"budget": torch.tensor(8000)}, TypeError, r"budget must be an int \(bytes\) or a str .*tensor\(8000\)"),
    ({"budget": 1.5}, TypeError, "budget must be an int"),
    ({"budget": True}, TypeError, "budget must be an int"),
    ({"budget": "-5"}, ValueError, "is negative"),
    ({"reserve": "1 parsec"}, ValueError, "reserve is bytes beside the region .* not '1 parsec'"),
    ({"reserve": "5%"}, ValueError, "reserve is bytes"),
    ({"reserve": 0.5}, ValueError, "reserve is bytes"),
    ({"reserve": []}, TypeError, "reserve is bytes"),
    ({"time": "5"}, TypeError, "time must be a number of seconds or None, not '5'"),
    ({"time": -1}, ValueError, "time must be a number of seconds, 0 or more, not -1"),
    ({"time": float("nan")}, ValueError, "0 or more, not nan"),
    ({"work": -5}, ValueError, "work must be a whole number"),
    ({"seed": -1}, ValueError, "seed must be a whole number from 0"),
    ({"seed": 1.5}, TypeError, "seed must be a whole number, not 1.5"),
    ({"threads": -1}, ValueError, "threads must be a whole number from 0 to 4096, not -1"),
    ({"progress": 3}, TypeError, "progress must be callable, not 3"),
    ({"optimizer": 3}, TypeError, "optimizer must be one of torch.optim, its class or its name, not 3"),
    ({"order": None}, ValueError, "'free' or 'given', not None"),
])
def test_wrong_values_are_said_before_anything_is_traced(options, error, words):
    class Untouched(nn.Module):
        def forward(self, x):
            raise AssertionError("traced")

    with pytest.raises(error, match=words):
        lowtide.torch.optimize(Untouched(), torch.randn(4, 64), **{"budget": "8GiB"} | options)


def test_values_come_as_they_are_written():
    def settings(**options):
        return lowtide.torch.settings.Settings(**{"budget": "8GiB"} | options)

    assert [settings(reserve=reserve).reserve for reserve in ("1MB", "2 KiB", 1e5, 7, None)] == [
        1_000_000, 2048, 100_000, 7, None]
    assert settings(time=2).time == 2.0 and settings(time=None).time is None and settings(work=5).work == 5
    assert settings(budget=5).budget == 5 and settings(budget="act:50%").budget == "act:50%"


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"dtype": "fp8"}, ValueError, "unknown dtype 'fp8'; known are f32, bf16, amp"),
    ({"dtype": None}, ValueError, "unknown dtype None"),
    ({"costs": "abacus"}, ValueError, "unknown costs"),
    ({"optimizer": 3}, TypeError, "optimizer must be"),
    ({"order": "Free"}, ValueError, "'free' or 'given', not 'Free'"),
    ({"time": "x"}, TypeError, "time must be a number of seconds"),
    ({"points": 1}, ValueError, "points must be a whole number from 2"),
])
def test_wrong_options_of_explain_and_capture_are_said(options, error, words):
    with pytest.raises(error, match=words):
        lowtide.torch.explain(Body(), torch.randn(4, 64), **options)
    if options.keys() & {"dtype", "costs", "optimizer"}:
        with pytest.raises(error, match=words):
            lowtide.torch.capture(Body(), torch.randn(4, 64), **options)


def test_optimize_runs_nothing_and_draws_nothing():
    module, inputs = fresh(ZOO["cnn"])
    before, rng = [t.clone() for t in module.state_dict().values()], torch.get_rng_state()
    lowtide.torch.optimize(module, inputs, budget="80%", costs="measured")
    assert equal(list(module.state_dict().values()), before) and torch.equal(torch.get_rng_state(), rng)


def test_what_no_plan_can_run_falls_back_with_a_warning():
    class Sparse(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Embedding(10, 4, sparse=True)

        def forward(self, i):
            return self.table(i).square().mean()

    i = torch.randint(10, (8,))
    plain = Sparse()
    mine = twin(plain)
    plain(i).backward()
    with pytest.warns(lowtide.torch.LowtideWarning, match="runs without a plan"):
        planned(mine, fallback="warn")(i).backward()
    assert torch.equal(mine.table.weight.grad.to_dense(), plain.table.weight.grad.to_dense())


def test_a_model_that_the_tracer_leaves_alone_is_said():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(8, 16, batch_first=True)

        def forward(self, x):
            return self.cells(x)[0].square().mean()

    x = torch.randn(2, 4, 8)
    with pytest.warns(lowtide.torch.LowtideWarning, match="compiled nothing of it; nn.LSTM"):
        step = lowtide.torch.optimize(Recurrent(), x, budget="50%")
    assert step(x).requires_grad
    torch._dynamo.reset()
    with pytest.raises(lowtide.torch.CaptureError, match="compiled nothing"):
        lowtide.torch.optimize(Recurrent(), x, budget="50%", fallback="error")


def test_a_subclass_of_tensor_is_refused_or_falls_back():
    from torch.testing._internal.two_tensor import TwoTensor

    x = TwoTensor(torch.randn(4, 64), torch.randn(4, 64))
    module = Body()
    with pytest.warns(lowtide.torch.LowtideWarning, match="TwoTensor"):
        out = planned(module, fallback="warn")(x)
    assert torch.equal(out.a, module(x.a))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="TwoTensor, a subclass of Tensor"):
        planned(module)(x)


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


@pytest.mark.parametrize("text", ['{"a kernel": [10796, 0]}', '{"ns": 3, "workspace": [1]}', "[]", "7", '{"ns": {"k": "x"}}'])
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


def test_reserve_and_optimizer_stand_beside_the_region():
    module, x = Body(), torch.randn(256, 64)
    parameters = sum(p.numel() * 4 for p in module.parameters())

    def resident(**options):
        torch._dynamo.reset()
        lowtide.torch.optimize(module, x, budget="1GiB", costs="cpu", **options)
        return lowtide.torch.reports()[-1].resident

    assert resident() == 0 and resident(reserve=1000) == 1000
    assert resident(optimizer="adamw") == 2 * parameters
    assert resident(optimizer=torch.optim.SGD) == 0
    assert resident(optimizer=torch.optim.SGD(module.parameters(), 0.1, momentum=0.9)) == parameters
    assert resident(optimizer=torch.optim.Adam(module.parameters(), amsgrad=True), reserve=7) == 3 * parameters + 7


# ---- faults of torch's own activation_memory_budget (its issues 197838 and 190758)


def _upstream_peaks(module, inputs, ratios):
    from torch._functorch import config
    from lowtide.torch.meter import peak_rise

    peaks = []
    for ratio in ratios:
        torch._dynamo.reset()
        mine = twin(module)
        with config.patch(activation_memory_budget=ratio):
            step = torch.compile(mine, backend="aot_eager_decomp_partition")
            step(*inputs).backward()
        mine.zero_grad()
        peaks.append(peak_rise(lambda: step(*inputs).backward()))
    return peaks


def test_less_budget_never_takes_more_memory():
    module, inputs = fresh(lambda: (Gpt(layers=4, d=64), (torch.randint(128, (8, 64)), torch.randint(128, (8, 64)))))
    theirs = _upstream_peaks(module, inputs, (0.5, 0.1, 0.0))
    assert theirs[-1] > theirs[1], "upstream's peak has become monotone: look at its issue 197838"
    ours = []
    for share in ("100%", "80%", "60%", "50%"):
        torch._dynamo.reset()
        lowtide.torch.optimize(twin(module), inputs, budget=share, costs="flops", work=200_000, time=None)
        report = lowtide.torch.reports()[-1]
        assert report.peak <= report.budget
        ours.append(report.peak)
    assert ours == sorted(ours, reverse=True)


def test_dropout_is_never_drawn_afresh():
    from torch._functorch import config

    module, inputs = fresh(lambda: (DropoutMlp(), (torch.randn(256, 256),)))
    plain = twin(module)
    expected = train(plain, inputs, plain)
    theirs = []
    for ratio in (1.0, 0.2):  # at 1 nothing runs again
        torch._dynamo.reset()
        their = twin(module)
        with config.patch(activation_memory_budget=ratio):
            theirs.append(train(their, inputs, torch.compile(their, backend="aot_eager_decomp_partition"), steps=1))
    assert torch.equal(theirs[0][0], theirs[1][0])
    assert not equal(*theirs), "upstream's dropout is replayed now: look at its issue 190758"
    torch._dynamo.reset()
    mine = twin(module)
    step = lowtide.torch.optimize(mine, inputs, budget="75%", costs="cpu", work=300_000, time=None)
    assert equal(train(mine, inputs, step), expected)
    assert any("dropout.mask" in op or "native_dropout" in op for ops in lowtide.torch.reports()[-1].again.values()
               for op in ops)


def test_explain_says_what_each_budget_costs(capsys, tmp_path):
    module, inputs = fresh(lambda: (Gpt(layers=3, p=0.1), (torch.randint(128, (8, 64)), torch.randint(128, (8, 64)))))
    found = lowtide.torch.explain(module, inputs, costs="flops", points=5, time=1.0, optimizer="adamw")
    text = capsys.readouterr().out
    assert all(word in text for word in ("costs nothing", "at most 1 %", "smallest", "by module", "blocks."))
    assert sum(line.startswith("smallest") for line in text.splitlines()) == 1
    assert found.free.duration == found.curve.graph.duration and found.smallest.peak <= found.half.peak
    assert found.cheap.peak <= found.free.peak <= found.curve.own_peak and found.cheap.overhead <= 0.01
    assert found.half.budget == max(p.budget for p in [*found.curve.points, found.smallest]
                                    if p.plan is not None and 2 * p.budget <= found.curve.own_peak)  # as the page says
    assert f"at {100 * found.half.budget / found.curve.own_peak:.1f} %" in text
    again = sum(count for _, count, _ in found.modules(found.half))
    computes = [op for kind, op in found.half.plan.steps if kind == "compute"]
    assert again == len(computes) - found.curve.graph.num_ops
    assert sum(share for *_, share in found.modules(found.half)) == pytest.approx(found.half.overhead)
    found.save_html(tmp_path / "curve.html")
    assert "Gpt training" in (tmp_path / "curve.html").read_text()
    state = torch.get_rng_state()
    lowtide.torch.explain(module, inputs, points=2, time=0.2, show=False)
    assert torch.equal(torch.get_rng_state(), state) and capsys.readouterr().out == ""
