"""The committed graphs of examples/."""

from pathlib import Path

import pytest
from graph_rules import check, kinds, names, with_defaults

import lowtide

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["resnet50", "gpt2", "unet", "vit"])
def test_committed_examples_are_sound(name):
    path = EXAMPLES / f"{name}-train.graph.json.gz"
    graph = with_defaults(lowtide.Graph.load(path).to_dict())
    check(graph)
    assert path.stat().st_size < 1_000_000
    assert len(names(graph, "gradient")) == len(names(graph, "parameter"))
    assert not {k for k in kinds(graph) if "bernoulli" in k or k in ("aten.bmm", "aten._softmax", "aten.dropout")}


def test_the_page_says_what_the_examples_hold():
    """The table in examples/README.md: ops, bytes of inputs and parameters, baseline peak."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")]
            for line in (EXAMPLES / "README.md").read_text().splitlines() if line.startswith("|")]
    said = {row[0]: row[-3:] for row in rows if (EXAMPLES / f"{row[0]}-train.graph.json.gz").exists()}
    assert len(said) == len(list(EXAMPLES.glob("*.graph.json.gz")))
    for name, cells in said.items():
        graph = lowtide.Graph.load(EXAMPLES / f"{name}-train.graph.json.gz")
        assert cells == [str(graph.num_ops), f"{graph.input_bytes / 1e9:.2f} GB", f"{graph.own_peak / 1e9:.1f} GB"]
