"""The search for the smallest peak of a graph that is no training step."""

import pytest
from lowtide.frontend.planning.smallest import Limits, smallest

import lowtide


@pytest.fixture(scope="module")
def graph():
    return lowtide.generate("unet", 60, seed=3)


def test_a_smaller_peak_than_the_known_one_is_found_and_never_one_below_the_bound(graph):
    found, floor = smallest(graph, graph.own_peak, "free", ["recompute"], Limits(work=20_000, threads=1))
    assert floor <= found.peak < graph.own_peak
    assert lowtide.verify(graph, found.plan).peak == found.peak
    again, _ = smallest(graph, graph.own_peak, "free", ["recompute"], Limits(work=20_000, threads=2))
    assert again.peak == found.peak


def test_nothing_below_what_is_proven_is_searched_for():
    chain = lowtide.generate("chain", 5)
    best = lowtide.fit(chain, "1000%").floor
    assert smallest(chain, best, "free", ["recompute"], Limits(work=10))[0] is None


def test_the_time_is_divided_and_the_work_is_not():
    assert Limits(6.0, 10, 2, 3).share(0.5) == {"time": 3.0, "work": 10, "seed": 2, "threads": 3}
    assert Limits(work=10).share(0.5)["time"] is None
