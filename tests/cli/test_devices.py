"""`lowtide devices`, `convert --device`, and the links that `plan`, `curve`, `fit` and `verify` know."""

import gzip
import json

import pytest
from conftest import lowtide

MACHINE = {"device_to_host": {"latency": 10, "bytes": 25000, "ticks": 1},
           "host_to_device": {"latency": 10, "bytes": 25000, "ticks": 1}}


@pytest.fixture
def a100(tmp_path):
    device = json.loads(lowtide("devices", "a100", "--json").out)
    path = tmp_path / "mine.json"

    def write(**fields):
        path.write_text(json.dumps({k: v for k, v in {**device, **fields}.items() if v is not None}))
        return path

    return write


@pytest.fixture
def swap(chain, tmp_path):
    """A plan of the chain that copies b to the host and back, over 25 GB/s with 10 us."""
    made = tmp_path / "made.plan.json"
    assert lowtide("plan", chain, "--budget", "100%", "-o", made).code == 0
    plan = json.loads(made.read_text())
    plan |= {"claims": {}, "machine": MACHINE, "techniques": ["offload"], "steps": [
        ["compute", 0], ["compute", 1], ["offload", 1], ["free", 1], ["compute", 2], ["free", 0], ["prefetch", 1],
        ["compute", 3], ["free", 1], ["free", 2]]}
    path = tmp_path / "swap.plan.json"
    path.write_text(json.dumps(plan))
    return path


def test_devices_fit_a_terminal():
    done = lowtide("devices")
    assert done.code == 0 and "a100" in done.out and "25 GB/s" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


def test_devices_as_json_are_files(tmp_path):
    listed = lowtide("devices", "--json").json()
    assert [device["name"] for device in listed] == sorted(device["name"] for device in listed)
    for device in listed:
        path = tmp_path / "d.json"
        path.write_text(json.dumps(device))
        assert lowtide("devices", path, "--json").json() == device
    assert lowtide("devices", "h100", "--json").json()["title"] == "NVIDIA H100 80GB"


@pytest.mark.parametrize("fields, said", [
    ({"bytes_per_second": None}, 'has no "bytes_per_second"'),
    ({"bytes_per_second": -5}, "/bytes_per_second"),
    ({"launch_ns": 0.5}, "without fraction"),
    ({"operations_per_second": {"f32": 0}}, "must be 1 or more"),
    ({"bandwith": 5}, 'unknown key "bandwith"; there are: name, title'),
])
def test_a_malformed_device_says_what_is_wrong(a100, fields, said):
    done = lowtide("devices", a100(**fields))
    assert done.code == 2 and said in done.err and "mine.json" in done.err


def test_an_unknown_device_lists_those_that_there_are(chain):
    for arguments in (["devices", "h1000"], ["plan", chain, "--budget", "100%", "--device", "h1000"],
                      ["convert", chain, "-", "--device", "h1000"]):
        done = lowtide(*arguments)
        assert done.code == 2 and "h1000" in done.err and "a100, a100_40gb" in done.err


@pytest.mark.parametrize("command", [["plan", "--budget", "100%"], ["curve", "--points", "3"],
                                     ["fit", "--overhead", "5%"]])
@pytest.mark.parametrize("flags", [["--device", "h100"], ["--link", "12.5 GB/s, 5us"], ["--link", "25GB/s"],
                                   ["--device", "cpu", "--link", "25GB/s,10us"]])
def test_links_are_taken(chain, tmp_path, command, flags):
    done = lowtide(command[0], chain, *command[1:], "--time", "0.3", *flags, "--json")
    assert done.code == 0, done.err
    done.json()


def test_a_plan_names_its_machine_only_where_it_transfers(chain, tmp_path):
    path = tmp_path / "p.plan.json"
    assert lowtide("plan", chain, "--budget", "100%", "--link", "25GB/s", "-o", path).code == 0
    assert "machine" not in json.loads(path.read_text())
    assert lowtide("verify", chain, path).code == 0


def test_a_link_is_used_where_it_is_faster_than_computing_again(tmp_path):
    # The first tensor must be made again for the last op, or copied.
    graph = {"format": "lowtide-graph", "version": 1, "tick": "us",
             "tensors": [{"bytes": size} for size in (10, 10, 10, 1)],
             "ops": [{"inputs": inputs, "outputs": [i], "time": time}
                     for i, (inputs, time) in enumerate([([], 4), ([0], 1), ([1], 1), ([0, 2], 1)])],
             "outputs": [3]}
    path, plan = tmp_path / "again.graph.json", tmp_path / "again.plan.json"
    path.write_text(json.dumps(graph))

    def planned(*flags):
        return lowtide("plan", path, "--budget", "21", "--work", "20000", *flags, "--json", "-o", plan).json()

    plain = planned()
    assert (plain["status"], plain["duration"], plain["bound"], plain["host_peak"]) == ("optimal", 11, 11, 0)
    assert plain["techniques"] == ["recompute", "in_place"] and plain["duration_full_link"] is None
    slow = planned("--link", "25GB/s,10us")
    assert slow["duration"] == 11 and slow["bound"] <= 11 and slow["host_peak"] == 0
    # Out and back take 2 us each, less the 1 us of the op that is computed meanwhile.
    fast = planned("--link", "25GB/s,1us")
    assert (fast["duration"], fast["host_peak"], fast["duration_full_link"]) == (10, 10, 10)
    assert fast["techniques"] == ["recompute", "in_place", "offload"]
    written = json.loads(plan.read_text())
    assert written["machine"]["device_to_host"] == {"latency": 1, "bytes": 22500, "ticks": 1}
    assert written["full_link"]["device_to_host"] == {"latency": 1, "bytes": 25000, "ticks": 1}
    assert lowtide("verify", path, plan, "--json").json()["duration_full_link"] == 10
    undivided = planned("--link", "25GB/s,1us", "--derate", "0%")
    assert undivided["duration_full_link"] is None and "full_link" not in json.loads(plan.read_text())
    # What may not lie on the host is computed again.
    kept = planned("--link", "25GB/s,1us", "--host-budget", "9B")
    assert (kept["duration"], kept["host_peak"], kept["host_budget"]) == (11, 0, 9)
    assert planned("--link", "25GB/s,1us", "--techniques", "recompute,in_place")["duration"] == 11


def test_curve_and_fit_plan_with_links(tmp_path):
    graph, folder, plan = tmp_path / "g.graph.json", tmp_path / "plans", tmp_path / "fit.plan.json"
    assert lowtide("generate", "transformer", "--ops", "120", "-o", graph).code == 0
    link = ["--link", "2TB/s,1us", "--work", "300000", "--order", "given"]

    def overheads(*flags):
        done = lowtide("curve", graph, "--points", "4", "--from", "60%", *link, *flags, "--json").json()
        return [point["overhead_percent"] for point in done["points"]]

    copying, computing = overheads("-o", folder), overheads("--techniques", "recompute,in_place")
    assert all(a is not None and (b is None or a <= b + 0.05) for a, b in zip(copying, computing))
    assert sum(copying) < 0.5 * sum(computing)
    files = sorted(folder.glob("*.plan.json"))
    assert len(files) >= 4
    for path in files:
        assert lowtide("verify", graph, path).code == 0
    assert any(json.loads(path.read_text()).get("full_link") for path in files)
    link[3] = "3000000"
    small = lowtide("fit", graph, "--overhead", "1%", *link, "--host-budget", "1TiB", "-o", plan, "--json").json()
    large = lowtide("fit", graph, "--overhead", "1%", *link, "--techniques", "recompute,in_place", "--json").json()
    assert small["budget"] < large["budget"] and small["host_budget"] == 1 << 40
    assert lowtide("verify", graph, plan).code == 0 and json.loads(plan.read_text())["host_budget"] == 1 << 40


@pytest.mark.parametrize("link, said", [
    ("25", 'unit of "25"'), ("0GB/s", "less than one byte"), ("-1GB/s", "negative"), ("25GB/s,", "nothing after"),
    ("10us", 'unit "us"'), ("99999999999GB/s", "beyond 63 bits"), ("25GB/s,10", 'unit of "10"'),
])
def test_a_malformed_link_says_what_is_wrong(chain, link, said):
    done = lowtide("plan", chain, "--budget", "100%", f"--link={link}")
    assert done.code == 2 and f'--link "{link}"' in done.err and said in done.err and "25GB/s,10us" in done.err


@pytest.mark.parametrize("flag, said", [("--link", "does not say bytes a second"), ("--device", "there is none")])
def test_an_empty_link_or_device_is_not_taken_for_none(chain, flag, said):
    done = lowtide("plan", chain, "--budget", "100%", flag, "")
    assert done.code == 2 and f'{flag} "": {said}' in done.err


def test_a_link_needs_a_device_that_has_one_and_a_tick_of_time(chain, tmp_path):
    done = lowtide("plan", chain, "--budget", "100%", "--device", "cpu")
    assert done.code == 2 and '--device "cpu": has no link to the host' in done.err
    for tick in ("flop", "none"):
        other = tmp_path / "other.graph.json"
        other.write_text(json.dumps(json.loads(chain.read_text()) | {"tick": tick}))
        for flags in (["--device", "a100"], ["--link", "25GB/s"]):
            done = lowtide("curve", other, *flags)
            assert done.code == 2 and f'tick is "{tick}"' in done.err and "convert GRAPH OUT --device" in done.err
            assert done.err.startswith(f"lowtide: {flags[0]}")


def test_verify_takes_the_machine_from_the_file(chain, swap):
    done = lowtide("verify", chain, swap, "--json").json()
    # The copy out ends at 5 + 11, when it may be freed; X; the copy back from 18 to 29; C.
    assert done["ok"] and done["duration"] == 32 and done["host_peak"] == 6
    plan = json.loads(swap.read_text())
    del plan["machine"]
    swap.write_text(json.dumps(plan))
    done = lowtide("verify", chain, swap)
    assert done.code == 2 and "/machine" in done.err and "is missing" in done.err


def test_a_start_that_transfers_needs_a_link(chain, swap):
    start = ["plan", chain, "--budget", "100%", "--time", "0.3", "--start", swap]
    done = lowtide(*start)
    assert done.code == 2 and "name the link (--device or --link)" in done.err
    # Over another link the same steps take another time.
    for link in ("25GB/s,10us", "12GB/s,10us"):
        assert lowtide(*start, "--link", link).code == 0


@pytest.mark.parametrize("command", [["plan", "--budget", "100%"], ["curve", "--points", "3"],
                                     ["fit", "--overhead", "5%"]])
@pytest.mark.parametrize("flags, said", [
    (["--derate", "10%"], '--derate "10%": there is no link to derate: name a link'),
    (["--host-budget", "1GiB"], '--host-budget "1GiB": nothing is copied to the host: name a link'),
    (["--link", "25GB/s", "--derate", "100%"], '--derate "100%": leaves nothing of the link'),
    (["--link", "25GB/s", "--derate=-1%"], '--derate "-1%": is negative'),
    (["--link", "25GB/s", "--derate", "0.1"], "did you mean 10%?"),
    (["--link", "25GB/s", "--derate", "ten"], "is not a percentage"),
    (["--link", "25GB/s", "--host-budget", "60%"], '--host-budget "60%": is no number of bytes; write bytes (64GiB'),
    (["--link", "25GB/s", "--host-budget=-1"], '--host-budget "-1": is negative'),
])
def test_wrong_link_flags_are_refused(chain, command, flags, said):
    done = lowtide(command[0], chain, *command[1:], *flags)
    assert done.code == 2 and said in done.err and not done.out


def test_the_duration_over_the_full_link_is_a_claim(chain, swap):
    plan = json.loads(swap.read_text())
    full = {way: link | {"bytes": 2 * link["bytes"], "latency": 5} for way, link in MACHINE.items()}
    swap.write_text(json.dumps(plan | {"full_link": full, "claims": {"duration_full_link": 22}}))
    # The copy out ends at 5 + 6, when it may be freed; X; the copy back from 13 to 19; C.
    done = lowtide("verify", chain, swap, "--json").json()
    assert done["ok"] and done["duration"] == 32 and done["duration_full_link"] == 22
    assert "full link  22 us" in lowtide("verify", chain, swap).out
    swap.write_text(json.dumps(plan | {"full_link": full, "claims": {"duration_full_link": 23}}))
    done = lowtide("verify", chain, swap)
    assert done.code == 3 and "over the full link is 23, found is 22" in done.out


def test_a_host_budget_is_kept(chain, swap):
    plan = json.loads(swap.read_text())
    swap.write_text(json.dumps(plan | {"host_budget": 6}))
    assert lowtide("verify", chain, swap).code == 0
    swap.write_text(json.dumps(plan | {"host_budget": 5}))
    done = lowtide("verify", chain, swap)
    assert done.code == 3 and "the host's peak is 6 bytes, beyond its budget" in done.out
    written = swap.with_name("kept.plan.json")
    done = lowtide("plan", chain, "--budget", "100%", "--time", "0.3", "--link", "25GB/s", "--host-budget", "5 GiB",
                   "--json", "-o", written).json()
    assert done["host_budget"] == 5 << 30 and done["techniques"] == ["recompute", "in_place", "offload"]
    assert json.loads(written.read_text())["host_budget"] == 5 << 30


def test_convert_prices_anew(resnet, tmp_path):
    # Captured for an A100: priced for one, it stays nearly as it is, since a graph knows whole tensors alone.
    def times(path):
        text = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        graph = json.loads(text)
        return graph["tick"], [op["time"] for op in graph["ops"]]

    out = tmp_path / "out.graph.json"
    assert lowtide("convert", resnet, out, "--device", "a100").code == 0
    (tick, old), (same, new) = times(resnet), times(out)
    assert tick == same == "ns" and abs(sum(new) / sum(old) - 1) < 0.01
    assert sum(a == b for a, b in zip(old, new)) > 0.9 * len(old)
    assert lowtide("convert", resnet, out, "--device", "h100").code == 0
    assert sum(times(out)[1]) < 0.7 * sum(old)


def test_convert_names_the_op_that_has_no_price(chain):
    done = lowtide("convert", chain, "-", "--device", "a100")
    assert done.code == 2 and 'op 0 "A"' in done.err and 'has no "kind"' in done.err and '"flops"' in done.err
    graph = json.loads(chain.read_text())
    for op in graph["ops"]:
        op["attributes"] = {"flops": 10**12}
    for tick in ("us", "flop", "none"):
        done = lowtide("convert", "-", "-", "--device", "a100", stdin=json.dumps(graph | {"tick": tick}))
        assert done.code == 0, done.err
        priced = done.json()
        assert priced["tick"] == ("us" if tick == "us" else "ns")
        ns = 2000 + -(-(10**12) * 10**9 // 11_700_000_000_000)
        assert {op["time"] for op in priced["ops"]} == {-(-ns // 1000) if tick == "us" else ns}


def test_convert_prices_by_a_table(tmp_path):
    operand = {"argument": "self", "shape": [8], "strides": [1], "dtype": "f32"}
    graph, costs, out = (tmp_path / name for name in ("a.graph.json", "costs.json", "b.graph.json"))
    graph.write_text(json.dumps({
        "format": "lowtide-graph", "version": 1, "tick": "ns", "tensors": [{"bytes": 32, "shape": [8]}] * 2,
        "ops": [{"kind": "aten.relu", "inputs": [0], "outputs": [1], "time": 1, "operands": [operand | {"tensor": 0}]}],
        "outputs": [1]}))
    table = {"format": "lowtide-costs", "version": 1,
             "costs": [{"kind": "aten.relu", "operands": [operand], "time_ns": 77, "workspace": 5}]}
    costs.write_text(json.dumps(table | {"mood": 1}))
    done = lowtide("convert", graph, out, "--device", "a100", "--costs", costs)
    assert done.code == 0 and 'unknown key, without effect: "mood"' in done.err
    op = json.loads(out.read_text())["ops"][0]
    assert (op["time"], op["workspace"]) == (77, 5)
    costs.write_text(json.dumps(table | {"costs": table["costs"] * 2}))
    done = lowtide("convert", graph, out, "--device", "a100", "--costs", costs)
    assert done.code == 2 and "/costs/1" in done.err and "is listed before" in done.err
    assert lowtide("convert", graph, out, "--costs", costs).code == 2
