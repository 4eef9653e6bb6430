"""What differs between versions of PyTorch: each branch, whichever version is here."""

import warnings

import pytest

torch = pytest.importorskip("torch")

from lowtide.torch import compat
from torch import nn


@pytest.mark.parametrize("text, version", [("2.13.0+cpu", (2, 13)), ("2.14.0a0+git12", (2, 14)), ("3.0", (3, 0)), ("git", (0, 0))])
def test_versions_are_read(text, version):
    assert compat.version_of(text) == version


@pytest.mark.parametrize("version, warns", [("2.10.1", True), ("2.11.0+cu130", False), ("2.14.1", False), ("2.15.0", True)])
def test_a_version_that_no_test_has_seen_is_a_warning(version, warns):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        compat.warn_of_another_version(version)
    assert [f"this is torch {version}" in str(w.message) for w in said] == [True] * warns


@pytest.mark.parametrize("in_compile", [True, False])
def test_a_function_may_have_many_variants(monkeypatch, in_compile):
    if in_compile and not compat._LIMIT_IN_COMPILE:
        pytest.skip("torch.compile takes no limit")
    monkeypatch.setattr(compat, "_LIMIT_IN_COMPILE", in_compile)
    torch._dynamo.reset()
    module, seen = nn.Linear(2, 2), []

    def backend(gm, _):
        seen.append(gm)
        return gm.forward

    with torch._dynamo.config.patch(recompile_limit=2, automatic_dynamic_shapes=False, fail_on_recompile_limit_hit=True):
        run = compat.compiled(module, backend, 6)
        for rows in range(2, 7):
            run(torch.ones(rows, 2))
    assert len(seen) == 5
    torch._dynamo.reset()


@pytest.mark.parametrize("make", [torch.optim.Adagrad, torch.optim.AdamW, torch.optim.SGD])
def test_an_optimizer_steps_from_its_initial_state(make):
    parameter, twin = (nn.Parameter(torch.ones(3)) for _ in range(2))
    optimizer, other = make([parameter], lr=0.1), make([twin], lr=0.1)
    optimizer.state.clear()
    optimizer.state[parameter] = compat.initial_state(optimizer, parameter, optimizer.param_groups[0])
    for p, o in ((parameter, optimizer), (twin, other)):
        p.grad = torch.ones(3)
        o.step()
    assert torch.equal(parameter, twin)


def test_adagrad_as_it_was_before_2_12(monkeypatch):
    monkeypatch.setattr(compat, "VERSION", (2, 11))
    parameter = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adagrad([parameter], initial_accumulator_value=2.0)
    found = compat.initial_state(optimizer, parameter, optimizer.param_groups[0])
    assert torch.equal(found["sum"], torch.full((3,), 2.0)) and found["step"] == 0
    adamw = torch.optim.AdamW([parameter])
    assert compat.initial_state(adamw, parameter, adamw.param_groups[0]) == {}
