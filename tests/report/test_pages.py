"""The pages in a browser: what is seen of them, and what pointer and keys do.  A picture of each is kept in build/pictures."""

import functools

import pytest
from conftest import SCHEMES, SOURCE, WIDTHS

PICTURES = SOURCE / "build" / "pictures"

# Of every text that is seen its colour and what lies behind its middle, as [text, red, green, blue, red, green, blue].
COLOURS = """() => {
  const rgb = (text) => text.match(/[\\d.]+/g).map(Number);
  const over = ([r, g, b, a = 1], under) => [r, g, b].map((part, i) => part * a + under[i] * (1 - a));
  const found = [];
  for (const node of document.querySelectorAll("main *")) {
    if (![...node.childNodes].some((child) => child.nodeType === 3 && child.data.trim())) continue;
    const box = node.getBoundingClientRect();
    if (!box.width || !node.checkVisibility()) continue;
    node.scrollIntoView({ block: "center" });
    const now = node.getBoundingClientRect();
    const behind = document.elementsFromPoint(now.left + now.width / 2, now.top + now.height / 2).reverse();
    let ground = [255, 255, 255];
    for (const other of behind) {
      if (other === node || other.tagName === "text") continue;
      const style = getComputedStyle(other), svg = other.ownerSVGElement;
      const paint = svg ? style.fill : style.backgroundColor;
      if (!paint.startsWith("rgb")) continue;
      const colour = rgb(paint);
      colour[3] = (colour[3] ?? 1) * (svg ? style.fillOpacity * style.opacity : style.opacity);
      ground = over(colour, ground);
    }
    const style = getComputedStyle(node), halo = style.paintOrder.startsWith("stroke") && style.stroke.startsWith("rgb");
    if (halo) ground = rgb(style.stroke).slice(0, 3);
    found.push([node.textContent.trim(), ...over(rgb(node.ownerSVGElement ? style.fill : style.color), ground), ...ground]);
  }
  return found;
}"""


def luminance(colour):
    parts = [part / 255 for part in colour]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def wait_until(page, condition):
    """Wait for the first frame in which the condition holds.

    Playwright's `wait_for_function` evaluates text anew at each poll, which the pages' content security policy forbids.
    """
    page.evaluate("() => new Promise((resolve) => { const look = () => "
                  f"({condition}) ? resolve() : requestAnimationFrame(look); look(); }})")


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["report", "link", "curve", "partition", "snapshot"])
def test_a_page_fits_and_can_be_read(name, scheme, width, opened):
    page = opened(name, scheme, width)
    assert page.locator("main").is_visible() and page.locator("h1").inner_text()
    PICTURES.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=PICTURES / f"{name}-{scheme}-{width}.png", full_page=True)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    faint = {text: contrast(colours[:3], colours[3:]) for text, *colours in page.evaluate(COLOURS)}
    assert not {text: ratio for text, ratio in faint.items() if ratio < 4.5}


def test_labels_of_peak_and_budget_do_not_cover_each_other(opened):
    """Where the peak is the budget, on a narrow screen."""
    page = opened("report", width=390)
    boxes = [label.bounding_box() for label in page.locator("#chart .peak-text, #chart .budget-text").all()]
    assert len(boxes) == 3
    for i, one in enumerate(boxes):
        for other in boxes[:i]:
            apart = (one["x"] + one["width"] <= other["x"] or other["x"] + other["width"] <= one["x"] or
                     one["y"] + one["height"] <= other["y"] or other["y"] + other["height"] <= one["y"])
            assert apart, (one, other)


def middle(page, selector):
    box = page.locator(selector).bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def seen(page):
    return page.evaluate("state.view")


@pytest.mark.parametrize("name", ["report", "link"])
def test_zoom(name, opened):
    page = opened(name)
    x, y = middle(page, "#chart")
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    wait_until(page, "state.view[1] - state.view[0] < 1")
    assert page.locator("#overview").is_visible()
    page.mouse.dblclick(x, y)
    assert seen(page) == [0, 1] and not page.locator("#overview").is_visible()

    page.mouse.move(x - 100, y)
    page.mouse.down()
    page.mouse.move(x + 100, y, steps=3)
    page.mouse.up()
    low, high = seen(page)
    assert 0 < low < 0.5 < high < 1
    page.locator("#zoom-in").click()
    assert seen(page)[1] - seen(page)[0] == pytest.approx((high - low) / 2)
    page.locator("#zoom-out").click()
    assert seen(page) == pytest.approx([low, high])
    page.locator("#zoom-all").click()
    assert seen(page) == [0, 1]


def test_keys_of_a_report(opened):
    page = opened("report")
    chart = page.locator("#chart")
    chart.focus()

    def step():
        return int(chart.get_attribute("aria-valuenow"))

    peak = step()
    page.keyboard.press("ArrowRight")
    assert step() == peak + 1 and page.locator("#tip").is_visible()
    page.keyboard.press("Shift+ArrowLeft")
    assert step() == peak - 49
    page.keyboard.press("Home")
    assert step() == 0
    page.keyboard.press("Enter")
    assert "at step 0" in page.locator("#state-title").inner_text()
    page.keyboard.press("r")
    assert ", again" in chart.get_attribute("aria-valuetext")
    page.keyboard.press("+")
    assert seen(page)[1] - seen(page)[0] == pytest.approx(0.6)
    page.keyboard.press("p")
    assert step() == peak
    page.keyboard.press("0")
    assert seen(page) == [0, 1]
    page.keyboard.press("Tab")
    assert not page.locator("#tip").is_visible()


def test_pointing_at_a_report(opened):
    page = opened("report")
    x, y = middle(page, "#chart")
    page.mouse.move(x, y)
    tip = page.locator("#tip")
    assert "at step" in tip.inner_text() and "unplanned here" in tip.inner_text()
    page.mouse.click(x, y)
    assert "at step" in page.locator("#state-title").inner_text()
    assert page.locator("#to-peak").is_visible()
    page.locator("#to-peak").click()
    assert "the peak" in page.locator("#state-title").inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()


def test_a_report_shows_either_run_over_steps_or_time(opened):
    page = opened("report")
    plan = page.locator("#state-title").inner_text()
    page.get_by_role("button", name="Unplanned").click()
    assert page.locator("#state-title").inner_text() != plan
    page.get_by_role("button", name="Time", exact=True).click()
    assert page.evaluate("state.axis") == "time"


def test_pointing_at_copies(opened):
    page = opened("link")
    box = page.locator("#lanes path.copy-out").bounding_box()
    page.mouse.move(box["x"] + 3, box["y"] + box["height"] / 2)
    assert "offload of" in page.locator("#tip").inner_text() or "copies out" in page.locator("#tip").inner_text()


@pytest.mark.parametrize("name, host", [("report", "#tensors"), ("curve", "#points"), ("partition", "#kinds")])
def test_tables_are_sorted_by_their_headings(name, host, opened):
    page = opened(name)
    heads = page.locator(f"{host} th:has(button)")
    for i in range(heads.count()):
        head, column = heads.nth(i), heads.nth(i).evaluate("head => head.cellIndex")
        orders = []
        for press in (head.locator("button").click, functools.partial(page.keyboard.press, "Enter")):
            press()
            assert head.get_attribute("aria-sort") in ("ascending", "descending")
            assert page.locator(f"{host} th[aria-sort]").count() == 1
            orders.append(page.locator(f"{host} tbody tr td:nth-child({column + 1})").all_inner_texts())
        assert sorted(orders[0]) == sorted(orders[1])
        assert orders[0] == orders[1][::-1] or len(set(orders[0])) < len(orders[0])


def test_a_curve_answers_to_pointer_and_keys(opened):
    page = opened("curve")
    chart, tip = page.locator("#chart"), page.locator("#tip")
    page.mouse.move(*middle(page, "#chart"))
    assert "of the baseline peak" in tip.inner_text()
    page.mouse.move(5, 5)
    assert not tip.is_visible()
    chart.focus()
    page.keyboard.press("Home")
    assert chart.get_attribute("aria-valuenow") == "0"
    page.keyboard.press("ArrowRight")
    assert chart.get_attribute("aria-valuenow") == "1" and "overhead" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_a_partition_answers_to_pointer_and_keys(opened):
    page = opened("partition")
    tip = page.locator("#tip")
    number = page.evaluate("blocks.find((block) => block.inside.length && block.parent !== null).number")
    block = page.locator(f"#chart [data-block='{number}']").first
    block.hover()
    assert "inside" in tip.inner_text()
    block.click()
    assert page.evaluate("focus.number") == number
    page.locator("#outward").click()
    assert page.evaluate("focus.parent") is None

    page.locator("#chart").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("selected.level") == 1 and tip.is_visible()
    page.keyboard.press("Enter")
    assert page.evaluate("focus.level") == 1
    page.keyboard.press("Escape")
    assert page.evaluate("focus.level") == 0
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+Tab")
    assert not tip.is_visible()


def test_a_window_of_another_width_is_drawn_anew(opened):
    for name in ("report", "curve", "partition"):
        page = opened(name)
        page.set_viewport_size({"width": 500, "height": 900})
        wait_until(page, "document.querySelector('#chart svg').clientWidth <= 500 && "
                         "Number(document.querySelector('#chart svg').getAttribute('width')) <= 500")
