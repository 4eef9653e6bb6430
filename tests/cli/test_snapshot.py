"""Plans as the viewers of others read them, and snapshots of jobs."""

import collections
import json
import pickle
import pickletools

import pytest
from conftest import lowtide


@pytest.fixture(scope="module")
def drawn(resnet, tmp_path_factory):
    """A plan that copies and recomputes, with its pictures."""
    folder = tmp_path_factory.mktemp("pictures")
    paths = {name: folder / name for name in ("plan.json", "s.pickle", "t.json", "t.pftrace")}
    planned = lowtide("plan", resnet, "--budget", "50%", "--work", 50_000, "--link", "25GB/s,10us", "-o", paths["plan.json"])
    assert planned.code == 0
    shown = lowtide("show", resnet, paths["plan.json"], "--snapshot", paths["s.pickle"], "--trace", paths["t.json"])
    assert shown.code == 0 and f"written    {paths['s.pickle']}\nwritten    {paths['t.json']}\n" in shown.out
    assert lowtide("show", resnet, paths["plan.json"], "--trace", paths["t.pftrace"]).code == 0
    return {name: path.read_bytes() for name, path in paths.items()} | {"paths": paths}


@pytest.fixture
def claims(drawn):
    return json.loads(drawn["plan.json"])["claims"]


# What PyTorch's page memory_viz reads of what this writer could use.
VIEWER = {"PROTO", "MARK", "EMPTY_DICT", "SETITEMS", "EMPTY_LIST", "APPENDS", "BINUNICODE", "BINPUT", "LONG_BINPUT", "BINGET",
          "LONG_BINGET", "BININT", "BININT1", "BININT2", "LONG1", "NEWTRUE", "NEWFALSE", "NONE", "TUPLE2", "STOP"}


def test_the_viewer_can_unpickle_a_snapshot(drawn):
    marks = []
    for opcode, argument, _ in pickletools.genops(drawn["s.pickle"]):
        assert opcode.name in VIEWER
        marks = [*marks, 0] if opcode.name == "MARK" else marks
        if opcode.name == "LONG1":
            assert -2**53 < argument < 2**53  # a number of JavaScript
        if opcode.name == "APPENDS":
            assert marks.pop() <= 1000  # dictionaries
        elif opcode.name == "SETITEMS":
            marks.pop()
            if marks:
                marks[-1] += 1


def test_a_snapshot_has_the_peak_and_tiles_its_segments(drawn, claims):
    snapshot = pickle.loads(drawn["s.pickle"])
    [events] = snapshot["device_traces"]
    live, now, peak = {}, 0, 0
    for before, event in zip([None, *events], events, strict=False):
        if event["action"] == "alloc":
            live[event["addr"]] = event
            now += event["size"]
            peak = max(peak, now)
        elif event["action"] == "free_completed":
            assert before == event | {"action": "free_requested"}
            now -= live.pop(event["addr"])["size"]
    assert peak == claims["peak"]
    blocks = {}
    for segment in snapshot["segments"]:
        at = segment["address"]
        for block in segment["blocks"]:
            assert block["address"] == at
            at += block["size"]
            if block["state"] == "active_allocated":
                blocks[block["address"]] = (block["size"], block["frames"])
        assert at == segment["address"] + segment["total_size"]
    assert blocks == {address: (event["size"], event["frames"]) for address, event in live.items()}
    assert any(frame["name"] == "recomputed" for event in events for frame in event["frames"])


def test_a_snapshot_comes_back_as_it_went_out(drawn, claims):
    done = lowtide("snapshot", drawn["paths"]["s.pickle"], "--json")
    assert done.code == 0
    [device] = done.json()["devices"]
    assert device["events"] == len(pickle.loads(drawn["s.pickle"])["device_traces"][0]) and not device["contradictions"]
    peak = device["peak"]
    assert peak["requested"] == claims["peak"] and peak["allocated"] >= claims["peak"]
    assert sum(owner["bytes"] for owner in peak["owners"]) == peak["allocated"]
    assert peak["movable"] + peak["from_start"] + peak["to_end"] + peak["throughout"] == peak["allocated"]
    assert device["replay"]["load"] <= device["replay"]["arena"] <= device["replay"]["reserved"]
    text = lowtide("snapshot", drawn["paths"]["s.pickle"], "--owners", 2)
    assert text.code == 0 and "planned offsets" in text.out and "other places" in text.out


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_snapshots_of_all_protocols_are_the_same(protocol, drawn, tmp_path):
    path = tmp_path / "again.pickle"
    path.write_bytes(pickle.dumps(pickle.loads(drawn["s.pickle"]), protocol=protocol))
    assert lowtide("snapshot", path, "--json").out == lowtide("snapshot", drawn["paths"]["s.pickle"], "--json").out


ADDRESS, MIB = 1 << 40, 1 << 20


def snapshot_of(version):
    """Of 5 MiB in a segment, which a freed tensor of 4 MiB had before, as that version of PyTorch writes it."""
    where = [{"filename": "model.py", "line": 7, "name": "forward"}]
    old = version == "2.0"
    timed = [{} if old else {"time_us": 1_700_000_000_000_000 + at, "compile_context": "0/0", "user_metadata": {"part": 1}}
             for at in range(6)]
    events = [{"action": "segment_alloc", "addr": ADDRESS, "size": 20 * MIB, "frames": []},
              {"action": "alloc", "addr": ADDRESS, "size": 4 * MIB, "frames": where},
              {"action": "free_requested", "addr": ADDRESS, "size": 4 * MIB, "frames": []},
              {"action": "free_completed", "addr": ADDRESS, "size": 4 * MIB, "frames": []},
              {"action": "alloc", "addr": ADDRESS, "size": 5 * MIB - 100, "frames": where},
              {"action": "oom", "size": 1 << 50, "device_free": 3, "frames": []}]
    live, free = {"size": 5 * MIB, "state": "active_allocated"}, {"size": 15 * MIB, "state": "inactive"}
    segment = {"device": 0, "address": ADDRESS, "total_size": 20 * MIB, "allocated_size": 5 * MIB, "active_size": 5 * MIB, "stream": 0,
               "segment_type": "large", "blocks": [live, free]}
    found = {"segments": [segment], "device_traces": [[event | {"stream": 0} | time for event, time in zip(events, timed, strict=True)]]}
    if old:
        live["history"] = [{"addr": ADDRESS, "real_size": 5 * MIB - 100, "frames": where},
                           {"addr": ADDRESS, "real_size": 4 * MIB, "frames": []}]
        return found
    live |= {"address": ADDRESS, "requested_size": 5 * MIB - 100, "frames": where, "user_metadata": ""}
    free |= {"address": ADDRESS + 5 * MIB, "requested_size": 0, "frames": []}
    segment |= {"requested_size": 5 * MIB - 100, "segment_pool_id": (0, 0), "is_expandable": False, "frames": where}
    found["device_traces"][0] += [{"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "frames": [], "time_us": 9},
                                  {"action": "of a later version", "frames": [], "category": "unknown"}]
    key = "PYTORCH_CUDA_ALLOC_CONF" if version == "2.13" else "PYTORCH_ALLOC_CONF"
    settings = {key: "max_split_size_mb:64", "max_split_size": -1, "roundup_power2_divisions": {"1": 0}}
    return found | {"allocator_settings": settings, "external_annotations": [{"name": "step", "stage": "START", "time_us": 1}]}


@pytest.mark.parametrize("record", [True, False])
@pytest.mark.parametrize("version", ["2.0", "2.13", "later"])
def test_snapshots_of_all_versions_of_pytorch_are_read(version, record, tmp_path):
    """... with and without a record of events."""
    snapshot = snapshot_of(version)
    if not record:
        snapshot["device_traces"][0].clear()
    path = tmp_path / "job.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    done = lowtide("snapshot", path, "--json")
    assert done.code == 0, done.err
    [device] = done.json()["devices"]
    assert device["contradictions"] == 0 and device["reserved"] == 20 * MIB
    assert (device["peak"]["allocated"], device["peak"]["requested"]) == (5 * MIB, 5 * MIB - 100)
    assert device["peak"]["owners"] == [{"bytes": 5 * MIB, "blocks": 1, "frames": [{"filename": "model.py", "line": 7, "name": "forward"}]}]
    assert device["replay"]["allocator"] == ("" if version == "2.0" else "max_split_size_mb:64")


def test_a_ring_buffer_that_was_cut_short_is_undone(drawn, tmp_path):
    snapshot = pickle.loads(drawn["s.pickle"])
    whole = lowtide("snapshot", drawn["paths"]["s.pickle"], "--json").json()["devices"][0]
    lost = whole["peak"]["event"] // 2
    del snapshot["device_traces"][0][:lost]
    path = tmp_path / "cut.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    rest = lowtide("snapshot", path, "--json").json()["devices"][0]
    assert rest["peak"]["event"] == whole["peak"]["event"] - lost and not rest["contradictions"]
    for key in ("allocated", "requested"):
        assert rest["peak"][key] == whole["peak"][key]
    assert rest["peak"]["from_start"] > 0 and rest["reserved"] == whole["reserved"]


def test_pickles_with_code_are_refused_and_run_nothing(tmp_path):
    class Code:
        def __reduce__(self):
            return (open, (str(tmp_path / "ran"), "w"))

    path = tmp_path / "code.pickle"
    for protocol in (2, 4):
        path.write_bytes(pickle.dumps({"segments": [], "device_traces": [[Code()]]}, protocol=protocol))
        done = lowtide("snapshot", path)
        assert done.code == 2 and f"{path}: byte " in done.err and "no code of a pickle is run" in done.err
    assert not (tmp_path / "ran").exists()


def test_torch_reads_the_snapshot(drawn):
    viz = pytest.importorskip("torch.cuda._memory_viz", reason="no torch")
    snapshot = pickle.loads(drawn["s.pickle"])
    for text in (viz.trace_plot(snapshot), viz.segment_plot(snapshot), viz.segsum(snapshot), viz.trace(snapshot)):
        assert text


def test_a_chrome_trace_keeps_to_its_format(drawn, claims):
    events = json.loads(drawn["t.json"])["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X", "C"} and all(event["pid"] == 1 for event in events)
    assert max(event["args"]["live"] for event in events if event["ph"] == "C") == claims["peak"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    lanes = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            lanes[names[event["tid"]]].append((event["ts"], event["ts"] + event["dur"]))
            assert isinstance(event["name"], str) and isinstance(event["cat"], str)
    assert {"compute", "copies out", "copies in"} <= lanes.keys()
    for slices in lanes.values():
        assert all(end <= begin + 1e-6 for (_, end), (begin, _) in zip(slices, slices[1:], strict=False))
    ends = max(end for slices in lanes.values() for _, end in slices)
    assert ends == pytest.approx(claims["duration"] / 1000)  # ns


def fields(message):
    """The fields of a protobuf message: number -> values."""
    found, at = collections.defaultdict(list), 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        tag = varint()
        assert tag & 7 in (0, 2)
        value = varint()
        if tag & 7 == 2:
            value, at = message[at:at + value], at + value
            assert at <= len(message)
        found[tag >> 3].append(value)
    return found


def test_a_perfetto_trace_says_the_same(drawn, claims):
    tracks, open_slices, slices, counts = {}, collections.defaultdict(list), [], []
    whole = fields(drawn["t.pftrace"])
    assert set(whole) == {1}
    for packet in map(fields, whole[1]):
        assert packet[10] == [1]
        if 60 in packet:
            track = fields(packet[60][0])
            tracks[track[1][0]] = track
            assert track[5] == ([1] if track[1] != [1] else [])
            continue
        [time], event = packet[8], fields(packet[11][0])
        [kind], [track] = event[9], event[11]
        if kind == 4:
            assert 8 in tracks[track]
            counts += event[30]
        elif kind == 1:
            open_slices[track].append((time, event[23][0].decode()))
        else:
            begin, name = open_slices[track].pop()
            slices.append((tracks[track][2][0].decode(), name, begin, time))
    assert not any(open_slices.values()) and max(counts) == claims["peak"]
    events = json.loads(drawn["t.json"])["traceEvents"]
    names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    chrome = [(names[event["tid"]], event["name"], round(event["ts"] * 1000), round((event["ts"] + event["dur"]) * 1000))
              for event in events if event["ph"] == "X"]
    assert sorted(slices) == sorted(chrome)


def test_pictures_are_of_plans_that_run(chain, tmp_path):
    wrong = lowtide("show", chain, "--trace", tmp_path / "t.txt")
    assert wrong.code == 2 and ".json or .json.gz (Chrome) or .pftrace (Perfetto)" in wrong.err
    # Without a plan, the graph's own order.
    assert lowtide("show", chain, "--snapshot", tmp_path / "own.pickle", "--trace", tmp_path / "own.json").code == 0
    plan = tmp_path / "plan.json"
    assert lowtide("plan", chain, "--budget", "100%", "--work", 1000, "-o", plan).code == 0
    file = json.loads(plan.read_text())
    file["steps"] = file["steps"][1:]
    plan.write_text(json.dumps(file))
    broken = lowtide("show", chain, plan, "--snapshot", tmp_path / "no.pickle")
    assert broken.code == 3 and not (tmp_path / "no.pickle").exists()


def test_planned_offsets_of_a_file_are_the_addresses(chain, tmp_path):
    plan, placed, path = tmp_path / "plan.json", tmp_path / "placed.json", tmp_path / "s.pickle"
    assert lowtide("plan", chain, "--budget", "100%", "--work", 1000, "-o", plan).code == 0
    assert lowtide("place", chain, plan, "--alignment", 64, "-o", placed).code == 0
    assert lowtide("show", chain, placed, "--snapshot", path).code == 0
    allocations = [event for event in pickle.loads(path.read_bytes())["device_traces"][0] if event["action"] == "alloc"]
    offsets = [offset for *_, offset in json.loads(placed.read_text())["offsets"]]
    assert sorted(event["addr"] - 0x7F0000000000 for event in allocations) == sorted(offsets)
