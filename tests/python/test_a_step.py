"""docs/reference/a-step.md names the files that a step goes through, in their order."""

import os
import re
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import lowtide.torch
from torch import nn

import lowtide

PAGE = Path(os.environ.get("LOWTIDE_SOURCE_DIR", Path(__file__).parents[2])) / "docs/reference/a-step.md"
PACKAGE = os.path.dirname(os.path.realpath(lowtide.__file__))
ROW = re.compile(r"^\| (\d+) \| `([\w/.]+)` \| `([\w.]+)` \|", re.MULTILINE)
MOST_FILES = 24


def named():
    """File and function of each row."""
    if not PAGE.exists():
        pytest.skip("the documentation is not here")
    return [(file, function) for _, file, function in ROW.findall(PAGE.read_text())]


def entered(run):
    """The functions of the package that are called, by file and name, with the place of the first call."""
    first, seen = {}, set()

    def note(frame, event, _):
        if event == "call" and frame.f_code not in seen:
            seen.add(frame.f_code)
            path = os.path.realpath(frame.f_code.co_filename)
            if path.startswith(PACKAGE + os.sep):
                first.setdefault((os.path.relpath(path, PACKAGE), frame.f_code.co_name), len(first))

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return first


def test_the_page_names_the_way_of_a_step(tmp_path, monkeypatch):
    monkeypatch.setenv("LOWTIDE_CACHE", "off")
    torch._dynamo.reset()
    rows = named()
    assert len({file for file, _ in rows}) <= MOST_FILES < len(rows)
    model = nn.Sequential(*(nn.Sequential(nn.Linear(32, 96), nn.GELU(), nn.Linear(96, 32)) for _ in range(4)))
    step = entered(lambda: lowtide.torch.optimize(model, torch.randn(64, 32), budget="70%", work=20_000, time=None,
                                                  costs="cpu"))
    places = [step.get((file, function.rpartition(".")[2])) for file, function in rows]
    missing = [row for row, place in zip(rows, places) if place is None]
    assert not missing, f"the step does not enter {missing}"
    assert places == sorted(places), "the rows are in another order than the step"
    text = PAGE.read_text()
    rooms = {os.path.dirname(file) for file, _ in step if file.startswith(("torch/", "frontend/"))}
    for room in rooms - {os.path.dirname(file) for file, _ in rows} - {"torch", "frontend"}:
        assert f"`{room.split('/')[-1]}`" in text, f"the step enters room {room}, which the page does not name"
