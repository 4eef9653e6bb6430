"""What a user may say of a budget and beside it, and what is said of what is wrong; tests/frontend/test_options.py has what all
front ends share."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn
from torch_run import Body, planned


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()


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
    ({"reserve": "1 parsec"}, ValueError, "reserve is bytes beside the graph .* not '1 parsec'"),
    ({"reserve": "5%"}, ValueError, "reserve is bytes"),
    ({"reserve": 0.5}, ValueError, "reserve is bytes"),
    ({"reserve": []}, TypeError, "reserve is bytes"),
    ({"time": "5"}, TypeError, "time must be a number of seconds or None, not '5'"),
    ({"optimizer": 3}, TypeError, "optimizer must be one of torch.optim, its class or its name, not 3"),
    ({"inner": "triton"}, ValueError, "inner must be 'auto', 'eager' or 'fused', not 'triton'"),
    ({"host_budget": "much"}, ValueError, "host_budget is bytes on the host .* not 'much'"),
    ({"link": 25}, TypeError, "link must be bytes a second and a latency"),
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


def test_a_solver_may_be_named(monkeypatch):
    asked, real = [], lowtide.plan

    def plan(*given, **options):
        asked.append((options.get("solver"), options.get("options")))
        return real(*given, **options)

    monkeypatch.setattr(lowtide, "plan", plan)
    module, x = Body(), torch.randn(512, 64)
    eager = module(x).square().sum()
    wanted = torch.autograd.grad(eager, list(module.parameters()))
    made = lowtide.torch.optimize(module, x, budget="act:70%", costs="cpu", work=20_000, time=None, solver="hiremate",
                                  solver_options={"partition": ["chain", "repeat"], "peaks": 2, "polish": "off"})
    told = ("hiremate", {"partition": "chain,repeat", "peaks": "2", "polish": "off"})
    assert asked.count(told) > 1  # when the options were looked at, and for the plan
    report = lowtide.torch.reports()[-1]
    assert report.peak <= report.budget < report.own_peak
    made(x).square().sum().backward()
    assert all(map(torch.equal, wanted, (p.grad for p in module.parameters())))


def test_a_graph_that_the_named_solver_does_not_support_is_planned_by_auto_with_a_warning(tmp_path, monkeypatch):
    """Also of the plan that an earlier start has kept."""
    monkeypatch.setenv("LOWTIDE_CACHE", str(tmp_path))
    for cached in (False, True):
        torch._dynamo.reset()
        with pytest.warns(lowtide.torch.LowtideWarning, match=r"exhaustive has found no plan .*too many\); auto has"):
            lowtide.torch.optimize(Body(), torch.randn(512, 64), budget="act:70%", costs="cpu", work=5_000, time=None,
                                   solver="exhaustive", fallback="error")
        report = lowtide.torch.reports()[-1]
        assert report.peak <= report.budget < report.own_peak and report.cached == cached


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"solver": "hiremat"}, ValueError, "none of that name"),
    ({"solver": "hiremate", "solver_options": {"peeks": 3}}, ValueError, "peeks"),
])
def test_wrong_solvers_are_said(options, error, words):
    with pytest.raises(error, match=words):
        lowtide.torch.optimize(Body(), torch.randn(8, 64), budget="60%", **options)


def test_options_for_type_checkers_are_those_of_the_settings():
    from lowtide.torch.settings import _NOT_OPTIONS, OptimizeOptions, Settings, StepOptions

    names = {field.name for field in dataclasses.fields(Settings)} - {"budget", *_NOT_OPTIONS}
    assert OptimizeOptions.__optional_keys__ == names and not OptimizeOptions.__required_keys__
    assert StepOptions.__optional_keys__ == names - {"optimizer", "update", "fallback"}
