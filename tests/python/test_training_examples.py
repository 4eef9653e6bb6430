"""The training scripts of examples/, a few steps of each."""

import os
import re
import subprocess
import sys

import pytest
from package_support import ROOT

pytest.importorskip("torch")

LINE = re.compile(r"step +\d+  loss [\d.]+  peak ([\d.]+) of ([\d.]+) MB")


@pytest.mark.parametrize("name", ["train_gpt", "train_unet"])
def test_a_script_trains_within_its_budget_to_the_same_bits(name):
    run = subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", "--steps", "4", "--every", "2", "--compare"],
                         capture_output=True, text=True, timeout=600, env=os.environ | {"LOWTIDE_CACHE": "off"})
    assert run.returncode == 0, run.stderr
    assert "equal to the last bit" in run.stdout and "NOT" not in run.stdout
    lines = LINE.findall(run.stdout)
    assert len(lines) == 2 and all(float(peak) <= float(budget) for peak, budget in lines), run.stdout


@pytest.mark.parametrize("name", ["train_gpt", "train_unet"])
def test_a_budget_that_is_too_small_ends_in_one_line(name):
    run = subprocess.run([sys.executable, ROOT / "examples" / f"{name}.py", "--budget", "1MB", "--steps", "2"],
                         capture_output=True, text=True, timeout=600, env=os.environ | {"LOWTIDE_CACHE": "off"})
    assert run.returncode == 1 and "Traceback" not in run.stderr
    assert "no plan keeps this step within" in run.stderr and "the smallest found takes" in run.stderr
