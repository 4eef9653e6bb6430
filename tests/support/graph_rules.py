"""The rules of the graph format, and those of every captured step, as assertions on a graph's dict."""

from collections import Counter

_DEFAULTS = {"workspace": 0, "recomputable": True, "after": [], "mutates": [], "attributes": {},
             "phase": None, "origin": None}


def with_defaults(graph):
    """A graph as `Graph.to_dict` gives it or a file has it, the keys that may be left out filled in."""
    produced = {t for op in graph["ops"] for t in op["outputs"]}
    tensors = [{"role": None if t in produced else "input"} | tensor for t, tensor in enumerate(graph["tensors"])]
    return {"resident_bytes": 0} | graph | {"ops": [_DEFAULTS | op for op in graph["ops"]], "tensors": tensors}


def check(graph):
    """The rules of the graph format, and those that hold for every captured step."""
    tensors, ops = graph["tensors"], graph["ops"]
    assert (graph["format"], graph["version"], graph["tick"]) == ("lowtide-graph", 1, "ns")
    producer, mutated = {}, set()
    for i, op in enumerate(ops):
        assert op["time"] >= 0 and isinstance(op["time"], int)
        for t in op["outputs"]:
            assert t not in producer and t not in op["inputs"]
            producer[t] = i
        assert len(set(op["inputs"])) == len(op["inputs"])
        assert not mutated.intersection(op["inputs"]), f"{op['name']} reads what was changed"
        assert set(op["mutates"]) <= set(op["inputs"])
        mutated.update(op["mutates"])
        assert all(a < i for a in op["after"])
        assert op["outputs"] or op["kind"] == "lowtide.barrier"
    made = set()
    for op in ops:
        for t in op["inputs"]:
            assert t in made or tensors[t]["role"] in ("input", "parameter", "state", "constant")
        made.update(op["outputs"])
    for t, tensor in enumerate(tensors):
        assert tensor["bytes"] >= 0 and isinstance(tensor["bytes"], int)
        assert (t in producer) == (tensor["role"] in (None, "gradient"))
        assert t not in producer or not tensor.get("stays", False)
    for op in ops:
        overwritten = [t for t, _ in op.get("in_place", ())]
        assert len(set(overwritten)) == len(overwritten) and not set(overwritten) & {*op["mutates"], *graph["outputs"]}
        for t, made in op.get("in_place", ()):
            assert t in op["inputs"] and made in op["outputs"] and tensors[t]["bytes"] == tensors[made]["bytes"]
            assert ops[producer[t]]["kind"] != "lowtide.barrier"
        assert {e["tensor"] for e in op.get("operands", ())} <= set(op["inputs"])
        assert {e["tensor"] for e in op.get("results", ())} <= set(op["outputs"])
    assert len(set(graph["outputs"])) == len(graph["outputs"])
    assert len({op["name"] for op in ops}) == len(ops)

    (barrier,) = (i for i, op in enumerate(ops) if op["kind"] == "lowtide.barrier")
    assert ops[barrier]["time"] == 0 and not ops[barrier]["recomputable"]
    assert {op["phase"] for op in ops[:barrier]} <= {"forward"}
    assert {op["phase"] for op in ops[barrier + 1:]} <= {"backward"}
    assert all(i == barrier or not op["mutates"] for i, op in enumerate(ops))
    assert set(ops[barrier]["outputs"]) <= set(graph["outputs"])
    before, open_ends = set(), [barrier]
    while open_ends:
        op = ops[open_ends.pop()]
        new = {*op["after"], *(producer[t] for t in op["inputs"] if t in producer)} - before
        before |= new
        open_ends += new
    for i, op in enumerate(ops[:barrier]):
        assert op["recomputable"] or i in before, f"{op['name']} may run when the user has taken over"


def kinds(graph):
    return Counter(op["kind"] for op in graph["ops"])


def of_kind(graph, kind):
    return [op for op in graph["ops"] if op["kind"] == kind]


def names(graph, role):
    return [t["name"] for t in graph["tensors"] if t["role"] == role]
