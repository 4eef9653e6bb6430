"""Options for all calls of a process: what a call gives comes first, then `replace`, then the environment."""

import pytest
from lowtide.frontend import defaults


@pytest.fixture(autouse=True)
def none_left():
    yield
    defaults.replace({})


def test_a_call_comes_before_the_process_and_the_process_before_the_environment(monkeypatch):
    monkeypatch.setenv("LOWTIDE_BUDGET", "1GiB")
    monkeypatch.setenv("LOWTIDE_TIME", "2.5")
    monkeypatch.setenv("LOWTIDE_WORK", "700")
    defaults.replace({"budget": "2GiB", "time": 3.0})
    assert defaults.complete({"budget": "3GiB"}) == {"budget": "3GiB", "time": 3.0, "work": 700}
    assert defaults.complete({}) == {"budget": "2GiB", "time": 3.0, "work": 700}
    defaults.replace({})
    assert defaults.complete({}) == {"budget": "1GiB", "time": 2.5, "work": 700}


def test_an_empty_variable_is_none(monkeypatch):
    monkeypatch.setenv("LOWTIDE_BUDGET", "")
    assert defaults.complete({}) == {}


@pytest.mark.parametrize(("name", "text"), [("time", "soon"), ("work", "1.5"), ("threads", "all")])
def test_a_text_that_is_no_number_is_said_with_its_variable(name, text, monkeypatch):
    monkeypatch.setenv(f"LOWTIDE_{name.upper()}", text)
    with pytest.raises(ValueError, match=f"LOWTIDE_{name.upper()} is a number, not '{text}'"):
        defaults.complete({})
    assert defaults.complete({name: 1}) == {name: 1}  # the variable is not read then


@pytest.mark.parametrize(("given", "message", "wanted"), [
    ({}, "order must be 'free'", "order must be 'free' (from the environment: LOWTIDE_ORDER=up)"),
    ({"order": "down"}, "order must be 'free'", "order must be 'free'"),  # the variable is not read then
    ({}, "link needs order", "link needs order (from the environment: LOWTIDE_ORDER=up, LOWTIDE_LINK=slow)"),
    ({}, "the reorder of host_link", "the reorder of host_link"),
])
def test_an_error_that_names_an_option_names_the_variable_that_gave_it(given, message, wanted, monkeypatch):
    monkeypatch.setenv("LOWTIDE_ORDER", "up")
    monkeypatch.setenv("LOWTIDE_LINK", "slow")
    with pytest.raises(ValueError) as raised, defaults.naming_variables(given):
        raise ValueError(message)
    assert str(raised.value) == wanted
