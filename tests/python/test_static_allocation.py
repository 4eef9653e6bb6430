"""bench/papers/static_allocation.py: no two tensors lie on each other, and what it says of the optimum is true."""

import itertools
import random
import sys

import pytest
from package_support import ROOT

pytest.importorskip("numpy")

sys.path.append(str(ROOT / "bench" / "papers"))

from static_allocation import allocate, lives


def meet(one, other):
    return one[1] < other[2] and other[1] < one[2]


def least(found):
    """By trial: in every order, each as low as those before it allow. The order of an optimum's offsets is among them."""
    best = None
    for order in itertools.permutations(found):
        placed = []
        for life in order:
            beside = [(low, other) for low, other in placed if meet(life, other)]
            low = min(at for at in [0] + [low + other[0] for low, other in beside]
                      if all(at + life[0] <= low or low + other[0] <= at for low, other in beside))
            placed.append((low, life))
        end = max(low + life[0] for low, life in placed)
        best = end if best is None else min(best, end)
    return best


def most(found):
    return max(sum(life[0] for life in found if life[1] <= now < life[2]) for _, now, _ in found)


def random_lives(rng, count, times, longest, sizes):
    begins = [rng.randrange(times) for _ in range(count)]
    return [(rng.choice(sizes), begin, begin + rng.randrange(1, longest)) for begin in begins]


def checked(found):
    answer = allocate(found)
    placed = list(zip(answer.offsets.tolist(), found))
    for (low, life), (other_low, other) in itertools.combinations(placed, 2):
        assert not meet(life, other) or low + life[0] <= other_low or other_low + other[0] <= low
    assert answer.bytes == max(low + life[0] for low, life in placed)
    assert answer.limit == most(found)
    assert answer.above == answer.bytes / answer.limit - 1
    return answer


@pytest.mark.parametrize("sizes", [(1, 2, 3, 4, 5), (1, 2, 3, 5, 8, 1 << 20)])  # of the second most are the small ones
def test_small_cases_against_trial(sizes):
    rng = random.Random(1)
    for _ in range(150):
        found = random_lives(rng, rng.randrange(1, 7), 6, 6, sizes)
        answer = checked(found)
        assert answer.limit <= least(found) == answer.bytes


@pytest.mark.parametrize("seed", range(5))
def test_many(seed):
    answer = checked(random_lives(random.Random(seed), 400, 500, 90, (1, 4, 4096, 1 << 22, 1 << 24)))
    assert answer.above < 0.1


def test_lives_of_a_plan():
    graph = {"tensors": [{"bytes": 4}, {"bytes": 2}, {"bytes": 0}],
             "ops": [{"outputs": [0]}, {"outputs": [1, 2]}]}
    steps = [["compute", 0], ["compute", 1], ["free", 0], ["free", 2], ["compute", 0]]
    assert lives(graph, steps) == [(4, 0, 2), (2, 1, 5), (4, 4, 5)]
    assert allocate(lives(graph, steps)).bytes == 6
    with pytest.raises(ValueError, match="offload"):
        lives(graph, [["offload", 0]])


def test_nothing():
    assert allocate([]).bytes == 0 and allocate([]).above == 0
