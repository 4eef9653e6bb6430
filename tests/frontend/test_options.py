"""What a user may ask of a planner, and what is said of what is wrong."""

import math

import pytest
from lowtide.frontend.options import Options, SolverOptions, budget_of, check_order, link_text, seconds, whole
from lowtide.frontend.roofline import DEVICES
from lowtide.frontend.techniques import TECHNIQUES

LINK = "25GB/s,10us"


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"budget": 1.5}, TypeError, r"budget must be an int \(bytes\) or a str"),
    ({"budget": True}, TypeError, "budget must be an int"),
    ({"budget": None}, ValueError, "budget: is missing"),
    ({"budget": -5}, ValueError, "is negative"),
    ({"budget": "8 parsecs"}, ValueError, "parsecs"),
    ({"order": "any"}, ValueError, "order must be 'free' or 'given', not 'any'"),
    ({"order": None}, ValueError, "'free' or 'given', not None"),
    ({"time": "5"}, TypeError, "time must be a number of seconds or None, not '5'"),
    ({"time": True}, TypeError, "time must be a number"),
    ({"time": -1}, ValueError, "time must be a number of seconds, 0 or more, not -1"),
    ({"time": math.nan}, ValueError, "0 or more, not nan"),
    ({"time": math.inf}, ValueError, "0 or more, not inf"),
    ({"work": -5}, ValueError, "work must be a whole number from 0"),
    ({"work": 2**63}, ValueError, "work must be a whole number from 0"),
    ({"work": False}, TypeError, "work must be a whole number, not False"),
    ({"seed": 1.5}, TypeError, "seed must be a whole number, not 1.5"),
    ({"seed": -1}, ValueError, "seed must be a whole number from 0"),
    ({"threads": 4097}, ValueError, "threads must be a whole number from 0 to 4096, not 4097"),
    ({"progress": 3}, TypeError, "progress must be callable, not 3"),
    ({"solver": 3}, TypeError, "solver must be the name of one, not 3"),
    ({"solver": "hiremat"}, ValueError, "none of that name"),
    ({"solver_options": ["peaks"]}, TypeError, "solver_options must be a dict of options by name"),
    ({"solver_options": {3: "peaks"}}, TypeError, "solver_options must be a dict of options by name"),
    ({"solver": "hiremate", "solver_options": {"peeks": 3}}, ValueError, "peeks"),
    ({"solver": "hiremate", "solver_options": {"peaks": 0}}, ValueError, "peaks"),
    ({"solver": "hiremate", "solver_options": {"peaks": None}}, TypeError, "peaks must be a name, a number or a list of these"),
    ({"solver": "hiremate", "solver_options": {"polish": True}}, TypeError, "polish must be"),
    ({"techniques": "recompute", "link": LINK}, ValueError, "link needs offloading"),
    ({"techniques": "recompute", "host_budget": "1GiB"}, ValueError, "host_budget needs offloading"),
    ({"techniques": 3}, TypeError, "techniques must be names .* or None, not 3"),
    ({"link": "fast"}, ValueError, 'link "fast": does not say bytes a second'),
    ({"host_budget": "50%"}, ValueError, "host_budget is bytes on the host"),
])
def test_errors_name_the_option(options, error, words):
    with pytest.raises(error, match=words):
        Options(**{"budget": "8GiB"} | options)


def test_values_come_as_they_are_written():
    made = Options(8, time=2, work=5, seed=3, host_budget="1KiB")
    assert (made.budget, made.time, made.work, made.seed, made.host_budget) == (8, 2.0, 5, 3, 1024)
    assert type(made.time) is float and Options("act:50%", time=None).time is None
    assert budget_of("60%") == "60%" and seconds(0) == 0.0 and whole("n", 3, 3, 3) == 3 and check_order("given") is None
    assert link_text(10, 3) == "10B/s,3ns"


def test_options_of_a_solver_are_texts_in_one_order():
    asked = {"partition": ["chain", "repeat"], "peaks": 2}
    made = Options("60%", solver="hiremate", solver_options=asked).solver_options
    assert made == (("partition", "chain,repeat"), ("peaks", "2")) and isinstance(made, SolverOptions)
    assert Options("60%", solver="hiremate", solver_options=made).solver_options is made
    turned = dict(reversed(asked.items()))
    assert Options("60%", solver="hiremate", solver_options=turned).solver_options == made
    assert Options("60%").solver_options == ()


def test_a_plan_depends_on_what_changes_its_search():
    own = Options("60%").plan_key()
    assert own == Options("60%", progress=print, threads=0).plan_key() == Options("70%").plan_key()
    for other in (dict(time=1), dict(work=5), dict(seed=2), dict(techniques="recompute"), dict(costs="a100"), dict(solver="order")):
        assert Options("60%", **other).plan_key() != own, other


@pytest.mark.parametrize(("options", "alone", "told"), [
    (dict(techniques="recompute,in_place"), True, {}),
    (dict(techniques="recompute,split", costs="a100"), True, {"techniques": ["recompute", "split"], "device": "a100"}),
    (dict(techniques="recompute,split"), True, {"techniques": ["recompute", "split"]}),  # the device has no name
    (dict(techniques="recompute,split", costs="a100"), False, {}),
    (dict(techniques="recompute,offload", link=LINK), True,
     {"techniques": ["offload", "recompute"], "link": LINK, "host_budget": None}),
    (dict(techniques="recompute,offload", costs="a100", host_budget=5), False,
     {"techniques": ["offload", "recompute"], "link": link_text(*DEVICES["a100"].host_link), "host_budget": 5}),
    (dict(techniques="all", link=LINK), False,
     {"techniques": ["in_place", "offload", "recompute"], "link": LINK, "host_budget": None}),
])
def test_a_problem_is_told_what_its_techniques_need(options, alone, told):
    assert Options("60%", **options).planning(alone, None) == told


def test_copies_need_a_link_that_somebody_names():
    with pytest.raises(ValueError, match="link: plans that offload need the bytes a second and the latency"):
        Options("60%", techniques="offload").planning(True, None)


def test_the_same_without_a_technique():
    every = Options("60%", techniques="all", link=LINK, host_budget=5)
    assert every.without_transforms().techniques == {"recompute", "in_place", "offload"} and every.without_transforms().link == LINK
    without = every.without_copies()
    assert without.techniques == TECHNIQUES - {"offload"} and (without.link, without.host_budget) == (None, None)
    assert Options("60%", techniques="offload", link=LINK).without_copies().techniques == {"in_place"}
    assert Options("60%", techniques="split").without_transforms().techniques == {"in_place"}
