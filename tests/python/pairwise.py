"""Few cases in which every two values of any two factors meet."""

import itertools
import random


def every(factors, allowed=lambda **case: True):
    """All cases, dicts of a value for each of `factors` (name -> values)."""
    made = (dict(zip(factors, values, strict=True)) for values in itertools.product(*factors.values()))
    return [case for case in made if allowed(**case)]


def pairwise(factors, allowed=lambda **case: True, seed=0):
    """Cases, dicts of a value for each of `factors` (name -> values), so that every pair of values that is in any allowed case
    is in one of these.  Greedy: the next is the one with the most pairs that are missing, the first such in an order drawn by the
    seed."""
    left = [(case, pairs(case)) for case in every(factors, allowed)]
    random.Random(seed).shuffle(left)
    missing = set().union(*(met for _, met in left))
    made = []
    while missing:
        case, met = max(left, key=lambda entry: len(entry[1] & missing))
        made.append(case)
        missing -= met
    return made


def pairs(case):
    """The pairs of values in a case."""
    return set(itertools.combinations(case.items(), 2))
