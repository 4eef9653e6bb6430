"""Blocks of ops as Python sees them. Which are equal, tests/graph/blocks_test.cpp proves."""

import random

import pytest

import lowtide


def layers(count, kinds=("a", "b", "c"), first=0):
    """Ops in a row, `count` times those of `kinds`, between two that stand alone."""
    kinds = ["first", *(kind for _ in range(count) for kind in kinds), "last"]
    return lowtide.Graph.from_dict({
        "format": "lowtide-graph", "version": 1, "name": "layers",
        "tensors": [{"name": f"t{first + i}", "bytes": 4} for i in range(len(kinds) + 1)],
        "ops": [{"name": f"op{first + i}", "kind": kind, "time": i, "inputs": [i], "outputs": [i + 1]}
                for i, kind in enumerate(kinds)],
        "outputs": [len(kinds)],
    })


def test_equal_blocks_have_one_hash_in_any_graph_and_order():
    graph, other = layers(3), layers(2, first=100)
    hashes = [graph.block_hash([i, i + 1, i + 2]) for i in (1, 4, 7)]
    assert len(set(hashes)) == 1 and len(hashes[0]) == 32 and int(hashes[0], 16) >= 0
    assert graph.block_hash((3, 1, 2)) == other.block_hash(range(4, 7)) == hashes[0]
    assert graph.block_hash([2, 3, 4]) != hashes[0]
    assert graph.block_hash([]) == other.block_hash([])


@pytest.mark.parametrize("ops, what", [
    ([0, 11], "ops: 11: is no op; the graph has 11"),
    ([-1], "ops: -1: is no op; the graph has 11"),
    ([4, 1, 4], "ops: 4: is listed twice"),
])
def test_ops_that_are_no_block_are_refused(ops, what):
    with pytest.raises(lowtide.Error) as error:
        layers(3).block_hash(ops)
    assert str(error.value) == what


def test_wrong_indices_are_refused():
    for ops in ([0.5], ["0"], 3, None):
        with pytest.raises(TypeError):
            layers(3).block_hash(ops)


def test_repeated_blocks_are_found():
    graph = layers(5)
    (block,) = graph.repeated_blocks()
    assert block.places == [[first + i for i in (order[0], order[1], order[2])]
                            for first in (1, 4, 7, 10, 13) for order in [[op - 1 for op in block.places[0]]]]
    assert sorted(block.places[0]) == [1, 2, 3]
    assert block.time == sum(range(1, 16))
    assert all(graph.block_hash(place) == block.hash for place in block.places)
    assert repr(block) == "<lowtide.RepeatedBlock: 3 ops, 5 times>"
    assert graph.repeated_blocks(most=0) == [] and graph.repeated_blocks(least_share=0.95) == []


def test_the_layers_of_a_transformer_are_disjoint_and_equal():
    graph = lowtide.generate("transformer", 400, seed=1)
    blocks, seen = graph.repeated_blocks(most=2), []
    assert len(blocks) == 2
    for block in blocks:
        assert len({graph.block_hash(random.sample(place, len(place))) for place in block.places}) == 1
        seen += [op for place in block.places for op in place]
    assert len(seen) == len(set(seen)) > 0.8 * graph.num_ops


def test_settings_of_repeated_blocks_are_checked():
    with pytest.raises(lowtide.Error, match="most: is negative"):
        layers(2).repeated_blocks(most=-1)
    for share in (-0.1, 1.5, float("nan")):
        with pytest.raises(lowtide.Error, match="least_share: is no share from 0 to 1"):
            layers(2).repeated_blocks(least_share=share)
