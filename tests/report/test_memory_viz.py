"""Snapshots of plans in PyTorch's own page memory_viz, in a browser.

PyTorch's packages do not contain the page's script, and the script loads d3 from a network. So a test takes MemoryViz.js from the folder
LOWTIDE_MEMORY_VIZ (torch/utils/viz of a checkout of PyTorch) and d3 from there too, or from the package mpld3, and hands them out itself.
"""

import base64
import importlib.util
import json
import os
import pickle
from pathlib import Path

import pytest
from conftest import GRAPH, _run

ORIGIN = "http://memory-viz.test"
D3 = "d3.v5.min.js"
# Modules of d3 that the script imports, made of the whole library. `event` is what a listener is called with.
MODULES = """
const of = window.d3;
export let event = null;
for (const kind of ["mouseover", "mousedown", "mouseleave", "keydown"])
  document.addEventListener(kind, now => { event = now; }, true);
export const select = of.select, selectAll = of.selectAll, format = of.format, axisLeft = of.axisLeft, scaleLinear = of.scaleLinear,
  zoom = of.zoom, zoomIdentity = of.zoomIdentity, brushX = of.brushX;
"""
PAGE = """<!DOCTYPE html><html><head></head><body><script src="/d3.js"></script><script type="module">
import {add_local_files} from "/MemoryViz.js";
add_local_files([{name: "snapshot.pickle", base64: "SNAPSHOT"}], "VIEW");
</script></body></html>"""


def _script():
    folder = Path(os.environ.get("LOWTIDE_MEMORY_VIZ", ""))
    script = folder / "MemoryViz.js"
    if not os.environ.get("LOWTIDE_MEMORY_VIZ") or not script.is_file():
        pytest.skip("no MemoryViz.js (LOWTIDE_MEMORY_VIZ: torch/utils/viz of a checkout of PyTorch)")
    package = importlib.util.find_spec("mpld3")
    places = [folder / D3, *([Path(package.origin).parent / "js" / D3] if package and package.origin else [])]
    library = next(filter(Path.is_file, places), None)
    if library is None:
        pytest.skip(f"no {D3} (in LOWTIDE_MEMORY_VIZ, or of the package mpld3)")
    return script.read_text(encoding="utf-8"), library.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def plan(tmp_path_factory):
    """A snapshot, and the plan's file."""
    folder = tmp_path_factory.mktemp("viewer")
    _run("plan", GRAPH, "--budget", "50%", "--work", 100_000, "-o", folder / "plan.json")
    _run("show", GRAPH, folder / "plan.json", "--snapshot", folder / "plan.pickle")
    return (folder / "plan.pickle").read_bytes(), json.loads((folder / "plan.json").read_text())


@pytest.fixture
def viewed(browser, plan):
    """viewed(name of a view): PyTorch's page with the snapshot."""
    script, library = _script()
    snapshot = plan[0] + b"\0" * (-len(plan[0]) % 3)
    faults, contexts = [], []

    def viewed(view):
        index = PAGE.replace("SNAPSHOT", base64.b64encode(snapshot).decode()).replace("VIEW", view)
        files = {"/": ("text/html", index), "/d3.js": ("text/javascript", library), "/MemoryViz.js": ("text/javascript", script)}

        def answer(route):
            url = route.request.url
            kind, text = files.get(url.removeprefix(ORIGIN), ("text/javascript", MODULES if "/d3" in url else ""))
            route.fulfill(body=text, content_type=kind, headers={"Access-Control-Allow-Origin": "*"})

        contexts.append(browser.new_context(viewport={"width": 1400, "height": 900}))
        page = contexts[-1].new_page()
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" and "favicon" not in message.text else None)
        page.route("**/*", answer)
        page.goto(f"{ORIGIN}/")
        return page

    yield viewed
    for context in contexts:
        context.close()
    assert not faults


def test_the_timeline_of_memory_has_the_plans_peak_and_names_its_ops(viewed, plan):
    page = viewed("Active Memory Timeline")
    page.wait_for_selector("polygon")
    [events] = pickle.loads(plan[0])["device_traces"]
    bands = page.evaluate("window.d3.selectAll('polygon').data().filter(d => d && d.elem !== undefined && d.elem !== 'summarized')")
    assert len(bands) == sum(event["action"] == "alloc" for event in events)
    assert max(max(band["offsets"]) + band["size"] for band in bands) == plan[1]["claims"]["peak"]
    page.locator("polygon").nth(len(bands) // 2).dispatch_event("mouseover", {"bubbles": True})
    said = page.locator("pre").first.inner_text()
    names = {frame["name"] for event in events for frame in event["frames"]}
    assert "Addr: b7f" in said and any(name in said for name in names)


def test_the_history_of_the_allocator_ends_where_the_snapshot_does(viewed, plan):
    page = viewed("Allocator State History")
    page.wait_for_selector("svg rect")
    snapshot = pickle.loads(plan[0])
    page.wait_for_function("document.body.innerText.includes('reserved)')")
    [events] = snapshot["device_traces"]
    assert page.locator("pre").count() - 1 == sum(event["action"] != "free_requested" for event in events)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"] if block["state"] == "active_allocated"]
    allocated, reserved = sum(b["requested_size"] for b in blocks), sum(s["total_size"] for s in snapshot["segments"])
    said = page.locator("body").inner_text()
    assert f"({allocated} bytes) allocated / " in said and f"({reserved} bytes) reserved)" in said


def test_the_timeline_of_segments_shows_them(viewed, plan):
    page = viewed("Active Cached Segment Timeline")
    page.wait_for_selector("polygon")
    bands = page.evaluate("window.d3.selectAll('polygon').data().filter(d => d && d.elem !== undefined && d.elem !== 'summarized')")
    assert sorted(band["size"] for band in bands) == sorted(s["total_size"] for s in pickle.loads(plan[0])["segments"])
