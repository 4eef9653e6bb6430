"""Packages that only a part of Lowtide needs: what is said without them, and what works all the same."""

import re

import pytest

lowtide = pytest.importorskip("lowtide", reason="tools/wheel installs it")

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
    assert "lowtide.torch needs PyTorch, and none is installed here" in said and "pip install 'torch>=" in said, run.stderr
    assert run.stderr.count("Traceback") == 1


def test_the_extra_names_the_versions_of_torch_that_are_tried():
    pytest.importorskip("torch")
    from lowtide.torch.compat import versions

    bounds = re.search(r'^torch = \["torch>=(\d+)\.(\d+),<(\d+)\.(\d+)"\]', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    oldest, beyond = (int(bounds[1]), int(bounds[2])), (int(bounds[3]), int(bounds[4]))
    assert oldest == versions.OLDEST and beyond == (versions.NEWEST[0], versions.NEWEST[1] + 1)


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
