"""Networks that the package onnx holds without their weights: known peaks, and arenas of that size."""

from pathlib import Path

import pytest

onnx = pytest.importorskip("onnx")

import lowtide.onnx

LIGHT = Path(onnx.__file__).parent / "backend/test/data/light"
# MiB without weights: as given, in place, in any order, with both, with recomputation
PEAKS = {"resnet50": (9.76, 7.46, 9.76, 7.46, 7.46), "squeezenet": (6.59, 4.32, 6.59, 4.32, 4.32),
         "inception_v2": (6.70, 4.40, 6.70, 4.40, 4.40), "shufflenet": (3.54, 3.54, 3.33, 3.33, 3.25)}
PROVEN = {"resnet50": "order, in place", "squeezenet": "recomputed", "inception_v2": "recomputed", "shufflenet": "order, in place"}


@pytest.mark.parametrize("name", PEAKS)
def test_peaks_and_arenas(name):
    path = LIGHT / f"light_{name}.onnx"
    if not path.exists():
        pytest.skip(f"this version of onnx has no {path.name}")
    table = lowtide.onnx.compare(lowtide.onnx.load(path), time=None, work=30_000, threads=1)
    assert [round(row.peak / 2**20, 2) for row in table.rows] == pytest.approx(PEAKS[name], abs=0.011)
    assert table.row(PROVEN[name]).proven
    assert table.arena.size <= 1.02 * table.row("order, in place").peak
    assert table.arena.size <= min(table.arena.greedy.values()) and table.arena.size < table.arena.greedy["shared_objects"]


def test_offsets_are_lower_than_those_of_greedy_rules():
    """Of DenseNet-121 the largest first comes to more than is live at once."""
    path = LIGHT / "light_densenet121.onnx"
    if not path.exists():
        pytest.skip(f"this version of onnx has no {path.name}")
    model = lowtide.onnx.load(path)
    arena = model.place(lowtide.own_plan(model.graph), work=100_000)
    assert arena.size <= 1.02 * arena.peak < min(arena.greedy.values())
