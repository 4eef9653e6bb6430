"""The page of PyTorch's versions has the table of what the runs have written, and speaks of the versions that are supported."""

import ast
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import torch_versions

RESULTS = """<testsuites><testsuite>
<testcase name="test_a[net-f32]"/><testcase name="test_a[net-autocast bf16]"/><testcase name="test_b[f16]"><failure/></testcase>
<testcase name="test_c"><skipped message="torch 2.11.0 lacks torch.compile(recompile_limit=)"/></testcase>
<testcase name="test_d"><skipped message="no GPU is here"/></testcase></testsuite></testsuites>"""


def test_the_table_is_that_of_the_rows():
    page = torch_versions.PAGE.read_text()
    assert torch_versions.with_table(page, torch_versions.table(torch_versions.rows())) == page


def test_each_supported_version_was_tried():
    tree = ast.parse((ROOT / "python/lowtide/torch/compat/versions.py").read_text())
    (_, oldest), (_, newest) = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign)
                                    and ast.unparse(node.targets[0]) == "(OLDEST, NEWEST)")
    tried = {int(row["torch"].split(".")[1]) for row in torch_versions.rows()}
    assert tried == set(range(oldest, newest + 1))
    assert f"PyTorch 2.{oldest} to 2.{newest}" in torch_versions.PAGE.read_text()


def test_results_of_suites_with_torch_are_found(tmp_path):
    for name in ("release.python.test_torch_step", "release.python.test_capture", "release.python.test_bench_magis",
                 "release.cli.test_plan", "ctest"):
        (tmp_path / f"{name}.xml").touch()
    assert [path.stem.rpartition("_")[2] for path in torch_versions.of_torch(tmp_path)] == ["capture", "step"]


def test_a_row_is_read_from_results(tmp_path, monkeypatch):
    (tmp_path / "a.xml").write_text(RESULTS)
    found = torch_versions.found([tmp_path / "a.xml"])
    assert found == {"passed": 2, "failed": 1, "skipped": 2, "number_types": "bfloat16 float32",
                     "lacks": "torch.compile(recompile_limit=)"}
    row = {"torch": "2.11.0", "python": "3.11.7", "run": "CPU", "suites": 1, "date": "2026-11-26"} | found
    (tmp_path / "version.json").write_text(json.dumps(row))
    monkeypatch.setattr(torch_versions, "ROWS", tmp_path / "rows.csv")
    monkeypatch.setattr(torch_versions, "PAGE", tmp_path / "page.md")
    (tmp_path / "page.md").write_text("Tried:\n<!-- tools/torch_versions.py makes this table -->\n<!-- end -->\n")
    for _ in range(2):  # a second run takes the place of the first
        torch_versions.write([tmp_path])
    lines = (tmp_path / "page.md").read_text().splitlines()
    assert lines[4:] == ["| 2.11.0 | 3.11.7 | CPU | 1 | 2 | 2 | 1 | bfloat16, float32 | torch.compile(recompile_limit=) |", "<!-- end -->"]
