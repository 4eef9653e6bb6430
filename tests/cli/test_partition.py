"""`lowtide partition`: figures, JSON, pictures, and what it refuses."""

import json
import os

import pytest
from conftest import SOURCE, lowtide

GPT2 = SOURCE / "examples" / "gpt2-train.graph.json.gz"
PARTITIONERS = ["h_partition", "chain", "repeat", "origin", "multilevel"]


def halves(block):
    return [block["forward"], block["backward"]]


@pytest.mark.parametrize("name", PARTITIONERS)
def test_every_op_is_in_one_block(name):
    found = lowtide("partition", GPT2, "--with", name, "--json").json()
    blocks = found["blocks"]
    assert found["count"] == len(blocks) > 5 and found["partitioner"] == name
    ops = sorted(op for block in blocks for half in halves(block) for op in half["ops"])
    assert ops == list(range(736))
    assert found["levels"] == max(block["level"] for block in blocks)
    assert found["unique"] == len({block["alike"] for block in blocks}) <= len(blocks)
    assert found["top"] == blocks[0]["children"] and blocks[0]["parent"] is None
    assert found["largest"] == max(block["children"] for block in blocks[1:])
    assert found["interface_bytes"] == sum(block["interface_bytes"] for block in blocks)
    for block in blocks[1:]:
        parent = blocks[block["parent"]]
        assert parent["level"] + 1 == block["level"]
        assert any(block["number"] in half["blocks"] for half in halves(parent))


def test_options_change_the_blocks():
    small = lowtide("partition", GPT2, "--json", "--option", "block_size=8", "--option", "top_size=12").json()
    large = lowtide("partition", GPT2, "--json", "--option", "block_size=60").json()
    assert small["largest"] <= 8 < large["largest"] <= 60


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_the_table_fits(columns):
    said = lowtide("partition", GPT2, "--most", "3", env={"COLUMNS": str(columns)})
    assert said.code == 0 and "levels" in said.out
    assert all(len(line) <= columns for line in said.out.splitlines())
    assert "more; --most" in said.out


def test_a_graph_without_phases(chain):
    found = lowtide("partition", chain, "--option", "top_size=2", "--option", "block_size=4", "--json").json()
    assert all(not block["backward"]["ops"] for block in found["blocks"])
    assert sorted(op for block in found["blocks"] for op in block["forward"]["ops"]) == [0, 1, 2, 3]


def test_the_pictures(tmp_path):
    page, dot = tmp_path / "blocks.html", tmp_path / "blocks.dot"
    said = lowtide("partition", GPT2, "--html", page, "--dot", dot)
    assert said.code == 0 and str(page) in said.out and str(dot) in said.out
    text = page.read_text()
    data = json.loads(text.split('<script id="data" type="application/json">')[1].split("</script>")[0])
    blocks = lowtide("partition", GPT2, "--json").json()["blocks"]
    assert [b[7] for b in data["blocks"]] == [b["alike"] for b in blocks]
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    drawn = dot.read_text()
    assert drawn.count("{") == drawn.count("}")
    assert drawn.count("_forward {") == sum(len(b["forward"]["blocks"]) for b in blocks)
    assert drawn.count("_backward {") == sum(len(b["backward"]["blocks"]) for b in blocks)
    assert lowtide("partition", GPT2, "--dot", "-").out == drawn


def test_a_graph_without_ops_is_drawn(tmp_path):
    graph, page = tmp_path / "empty.graph.json", tmp_path / "empty.html"
    graph.write_text('{"format": "lowtide-graph", "version": 1, "name": "", "tensors": [], "ops": [], "outputs": []}')
    for name in PARTITIONERS:
        said = lowtide("partition", graph, "--with", name, "--html", page, "--dot", tmp_path / "empty.dot")
        assert said.code == 0, said.err
        assert "0 ops" in page.read_text()


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["--with", "metis"], "metis"),
        (["--option", "size=3"], "size"),
        (["--option", "block_size"], "write NAME=VALUE"),
        (["--option", "block_size=1"], "block_size"),
        (["--option", "alpha=nan"], "alpha"),
        (["--with", "chain", "--option", "blocks=2.5"], "blocks"),
        (["--json", "--html", "-"], "standard output"),
        (["--html", os.path.join("no", "such", "folder.html")], "folder.html"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    said = lowtide("partition", GPT2, *arguments)
    assert said.code == 2 and words in said.err and not said.out


def test_help_lists_the_partitioners():
    said = lowtide("partition", "--help").out
    assert all(name in said for name in PARTITIONERS)
    assert "alpha" in said and "imbalance" in said
