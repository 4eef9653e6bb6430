"""What several ranks agree upon: equal values on all, and every failure of one is one of all.  Threads stand for ranks."""

import contextlib
import random
import threading
import time

import pytest

torch = pytest.importorskip("torch")
if not torch.distributed.is_available():
    pytest.skip("this torch has no torch.distributed", allow_module_level=True)

import torch.distributed as dist
from lowtide.frontend.errors import BudgetError, CaptureError
from lowtide.torch.graphs.group import Group
from lowtide.torch.ranks.agreement import Agreement
from lowtide.torch.ranks.failure import RankError
from lowtide.torch.ranks.one_plan import OnePlan
from lowtide.torch.settings import Settings

LIMIT = 60  # seconds after which a rank hangs


class Killed(BaseException):
    """Ends a rank without a word to the others."""


def together(size, function, seconds=30.0, store=None):
    """What `function` returns or raises on each of so many ranks."""
    store, results = store or dist.HashStore(), [None] * size

    def run(rank):
        agreement = Agreement(store, rank, range(size), seconds)
        try:
            results[rank] = function(agreement)
        except BaseException as error:
            results[rank] = error
            if not isinstance(error, Killed):
                agreement.fail(error)

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive(), "a rank hangs"
    return results


def test_all_get_the_values_of_all():
    assert together(4, lambda ranks: [ranks.exchange("rank", ranks.rank), ranks.exchange("double", 2 * ranks.rank)]) \
        == [[[0, 1, 2, 3], [0, 2, 4, 6]]] * 4


def test_a_value_may_be_large_and_a_round_leaves_no_value_of_the_one_before():
    store = dist.HashStore()
    large = random.Random(1).randbytes(9 << 20)  # which does not compress
    assert together(2, lambda ranks: [len(ranks.exchange("bytes", large)[1])] + ranks.exchange("end"), store=store) \
        == [[len(large), None, None]] * 2
    assert not store.check(["1/1/0"]) and not store.check(["1/1/0/0"]) and not store.check(["1/1/result/2"])
    assert store.check(["1/2/0"])


def test_the_first_rank_decides_for_all():
    assert together(3, lambda ranks: ranks.first("plan", lambda: ranks.rank + 5)) == [5, 5, 5]


@pytest.mark.parametrize(("raised", "kind", "words"), [
    (ValueError("too few"), RankError, "rank 1 failed with ValueError: too few"),
    (KeyboardInterrupt(), RankError, "rank 1 was cancelled"),
    (BudgetError("no plan", 5, 7, 6), BudgetError, "rank 1: no plan")])
def test_an_exception_of_one_is_one_of_all(raised, kind, words):
    def run(ranks):
        ranks.exchange("a beginning")
        if ranks.rank == 1:
            raise raised
        ranks.exchange("an end")

    first, own, other = together(3, run)
    assert own is raised
    for error in (first, other):
        assert type(error) is kind and str(error) == words
        assert getattr(error, "floor", 5) == 5 and getattr(error, "ranks", (1,)) == (1,)


def test_a_refusal_is_one_of_all_and_they_go_on():
    def run(ranks):
        refused = CaptureError("no") if ranks.rank == 2 else None
        try:
            ranks.exchange("graphs", error=refused)
        except CaptureError as error:
            return str(error), ranks.exchange("more", ranks.rank), ranks.over
        return None

    first, second, own = together(3, run)
    assert first == second == ("rank 2: no", [0, 1, 2], None) and own == ("no", [0, 1, 2], None)


def test_an_error_of_the_first_while_it_decides_is_one_of_all():
    def decide():
        raise BudgetError("no plan", 5, None)

    errors = together(3, lambda ranks: ranks.first("plan", decide))
    assert [type(e) for e in errors] == [BudgetError] * 3
    assert [str(e) for e in errors] == ["no plan", "rank 0: no plan", "rank 0: no plan"]


def test_ranks_at_different_places_are_named():
    errors = together(2, lambda ranks: ranks.exchange("one place" if ranks.rank else "another"))
    assert {str(e).split(":")[0] for e in errors} == {"rank 1 has come to one place, and rank 0 to another"}


def test_a_missing_rank_is_named_within_the_limit():
    def run(ranks):
        if ranks.rank == 1:
            raise Killed
        ranks.exchange("graphs")

    first, _, other = together(3, run, seconds=0.2)
    for error in (first, other):
        assert isinstance(error, RankError) and error.ranks == (1,)
        assert str(error).startswith("rank 1 did not come to graphs within 0.2 s")


def test_the_time_of_a_search_is_part_of_the_limit_that_is_named():
    def run(ranks):
        if ranks.rank == 1:
            raise Killed
        ranks.exchange("plans", more=0.3)

    error, _ = together(2, run, seconds=0.2)
    assert str(error).startswith("rank 1 did not come to plans within 0.5 s")


@pytest.mark.parametrize("seconds", [3.0, None])
def test_a_plan_made_again_has_room_for_its_searches(seconds):
    asked = []

    class Told(Agreement):
        def exchange(self, stage, value=None, *, error=None, more=0):
            asked.append(more)
            return super().exchange(stage, value, error=error, more=more)

    group = Group(planning=lambda: contextlib.nullcontext(OnePlan(Told(dist.HashStore(), 0, [0], 30.0))))
    with group.planning_again(Settings.of({"budget": "50%", "time": seconds, "work": 1000})):
        group.ranks.first("the plan of a graph", lambda: 1)
    assert len(asked) == 1 and (asked[0] >= seconds if seconds else asked[0] == 0)


def test_the_missing_first_rank_is_named_as_well():
    def run(ranks):
        if ranks.rank == 0:
            raise Killed
        ranks.exchange("graphs")

    _, error = together(2, run, seconds=0.2)
    assert isinstance(error, RankError) and error.ranks == (0,) and "rank 0 did not come" in str(error)


def test_a_cancel_while_the_first_rank_waits_is_one_of_all(monkeypatch):
    waiting = threading.Event()

    def run(ranks):
        if ranks.rank == 0:
            def interrupted(_):
                waiting.set()
                raise KeyboardInterrupt

            monkeypatch.setattr("lowtide.torch.ranks.agreement.time", type("_", (), {"sleep": interrupted, "monotonic": time.monotonic}))
        else:
            assert waiting.wait(LIMIT)
            monkeypatch.undo()
        ranks.exchange("graphs")

    first, other = together(2, run)
    assert isinstance(first, KeyboardInterrupt) and str(other) == "rank 0 was cancelled"


# ---- the number of an agreement


def refused(store, rank, seconds=0.1):
    """The names of the ranks that a rank finds missing which asks alone."""
    with pytest.raises(RankError) as error, Agreement(store, rank, range(3), seconds) as ranks:
        ranks.exchange("graphs", "alone")
    return error.value.ranks


@pytest.mark.parametrize("alone", [[1], [0], [2, 2, 1], [0, 0, 1], [1, 0, 2, 0]])
def test_ranks_that_have_asked_alone_are_in_step_at_the_next_call(alone):
    store = dist.HashStore()
    for rank in alone:
        assert refused(store, rank) == ((0,) if rank else (1, 2))
    for _ in range(2):
        assert together(3, lambda ranks: [ranks.exchange("graphs", ranks.rank), ranks.exchange("end")], store=store) \
            == [[[0, 1, 2], [None] * 3]] * 3


def test_a_rank_that_asks_again_finds_the_others_still_waiting():
    store, asked = dist.HashStore(), threading.Event()

    def run(ranks):
        if ranks.rank == 1:
            refused(store, 1)
            asked.set()
        assert asked.wait(LIMIT)
        return ranks.exchange("graphs", ranks.rank)

    assert together(3, run, store=store) == [[0, 1, 2]] * 3


def test_a_rank_that_comes_late_learns_of_a_refusal_that_ended_the_call_and_comes_in_time_for_the_next():
    store, over = dist.HashStore(), threading.Event()

    def run(ranks):
        def asked(error):
            with Agreement(store, ranks.rank, range(3), 30.0) as again:
                again.exchange("graphs", ranks.rank, error=error)
                return again.exchange("end", ranks.rank)

        if ranks.rank == 2:
            assert over.wait(LIMIT)
        try:
            asked(CaptureError("no") if ranks.rank == 1 else None)
        except CaptureError as error:
            if ranks.rank == 0:
                over.set()
            return str(error), asked(None)

    assert together(3, run, store=store) == [("rank 1: no", [0, 1, 2]), ("no", [0, 1, 2]), ("rank 1: no", [0, 1, 2])]


def test_a_failure_of_a_rank_that_nobody_waits_for_is_none_of_the_next_call():
    store = dist.HashStore()
    with pytest.raises(ValueError, match="mine"), Agreement(store, 1, range(3), 0.1):
        raise ValueError("mine")
    assert together(3, lambda ranks: ranks.exchange("graphs", ranks.rank), store=store) == [[0, 1, 2]] * 3


@pytest.mark.parametrize("seed", range(25))
def test_no_rank_hangs_whatever_becomes_of_one(seed):
    """A random rank fails, refuses, vanishes or is late at a random exchange: all end, with the same result but for that rank."""
    draw = random.Random(seed)
    size, rounds = draw.choice([2, 4]), 4
    who, when, what = draw.randrange(size), draw.randrange(rounds), draw.choice(["raise", "cancel", "refuse", "vanish", "late"])

    def run(ranks):
        seen = []
        for i in range(rounds):
            error = None
            if ranks.rank == who and i == when:
                if what in ("raise", "cancel", "vanish"):
                    raise {"raise": ValueError, "cancel": KeyboardInterrupt, "vanish": Killed}[what]
                if what == "late":
                    time.sleep(0.05)
                error = CaptureError("refused") if what == "refuse" else None
            try:
                seen.append(ranks.exchange(f"exchange {i}", i, error=error))
            except CaptureError:
                seen.append("refused")
        return seen

    results = together(size, run, seconds=0.2 if what == "vanish" else 30.0)
    others = [result for rank, result in enumerate(results) if rank != who]
    if what in ("late", "refuse"):
        right = [[i] * size for i in range(rounds)]
        assert results == [[*right[:when], "refused" if what == "refuse" else right[when], *right[when + 1:]]] * size
    else:
        assert all(isinstance(error, RankError) and error.ranks == (who,) for error in others), results
