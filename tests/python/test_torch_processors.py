"""What is promised of bits holds whatever instructions PyTorch's kernels use: the suites of it, as on lesser processors.

Each run is a process of its own, since kernels are chosen as their libraries start.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from test_torch_matrix import cases

HERE = Path(__file__).resolve().parent
LONG = int(os.environ.get("LOWTIDE_TEST_SCALE", "1")) >= 10
SETTINGS = {"default": {"ONEDNN_MAX_CPU_ISA": "DEFAULT", "ATEN_CPU_CAPABILITY": "default"},
            "AVX2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "ATEN_CPU_CAPABILITY": "avx2"}}
# what the other suites run with the processor's own instructions; in long runs all of it, and with each setting
SUITES = ["matrix", "exactness", "transforms", "trials", "in_place", "random", "bits_of_second_runs"]
SHORT = ["test_torch_trials.py",
         "test_torch_transforms.py::test_parts_under_autocast_are_a_loop_over_slices_of_the_noise",
         "test_torch_exactness.py::test_a_head_in_parts_names_what_it_adds_up",
         "test_torch_exactness.py::test_rows_that_may_have_other_bits_in_parts_are_named",
         next(f"test_torch_matrix.py::test_training_under_a_plan[{one.id}]" for one in cases()
              if (one.values[0]["family"], one.values[0]["technique"]) == ("norms", "recompute"))]
CASES = [(name, [suite]) for name in SETTINGS for suite in (*(f"test_torch_{suite}.py" for suite in SUITES),
                                                            "long/test_torch_exact.py")] if LONG \
    else [("default", SHORT)]


@pytest.mark.parametrize(("name", "suites"), CASES, ids=[f"{name}-{suites[0]}" if LONG else name for name, suites in CASES])
def test_bits_are_as_promised_with_other_instructions(name, suites):
    run = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:logging",
                          *(str(HERE / suite) for suite in suites)],
                         capture_output=True, text=True, env=os.environ | SETTINGS[name] | {"LOWTIDE_CACHE": "off"})
    assert run.returncode == 0, f"with {SETTINGS[name]}:\n{run.stdout[-6000:]}{run.stderr[-2000:]}"
