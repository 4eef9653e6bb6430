"""Packages that only a part of Lowtide needs: what is said without them, and what works all the same."""

import re

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

from lowtide import _optional
from package_support import ROOT, script

WITHOUT = "import sys\nsys.modules['{}'] = None\n"


def test_without_torch_everything_else_works_and_lowtide_torch_says_what_to_install():
    run = script(WITHOUT.format("torch") + """
import lowtide
print(lowtide.plan(lowtide.generate("chain", 20), "100%", work=1000).status)
lowtide.torch
""")
    assert run.returncode == 1 and run.stdout == "optimal\n"
    said = run.stderr.splitlines()[-1]
    assert re.fullmatch(r"ModuleNotFoundError: lowtide\.torch needs (torch\S*), which this Python \d\.\d+ does not have: "
                        r"pip install '\1'", said), run.stderr
    assert run.stderr.count("Traceback") == 1


def test_it_names_the_versions_of_the_extras(monkeypatch):
    named = ["ortools>=9.10; extra == 'engines'", "torch<2.15,>=2.11 ; extra == 'torch'", "torchvision"]
    monkeypatch.setattr(_optional.importlib.metadata, "requires", lambda _: named)
    assert _optional.wanted("torch") == "torch<2.15,>=2.11"
    assert _optional.wanted("ortools") == "ortools>=9.10" and _optional.wanted("numpy") == "numpy"
    with pytest.raises(ModuleNotFoundError, match=r"^a part needs no_such_package, .* pip install 'no_such_package'$"):
        _optional.require("no_such_package", "a part")
    _optional.require("json", "a part")


def test_the_extra_names_the_versions_of_torch_that_are_tried():
    pytest.importorskip("torch")
    from lowtide.torch import compat

    bounds = re.search(r'^torch = \["torch>=(\d+)\.(\d+),<(\d+)\.(\d+)"\]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    oldest, beyond = (int(bounds[1]), int(bounds[2])), (int(bounds[3]), int(bounds[4]))
    assert oldest == compat.OLDEST and beyond == (compat.NEWEST[0], compat.NEWEST[1] + 1)


def test_a_training_step_needs_no_numpy():
    pytest.importorskip("torch")
    run = script(WITHOUT.format("numpy") + """
import torch, lowtide.torch
model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Tanh()) for _ in range(4)))
x = torch.randn(512, 64)
planned = lowtide.torch.optimize(model, (x,), budget="90%")
planned(x).sum().backward()
print(len(lowtide.torch.reports()), model[0][0].weight.grad.shape)
""")
    assert run.returncode == 0 and run.stdout == "1 torch.Size([64, 64])\n", run.stderr
