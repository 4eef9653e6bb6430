"""What type checkers tell a user of the package: nothing of a right program, and the line of each wrong name."""
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

for name in ("mypy", "torch"):
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"no {name}", allow_module_level=True)

ROOT = Path(os.environ["LOWTIDE_SOURCE_DIR"])
if not (ROOT / "python/lowtide/_core.pyi").exists():
    pytest.skip("the stub of the bindings comes with make wheel", allow_module_level=True)

RIGHT = """
import lowtide
import lowtide.torch
import torch
from lowtide.frontend.techniques import Techniques

model, x = torch.nn.Linear(2, 2), torch.zeros(2, 2)
adamw = torch.optim.AdamW(model.parameters())
chosen: Techniques = ["recompute", "offload"]

lowtide.torch.optimize(model, x, budget="8GiB", techniques=["recompute", "in_place"], time=None, order="given")
lowtide.torch.optimize(model, {"input": x}, budget=10**9, techniques="recompute,in_place", optimizer="adamw")
lowtide.torch.optimize(model, budget="60%", solver="hiremate", solver_options={"top": ["sums", "milp"]}, reserve="1GiB")
lowtide.torch.set_default(budget="8GiB", techniques="all", fallback="error")
lowtide.torch.optimize(model, x)
step = lowtide.torch.step(model, [adamw], x, budget="60%", techniques=chosen, state_home="host", loss_scale=2.0)
peak: int = step.report.peak
found = lowtide.torch.explain(model, x, techniques={"split"}, dtype="bf16", optimizer=torch.optim.SGD, show=False)
floor: int = found.curve.floor
smallest = found.smallest.peak if found.smallest else None
graph: lowtide.Graph = lowtide.torch.capture(model, x, update=[adamw, lambda module: torch.optim.SGD(module.parameters())])
outcome = lowtide.plan(graph, "60%", techniques=["recompute"], time=1)
steps = outcome.plan.steps if outcome.plan else []
"""

WRONG = [
    'lowtide.torch.optimize(model, x, budget="8GiB", techniqes="recompute")',
    'lowtide.torch.optimize(model, x, budget="8GiB", techniques=["recompute", "in place"])',
    'lowtide.torch.optimize(model, x, budget="8GiB", order="fixed")',
    'lowtide.torch.optimize(model, x, budget="8GiB", fallback="warning")',
    "lowtide.torch.optimize(model, x, budget=0.6)",
    'lowtide.torch.set_default(budget="8GiB", optimizer="adamw")',
    'lowtide.torch.step(model, adamw, x, budget="8GiB", fallback="warn")',
    'lowtide.torch.step(model, "adamw", x, budget="8GiB")',
    'lowtide.torch.explain(model, x, techniques=["all", "recomputing"])',
    'lowtide.torch.capture(model, x, dtype="f16")',
    'lowtide.torch.capture(model, x, update=3)',
    'lowtide.plan(graph, "60%", technique="recompute")',
    "lowtide.plam(graph)",
    "outcome.plan.steps",
]


def test_a_type_checker_finds_wrong_names_and_nothing_else(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(RIGHT + "\n".join(WRONG) + "\n")
    check = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--no-error-summary", program]
    said = subprocess.run(check, cwd=ROOT, capture_output=True, text=True).stdout
    # mypy may have kept what it says of the same text from an earlier run, whose folder it then names
    found = {int(line.split(":")[1]) for line in said.splitlines()
             if line.split(":")[0].endswith(program.name) and ": error: " in line}
    first = RIGHT.count("\n") + 1
    missed = [text for line, text in enumerate(WRONG, first) if line not in found]
    assert not missed, said
    assert min(found) == first, said
