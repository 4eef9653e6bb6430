"""The training scripts of examples/, a few steps of each, as their commands run: in this process, which has imported torch."""

import re
import runpy
import sys

import pytest
from package_support import ROOT

torch = pytest.importorskip("torch")

LINE = re.compile(r"step +\d+  loss [\d.]+  peak ([\d.]+) of ([\d.]+) MB")


@pytest.fixture
def script(monkeypatch):
    def run(name, *arguments):
        torch._dynamo.reset()
        monkeypatch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / "examples" / f"{name}.py"), run_name="__main__")

    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    return run


@pytest.mark.parametrize("name", ["train_gpt", "train_unet"])
def test_a_script_trains_within_its_budget_to_the_same_bits(name, script, capsys):
    script(name, "--steps", "4", "--every", "2", "--compare")
    said = capsys.readouterr().out
    assert "equal to the last bit" in said and "NOT" not in said
    lines = LINE.findall(said)
    assert len(lines) == 2 and all(float(peak) <= float(budget) for peak, budget in lines), said


@pytest.mark.parametrize("name", ["train_gpt", "train_unet"])
def test_a_budget_that_is_too_small_ends_in_one_line(name, script):
    with pytest.raises(SystemExit, match="no plan keeps this step within.*the smallest found takes"):
        script(name, "--budget", "1MB", "--steps", "2")
