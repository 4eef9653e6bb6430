"""Options of the whole process, and what frameworks expect of a compiled module."""

import copy
import enum
import functools
import inspect
import pickle
import sys
import types

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from lowtide.frontend import defaults
from lowtide.torch.api.process import add_member
from torch_run import Body


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    yield
    lowtide.torch.set_default()


QUICK = {"work": 10_000, "time": None}


def test_a_backend_without_options_takes_those_of_the_process():
    lowtide.torch.set_default(budget="90%", **QUICK)
    x = torch.randn(4096, 64)
    torch.compile(Body(), backend="lowtide")(x).sum().backward()
    report = lowtide.torch.reports()[-1]
    assert report.peak <= report.budget < report.own_peak
    planned = lowtide.torch.optimize(Body(), x, budget="100%")  # its own budget, the work of the process
    planned(x).sum().backward()
    assert lowtide.torch.reports()[-1].budget >= lowtide.torch.reports()[-1].own_peak


def test_the_environment_gives_options_without_set_default(monkeypatch):
    monkeypatch.setenv("LOWTIDE_BUDGET", "90%")
    monkeypatch.setenv("LOWTIDE_WORK", "10000")
    torch.compile(Body(), backend="lowtide")(torch.randn(4096, 64)).sum().backward()
    report = lowtide.torch.reports()[-1]
    assert report.peak <= report.budget < report.own_peak


@pytest.mark.parametrize("option", defaults.FROM_ENVIRONMENT)
def test_an_error_names_the_variable_that_gave_the_option(option, monkeypatch):
    variable = f"LOWTIDE_{option.upper()}"
    text = "nonsense" if defaults.FROM_ENVIRONMENT[option] is str else "-1"
    monkeypatch.setenv(variable, text)
    with pytest.raises(ValueError, match=f"{variable}={text}"):
        lowtide.torch.optimize(Body(), torch.randn(4, 64), **({} if option == "budget" else {"budget": "90%"}))


def test_models_without_options_share_a_budget_and_a_new_default_begins_anew():
    lowtide.torch.set_default(budget="95%", **QUICK)
    x, groups = torch.randn(64, 64), []
    real = lowtide.torch.backend

    def seen(gm, inputs, **options):
        run = real(gm, inputs, **options)
        groups.append(run.group)
        return run

    for _ in range(2):
        torch._dynamo.reset()
        torch.compile(Body(), backend=seen)(x)
    lowtide.torch.set_default(budget="96%", **QUICK)
    torch._dynamo.reset()
    torch.compile(Body(), backend=seen)(x)
    assert groups[0] is groups[1] is not groups[2]


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"budget": "8 parsecs"}, ValueError, "parsecs"),
    ({"budget": "8GiB", "ordre": "free"}, ValueError, "did you mean 'order'"),
    ({"optimizer": "adam"}, TypeError, "'optimizer' belongs to one model"),
    ({"update": "backward"}, TypeError, "'update' belongs to one model"),
    ({"techniques": "alchemy"}, ValueError, "alchemy"),
])
def test_wrong_defaults_are_refused_and_change_nothing(options, error, words):
    lowtide.torch.set_default(budget="100%", **QUICK)
    with pytest.raises(error, match=words):
        lowtide.torch.set_default(**options)
    torch.compile(Body(), backend="lowtide")(torch.randn(64, 64))


def test_without_any_budget_the_error_names_all_ways_to_give_one():
    with pytest.raises(ValueError, match="set_default.*LOWTIDE_BUDGET"):
        lowtide.torch.optimize(Body(), torch.randn(4, 64))


def test_an_enumeration_of_names_can_be_given_another():
    class Plain(enum.Enum):
        NO = "NO"

    class Text(str, enum.Enum):
        NO = "NO"

    for names in (Plain, Text):
        for _ in range(2):
            add_member(names, "LOWTIDE")
        assert names("LOWTIDE") is names.LOWTIDE is names["LOWTIDE"] and list(names)[-1].value == "LOWTIDE" and len(names) == 2
        assert pickle.loads(pickle.dumps(list(names)[0].value)) == "NO"
    assert Text.LOWTIDE == "LOWTIDE" and Text("LOWTIDE").lower() == "lowtide"


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)

    def forward(self, tokens, labels=None, *, scale: float = 1.0):
        return self.layer(tokens).sum() * scale


def test_an_optimized_module_has_the_signature_of_its_forward():
    planned = lowtide.torch.optimize(Model(), (torch.randn(4, 8),), budget="100%")
    wanted = inspect.signature(Model().forward)
    for module in (planned, copy.deepcopy(planned), pickle.loads(pickle.dumps(planned))):
        assert inspect.signature(module.forward) == wanted
        module(torch.randn(4, 8), scale=2.0).backward()


def test_a_compile_that_copies_its_arguments_copies_no_module(monkeypatch):
    """As Lightning's, which notes the arguments on the module to compile it again."""
    real = torch.compile

    @functools.wraps(real)
    def noting(model, **options):
        made = real(model, **options)
        made._compile_kwargs = copy.deepcopy(options)
        return made

    monkeypatch.setattr(torch, "compile", noting)
    model, x = Model(), torch.randn(4, 8)
    planned = lowtide.torch.optimize(model, (x,), budget="100%", **QUICK)
    again = real(planned._orig_mod, **planned._compile_kwargs)
    again(x).backward()
    assert model.layer.weight.grad is not None and lowtide.torch.reports()[-1].budget


def test_torchtitan_takes_the_name_for_models_with_flex_attention(monkeypatch):
    def chosen(model, backend):
        if backend not in ("inductor", "aot_eager"):
            raise ValueError(f"no kernel of flex attention in {backend}")
        return backend

    torchtitan = types.ModuleType("torchtitan.distributed.compile")
    torchtitan._maybe_regional_inductor_backend = chosen
    monkeypatch.setitem(sys.modules, torchtitan.__name__, torchtitan)
    for _ in range(2):
        lowtide.torch.set_default(budget="90%")
    assert torchtitan._maybe_regional_inductor_backend(Body(), "lowtide") == "lowtide"
    assert torchtitan._maybe_regional_inductor_backend(Body(), "inductor") == "inductor"
    with pytest.raises(ValueError, match="no kernel"):
        torchtitan._maybe_regional_inductor_backend(Body(), "eager")
    assert torchtitan._maybe_regional_inductor_backend.__wrapped__ is chosen
