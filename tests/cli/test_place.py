"""Offsets for plans and for buffers from files."""

import json

import pytest
from conftest import lowtide

BUFFERS = "id,lower,upper,size\na,0,3,10\nb,2,5,20\nc,3,4,10\n"


@pytest.fixture
def buffers(tmp_path):
    path = tmp_path / "buffers.csv"
    path.write_text(BUFFERS)
    return path


@pytest.fixture
def plan(chain, tmp_path):
    path = tmp_path / "chain.plan.json"
    assert lowtide("plan", chain, "--budget", "100%", "--work", "1000", "-o", path).code == 0
    return path


def columns(text):
    """The lines of a .csv as dictionaries."""
    header, *lines = text.splitlines()
    return [dict(zip(header.split(","), line.split(","), strict=True)) for line in lines]


def test_a_plan_is_placed_and_verified(chain, plan, tmp_path):
    placed = tmp_path / "placed.plan.json"
    done = lowtide("place", chain, plan, "--alignment", "4", "-o", placed, "--json")
    assert done.code == 0
    said = done.json()
    assert said["status"] == "optimal" and said["arena"] == said["load"] == said["bound"] and said["alignment"] == 4
    written = json.loads(placed.read_text())
    assert written["claims"]["arena"] == said["arena"] and written["alignment"] == 4
    assert len(written["offsets"]) == said["buffers"] and all(offset % 4 == 0 for *_, offset in written["offsets"])
    unplaced = json.loads(plan.read_text())
    assert written["steps"] == unplaced["steps"] and written["budget"] == unplaced["budget"]

    verified = lowtide("verify", chain, placed, "--json")
    assert verified.code == 0 and verified.json()["arena"] == said["arena"]
    assert "arena" in lowtide("verify", chain, placed).out
    # Offsets that are there already are replaced.
    again = tmp_path / "again.plan.json"
    assert lowtide("place", chain, placed, "--alignment", "4", "-o", again).code == 0
    assert again.read_text() == placed.read_text()


def test_wrong_offsets_are_not_verified(chain, plan, tmp_path):
    placed = tmp_path / "placed.plan.json"
    assert lowtide("place", chain, plan, "--alignment", "1", "-o", placed).code == 0
    good = json.loads(placed.read_text())

    def verdict(**changes):
        placed.write_text(json.dumps({**good, **changes}))
        return lowtide("verify", chain, placed)

    moved = [[step, tensor, 0] for step, tensor, _ in good["offsets"]]
    assert verdict(offsets=moved).code == 3 and "it overlaps" in verdict(offsets=moved).out
    assert "has no offset" in verdict(offsets=good["offsets"][1:]).out
    far = [*good["offsets"][:-1], [*good["offsets"][-1][:2], 10**6]]
    assert "end beyond the claimed arena" in verdict(offsets=far).out
    assert "no multiple of the alignment 1000" in verdict(alignment=1000).out
    assert "there are offsets, but no \"arena\" is claimed" in verdict(claims={}).out
    assert verdict(footprint="arena").code == 0
    small = good["claims"]["arena"] - 1
    assert verdict(footprint="arena", budget=small).code == 3
    assert lowtide("place", chain, placed).code == 3  # its steps do not keep that budget either


def test_buffers_are_placed(buffers, tmp_path):
    out = tmp_path / "placed.csv"
    done = lowtide("place", buffers, "-o", out)
    assert done.code == 0 and "the load" in done.out
    rows = columns(out.read_text())
    assert [row["id"] for row in rows] == ["a", "b", "c"]
    assert max(int(row["offset"]) + int(row["size"]) for row in rows) == 30
    # What was written is read.
    assert lowtide("place", out, "--json").json()["arena"] == 30
    # The same in multiples of 16, and what others do.
    aligned = lowtide("place", buffers, "--alignment", "16", "--baselines", "--json").json()
    assert aligned["load"] == 48 and set(aligned["baselines"]) == {"by_size", "by_duration", "shared_objects"}
    assert "shared_objects" in lowtide("place", buffers, "--baselines").out


def test_a_plan_as_csv(chain, plan, tmp_path):
    printed = lowtide("place", chain, plan, "--csv")
    assert printed.code == 0
    rows = columns(printed.out)
    assert {row["id"].split("/")[0][:4] for row in rows} == {"step"} and all("/t" in row["id"] for row in rows)
    path = tmp_path / "plan.csv"
    path.write_text(printed.out)
    alone = lowtide("place", path, "--alignment", "512", "--json").json()
    assert alone["load"] == lowtide("place", chain, plan, "--json").json()["load"]


def test_a_capacity(buffers):
    assert lowtide("place", buffers, "--capacity", "30").code == 0
    short = lowtide("place", buffers, "--capacity", "29")
    assert short.code == 1 and "do not fit into 29 bytes: they need 30 at least" in short.err
    assert lowtide("place", buffers, "--capacity", "29", "--json").json()["status"] == "infeasible"


@pytest.mark.parametrize("text, said", [
    ("", "the file is empty; it begins with id,lower,upper,size"),
    ("id,lower,upper\n", 'line 1: has no column "size"'),
    ("id,lower,upper,size,gaps\n", 'line 1: unknown column "gaps"'),
    ("id,id,lower,upper,size\n", 'line 1: the column "id" is there twice'),
    ("id,lower,upper,size\n0,1,2\n", "line 2: has 3 fields, the header 4"),
    ("id,lower,upper,size\n\n0,1,2,x\n", 'line 3: the size must be an integer below 2^63, not "x"'),
    ("id,lower,upper,size\n0,1,2,9223372036854775808\n", "line 2: the size must be an integer below 2^63"),
    ("id,lower,upper,size\n0,1,2,-1\n", "line 2: the size must be 0 or more, not -1"),
    ("id,lower,upper,size\n0,2,2,1\n", "line 2: the buffer ends at 2, not after it begins at 2"),
    ("id,lower,upper,size\n0,1,2,1\n0,1,2,1\n", 'line 3: the id "0" is there twice'),
    ("id,lower,upper,size\n0,1,2,9223372036854775807\n1,1,2,9\n", "buffers/1: the sizes up to this one add up"),
])
def test_malformed_buffers(tmp_path, text, said):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    done = lowtide("place", path)
    assert done.code == 2 and str(path) in done.err and said in done.err


def test_what_cannot_be_placed(chain, plan, tmp_path, buffers):
    assert "a graph needs a plan beside it" in lowtide("place", chain).err
    assert lowtide("place", chain, plan, "--csv", "--json").code == 2
    assert lowtide("place", buffers, "--alignment", "0").code == 2
    assert lowtide("place", buffers, "--capacity", "12 apples").code == 2
    other = json.loads(plan.read_text())
    other["steps"] = other["steps"][1:]
    plan.write_text(json.dumps(other))
    assert lowtide("place", chain, plan).code == 3
    none = tmp_path / "none.plan.json"
    lowtide("plan", chain, "--budget", "1", "--work", "100", "-o", none)
    done = lowtide("place", chain, none)
    assert done.code == 1 and "the file has no plan" in done.err


def test_work_repeats(resnet, tmp_path):
    plan = tmp_path / "resnet.plan.json"
    assert lowtide("plan", resnet, "--budget", "60%", "--work", "20000", "--threads", "1", "-o", plan).code == 0
    files = [tmp_path / f"{i}.plan.json" for i in range(2)]
    for path in files:
        assert lowtide("place", resnet, plan, "--work", "100000", "--seed", "3", "-o", path).code == 0
    assert files[0].read_text() == files[1].read_text()
    assert lowtide("verify", resnet, files[0]).code == 0
