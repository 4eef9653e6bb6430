"""What users say about techniques, and what is said of what is wrong."""

import pytest
from lowtide.frontend.techniques import TECHNIQUES, host_budget_of, link_of, names_offload, techniques_of

DEFAULT = {"recompute", "in_place", "offload"}


@pytest.mark.parametrize(("said", "meant"), [
    (None, DEFAULT), ("default", DEFAULT), ([], DEFAULT), ("all", TECHNIQUES), (["recompute", " All "], TECHNIQUES),
    ("recompute", {"recompute"}), ("recompute,in_place", {"recompute", "in_place"}), (("split",), {"split"}),
    ("offload", {"offload"}), (["recompute", "Offload"], {"recompute", "offload"}), ("default,split", {*DEFAULT, "split"}),
    (iter(["hoist", "substitute"]), {"hoist", "substitute"}), ("split, hoist", {"split", "hoist"})])
def test_techniques_are_those_that_were_named(said, meant):
    assert techniques_of(said) == meant


@pytest.mark.parametrize(("said", "error", "words"), [
    (3, TypeError, "techniques must be names .* or None, not 3"),
    ("nonsense", ValueError, 'techniques "nonsense": "nonsense" is not known'),
    (["recompute", "nonsense"], ValueError, "nonsense")])
def test_other_techniques_are_refused(said, error, words):
    with pytest.raises(error, match=words):
        techniques_of(said)


def test_copies_may_be_meant_for_a_cpu_too():
    assert [names_offload(said) for said in ("offload", ["recompute", "OFFLOAD"], "default", "all", None)] == [
        True, True, False, False, False]


@pytest.mark.parametrize(("said", "error", "words"), [
    (25, TypeError, "link must be bytes a second and a latency .* not 25"), ("fast", ValueError, "does not say bytes a second")])
def test_other_links_are_refused(said, error, words):
    with pytest.raises(error, match=words):
        link_of(said)
    assert link_of(None) is None and link_of("1GB/s,1us") == "1GB/s,1us"


@pytest.mark.parametrize(("said", "error"), [
    ("much", ValueError), ("50%", ValueError), ("-5", ValueError), (0.5, TypeError), (True, TypeError), (None, TypeError)])
def test_other_host_budgets_are_refused(said, error):
    with pytest.raises(error, match=f"host_budget is bytes on the host .* not {said!r}"):
        host_budget_of(said)
    assert [host_budget_of(given) for given in (5, "1KiB", "2 MB")] == [5, 1024, 2_000_000]
