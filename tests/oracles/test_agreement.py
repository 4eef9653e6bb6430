"""The two verifiers on the same plans: every verdict of the library must be that of verify.py.

The plans come from the test programs as JSON lines (support/case_writer.h has the layout): random graphs with random
plans and mutated ones from `dump_cases`, and whatever plans the C++ tests judge, of which a fixed stride is taken.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import verify as oracle

SCALE = max(1, int(os.environ.get("LOWTIDE_TEST_SCALE", "1")))


def program(name):
    """A test program of the build that LOWTIDE_BIN belongs to."""
    if "LOWTIDE_BIN" not in os.environ:
        pytest.skip("LOWTIDE_BIN names no command, so there is no build to test")
    path = Path(os.environ["LOWTIDE_BIN"]).parent / "tests" / name
    assert path.exists(), f"{path} is not built"
    return path


def disagreement(graph, plan, ours):
    theirs = oracle.verify(graph, plan)
    if theirs.ok != ours["ok"]:
        return f"ok: {ours['ok']}, second verifier: {theirs}"
    # Where a rule alone is broken, both must name the same step. A budget, an order or a set of techniques
    # that is not kept shows at several steps, and each verifier may take another.
    keys = ["peak", "duration", "host_peak"] if theirs.ok else []
    limits = ("budget", "host_budget")
    unlimited = all(plan.get(key) is None for key in limits)
    if unlimited and plan["order"] == "free" and len(plan["techniques"]) == 3:
        keys.append("step")
    wrong = {key: (ours[key], getattr(theirs, key)) for key in keys if ours[key] != getattr(theirs, key)}
    return f"(ours, second verifier): {wrong}" if wrong else None


def compare(lines):
    """How many plans held and how many did not; fails at the first verdict on which the two differ."""
    verdicts, graph = Counter(), None
    for line in lines:
        case = json.loads(line)
        if "graph" in case:
            graph = case["graph"]
            assert oracle.Graph(graph).own_peak() == case["own_peak"], json.dumps(graph)
            continue
        wrong = disagreement(graph, case["plan"], case["verdict"])
        assert not wrong, "\n".join([wrong, json.dumps(graph), json.dumps(case["plan"])])
        verdicts[case["verdict"]["ok"]] += 1
    return verdicts


def test_random_plans_and_mutations():
    dump = program("dump_cases")
    for seed in range(SCALE):
        with subprocess.Popen([dump, str(seed), "400"], stdout=subprocess.PIPE, text=True) as process:
            verdicts = compare(process.stdout)
        assert process.returncode == 0
        assert verdicts.total() >= 10_000
        assert min(verdicts[True], verdicts[False]) >= 2_000


# The stride leaves some thousand plans of each program; large graphs stay out, and of the solvers' plans of random graphs
# those without a link, which are of no other kind than those of solvers that use none.
@pytest.mark.parametrize(
    "name, cases, stride", [("sim_test", "*", 4), ("oracles_test", "*", 1),
                      ("conformance_test", "*with a link to the host,*the fixed cases", 8)]
)
def test_plans_of_the_tests(name, cases, stride, tmp_path):
    record = tmp_path / "plans.jsonl"
    settings = {"LOWTIDE_RECORD": str(record), "LOWTIDE_RECORD_STRIDE": str(stride), "LOWTIDE_TEST_SCALE": "1"}
    command = [program(name), f"--test-case={cases}"]
    subprocess.run(command, env=os.environ | settings, check=True, stdout=subprocess.DEVNULL)
    with record.open() as lines:
        assert compare(lines).total() >= 1000


@pytest.mark.parametrize("kind, seed", [("layered", 1), ("resnet", 2), ("unet", 3), ("transformer", 4)])
def test_offsets(kind, seed, tmp_path):
    """Both verifiers on offsets as they are placed, and with one of them moved, lost or given to another step."""
    command = os.environ.get("LOWTIDE_BIN") or pytest.skip("LOWTIDE_BIN names no command")
    graph_file, plan_file, changed_file = (tmp_path / name for name in ("g.json", "p.json", "c.json"))

    def run(*arguments):
        return subprocess.run([command, *map(str, arguments)], capture_output=True, text=True)

    assert run("generate", kind, "--ops", 60, "--seed", seed, "-o", graph_file).returncode == 0
    assert run("plan", graph_file, "--budget", "100%", "--work", 5000, "--threads", 1, "-o", plan_file).returncode == 0
    assert run("place", graph_file, plan_file, "--alignment", 8, "--work", 20000, "-o", plan_file).returncode == 0
    graph, plan = json.loads(graph_file.read_text()), json.loads(plan_file.read_text())
    assert run("verify", graph_file, plan_file).returncode == 0
    theirs = oracle.verify(graph, plan)
    assert theirs.ok, theirs.error
    random = Random(seed)
    verdicts = Counter()
    for _ in range(25):
        changed = json.loads(plan_file.read_text())
        offsets = changed["offsets"]
        at = random.randrange(len(offsets))
        fault = random.choice(["moved", "lost", "later", "smaller"])
        if fault == "moved":
            offsets[at][2] = 8 * random.randrange(changed["claims"]["arena"] // 8)
        elif fault == "lost":
            del offsets[at]
        elif fault == "later":
            offsets[at][0] = (offsets[at][0] or 0) + 1
        else:
            changed["claims"]["arena"] -= 8 * random.randrange(2)
        changed_file.write_text(json.dumps(changed))
        ours = run("verify", graph_file, changed_file)
        theirs = oracle.verify(graph, changed)
        assert (ours.returncode == 0) == theirs.ok, (ours.stdout, theirs.error)
        verdicts[theirs.ok] += 1
    assert verdicts[False] > 5
