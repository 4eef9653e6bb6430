"""Every rule of the table of substitutions gives what it claims to give: on random tensors, in every number type."""

import pytest

torch = pytest.importorskip("torch")

from substitution_cases import CASES, Make
from substitution_support import TYPES, NotTheSame, compare, recorded, run

import lowtide
from lowtide import _core

RULES = {rule["name"]: rule for rule in _core.substitution_rules()}
DTYPES = [name for name in TYPES if not name.startswith("f8") and name not in ("c32", "u16", "u32", "u64")]


def test_every_rule_has_a_case():
    assert set(RULES) == set(CASES)


def matches(function, inputs, rule):
    """(graph, operators, what the rule finds in it) or None where PyTorch has no kernel for the number type."""
    try:
        graph, targets = recorded(function, inputs)
    except (RuntimeError, NotImplementedError) as error:
        if "not implemented" in str(error) or "not supported" in str(error):
            return None
        raise
    return graph, targets, [found for found in graph.substitutions() if found["rule"] == rule]


def both_sides(graph, targets, inputs, transforms):
    made = lowtide.transform(graph, transforms)["graph"]
    return run(made, targets, inputs), run(graph, targets, inputs)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rule", sorted(CASES))
def test_both_sides_of_a_rule_are_the_same(rule, dtype):
    ran = 0
    for case in CASES[rule]:
        function, inputs = case(Make(TYPES[dtype]))
        found = matches(function, inputs, rule)
        if found is None:
            continue
        graph, targets, substitutions = found
        assert substitutions, case.__name__
        for one in substitutions:
            assert one["exact"] == RULES[rule]["exact"] == one["transforms"][0]["exact"]
            compare(*both_sides(graph, targets, inputs, one["transforms"]), one["exact"])
            ran += 1
    assert ran or dtype not in ("f32", "f64", "bf16")


@pytest.mark.parametrize("rule", sorted(CASES))
def test_a_rule_that_lies_is_caught(rule):
    """An operand that reads one row again and again: as a rule would have it that mistakes how a tensor lies."""
    caught = 0
    for case in CASES[rule]:
        function, inputs = case(Make(torch.float32))
        graph, targets, substitutions = matches(function, inputs, rule)
        made = lowtide.transform(graph, substitutions[0]["transforms"])["graph"].to_dict()
        expected = run(graph, targets, inputs)
        known = [op["operands"] for op in graph.to_dict()["ops"]]
        changed = [op for op in made["ops"] if op["operands"] not in known]
        for entry in (entry for op in changed for entry in op["operands"]):
            strides = list(entry["strides"])
            entry["strides"][next(d for d, n in enumerate(entry["shape"]) if n > 1)] = 0
            with pytest.raises(NotTheSame):
                compare(run(made, targets, inputs), expected, RULES[rule]["exact"])
            entry["strides"] = strides
            caught += 1
    assert caught
