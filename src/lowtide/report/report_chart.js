// The chart: memory over steps or time, and the cursor on it. report_page.js comes first and gives
// the runs and `state`.
const LEFT = 72, RIGHT = 14, TOP = 26, BOTTOM = 44;
let geometry;  // of the latest drawing: from pixels to the axis and back

const edges = (run) => run.edges[state.axis];
const extent = () => Math.max(1, ...runs.map((run) => edges(run)[run.points]));
const centre = (run, point) => (edges(run)[point] + edges(run)[point + 1]) / 2;

function highest() {
  const most = Math.max(1, ...runs.map((run) => Math.max(run.start, run.peak)));
  return 1.05 * (D.budget !== null && D.budget <= 1.5 * most ? Math.max(most, D.budget) : most);
}

// The first point that ends after `value`.
function pointAt(run, value) {
  let low = 0, high = run.points - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (edges(run)[middle + 1] > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

// The points within [low, high), merged until each piece is a pixel wide. A piece stands for its
// point with the most bytes, so that no peak is lost.
function pieces(run, [low, high], x) {
  const at = edges(run), out = [];
  let last = null;
  for (let i = pointAt(run, low); i < run.points && at[i] < high; ++i) {
    const to = x(Math.min(at[i + 1], high));
    if (last && last.to - last.from < 1) {
      last.to = to;
      if (run.live[i] > run.live[last.point]) last.point = i;
      last.again ||= run.recomputes(i);
    } else {
      last = { from: x(Math.max(at[i], low)), to, point: i, again: run.recomputes(i) };
      out.push(last);
    }
  }
  return out;
}

// The outline of a stack's layer between two lists of heights, one for each piece.
function layer(parts, upper, lower) {
  if (!parts.length) return "";
  const there = parts.map((part, i) => `V${px(upper[i])}H${px(part.to)}`);
  const back = parts.map((part, i) => `V${px(lower[i])}H${px(part.from)}`).reverse();
  return `M${px(parts[0].from)},${px(lower[0])}${there.join("")}${back.join("")}Z`;
}

// The upper edge of a run: a line that is open at both ends.
const edge = (run, parts, y) =>
  parts.map((part, i) => `${i ? "V" : `M${px(part.from)},`}${px(y(run.live[part.point]))}H${px(part.to)}`).join("");

// Parts of splits, behind the curve: every other one darker, inner ones below the outer's edge.
function drawStretches(node, [low, high], x, base) {
  const run = state.shown, at = edges(run);
  for (const [, part, depth, first, last] of run.stretches || []) {
    const from = Math.max(at[first], low), to = Math.min(at[last + 1], high);
    if (from >= to || x(to) - x(from) < 0.3) continue;
    const top = TOP + 7 * depth, kind = part < 0 ? "before" : part % 2 ? "odd" : "even";
    node.append(svg("rect", { class: `part ${kind}`, x: px(x(from)), y: top, width: px(x(to) - x(from)), height: base - top }));
  }
}

// Both runs into `node`; gives the pieces of the one that is shown.
function drawRuns(node, range, x, y) {
  const run = state.shown, parts = pieces(run, range, x);
  const others = runs.filter((other) => other !== run).map((other) => [other, pieces(other, range, x)]);
  for (const [other, pieces] of others)
    node.append(svg("path", { class: "own", d: layer(pieces, pieces.map((part) => y(other.live[part.point])), pieces.map(() => y(0))) }));
  let sums = parts.map(() => 0);
  for (const [name, bytes] of run.bands || [["total", run.live]]) {
    const above = parts.map((part, i) => sums[i] + bytes[part.point]);
    node.append(svg("path", { class: name, d: layer(parts, above.map(y), sums.map(y)) }));
    sums = above;
  }
  for (const [other, pieces] of others) node.append(svg("path", { class: "own-line", d: edge(other, pieces, y) }));
  return parts;
}

function drawChart() {
  const height = window.innerWidth < 640 ? 300 : 400;
  const [node, width] = frame($("chart"), height);
  const range = state.view.map((part) => part * extent()), top = highest();
  const right = width - RIGHT, slope = (right - LEFT) / (range[1] - range[0]);
  const x = (value) => LEFT + (value - range[0]) * slope;
  const y = (value) => height - BOTTOM - (value / top) * (height - TOP - BOTTOM);
  geometry = { width, height, right, x, y, value: (at) => range[0] + (at - LEFT) / slope };

  drawStretches(node, range, x, y(0));
  drawRows(node, top, right, y);
  const run = state.shown, parts = drawRuns(node, range, x, y);
  node.append(svg("path", { class: "line", d: edge(run, parts, y) }));
  const again = parts.filter((part) => part.again);
  const over = again.filter((part) => run.recomputes(part.point));
  node.append(
    svg("path", { class: "again", d: over.map((part) => `M${px(part.from)},${px(y(run.live[part.point]))}h${px(Math.max(part.to - part.from, 1.5))}`).join("") }),
    svg("path", { class: "rug", d: again.map((part) => `M${px(part.from)},${y(0) + 3}V${y(0) + 9}h${px(Math.max(part.to - part.from, 1))}V${y(0) + 3}z`).join("") }),
    svg("line", { class: "axis", x1: LEFT, x2: right, y1: y(0), y2: y(0) }));
  drawColumns(node, range, x, y(0), right);
  const budgetSeen = D.budget !== null && D.budget <= top;
  if (budgetSeen) node.append(svg("line", { class: "budget-line", x1: LEFT, x2: right, y1: y(D.budget), y2: y(D.budget) }));
  for (const each of runs) drawPeak(node, each, range);
  if (budgetSeen) drawBudgetText(node, right, y(D.budget));
  const pin = state.pinned < 0 ? -1 : centre(run, state.pinned);
  if (pin >= range[0] && pin <= range[1]) {
    const height = y(run.live[state.pinned]);
    node.append(svg("line", { class: "pin", x1: x(pin), x2: x(pin), y1: height, y2: y(0) }), svg("circle", { class: "pinned", cx: x(pin), cy: height, r: 4 }));
  }
  node.append(svg("g", { id: "over" }));
  drawLanes(range);
  drawOverview();
}

// Above its line, or below where the label of a peak is there.
function drawBudgetText(node, right, line) {
  const text = svg("text", { class: "budget-text halo", x: right - 4, y: line - 7, "text-anchor": "end" }, `budget ${bytesText(D.budget)}`);
  node.append(text);
  const mine = text.getBBox();
  const covers = ({ x, y, width, height }) => x < mine.x + mine.width && mine.x < x + width && y < mine.y + mine.height && mine.y < y + height;
  if ([...node.querySelectorAll(".peak-text")].some((label) => covers(label.getBBox()))) text.setAttribute("y", line + 16);
}

function drawRows(node, top, right, y) {
  const unit = 1024 ** Math.min(6, Math.floor(Math.log2(Math.max(top, 1)) / 10));
  const step = unit * Math.max(roundUp(top / unit / 7), unit > 1 ? 0 : 1);
  for (let value = 0; value < top; value += step) {
    node.append(
      svg("line", { class: "grid", x1: LEFT, x2: right, y1: y(value), y2: y(value) }),
      svg("text", { x: LEFT - 10, y: y(value) + 4, "text-anchor": "end" }, value ? axisText(value, step, top, 1024, BYTES) : "0"));
  }
}

function drawColumns(node, [low, high], x, base, right) {
  const steps = state.axis === "steps";
  const step = Math.max(roundUp((high - low) / Math.max(2, right / 100)), steps ? 1 : 0);
  for (let i = Math.ceil(low / step); i * step <= high; ++i) {
    const at = x(i * step), anchor = at > right - 24 ? "end" : "middle";
    node.append(
      svg("line", { class: "axis", x1: at, x2: at, y1: base + 10, y2: base + 14 }),
      svg("text", { x: at, y: base + 27, "text-anchor": anchor }, steps ? countText(i * step) : ticksOnAxis(i * step, step, high)));
  }
  node.append(svg("text", { x: right, y: base + 42, "text-anchor": "end" }, steps ? "step" : "time"));
}

function drawPeak(node, run, [low, high]) {
  const value = run.peakPoint < 0 ? 0 : centre(run, run.peakPoint);
  if (value < low || value > high) return;
  const at = geometry.x(value), height = geometry.y(run.peak), right = at < geometry.width - 130;
  const shown = run === state.shown;
  node.append(
    svg("circle", { class: shown ? "dot" : "dot other", cx: at, cy: height, r: 4 }),
    svg("text", { class: shown ? "peak-text strong halo" : "peak-text halo", x: at + (right ? 9 : -9), y: height - 8, "text-anchor": right ? "start" : "end" }, bytesText(run.peak)));
}

function drawOverview() {
  const [low, high] = state.view;
  $("overview").hidden = low === 0 && high === 1;
  if ($("overview").hidden) return;
  const [node, width] = frame($("overview"), 44);
  const across = width - LEFT - RIGHT;
  drawRuns(node, [0, extent()], (value) => LEFT + (value / extent()) * across, (value) => 42 - (value / highest()) * 38);
  node.append(svg("rect", { class: "window", x: LEFT + low * across, y: 1, width: Math.max(2, (high - low) * across), height: 42, rx: 3 }));
}

function drawCursor() {
  const over = $("over"), tip = $("tip"), { shown: run, cursor } = state;
  over.replaceChildren();
  tip.hidden = cursor < 0;
  if (cursor < 0) return;
  const value = centre(run, cursor), at = Math.min(Math.max(geometry.x(value), LEFT), geometry.right);
  over.append(
    svg("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: geometry.height - BOTTOM }),
    svg("circle", { class: "dot", cx: at, cy: geometry.y(run.live[cursor]), r: 4 }));

  const [what, where] = run.describe(cursor), again = run.recomputes(cursor);
  const line = (kind, ...text) => element("div", { class: kind }, ...text);
  const lines = [
    line("strong", `${bytesText(run.live[cursor])} at step ${countText(run.step(cursor))}`),
    line("", what, again ? element("span", { class: "mark" }, ", again") : ""),
    line("muted", where),
    line("muted", run.partAt(cursor)),
    line("muted", `${ticksText(run.clock[cursor])}, overhead so far ${percentText(D.base ? (100 * run.extra[cursor]) / D.base : 0)}`),
  ];
  for (const other of runs)
    if (other !== run && value < edges(other)[other.points])
      lines.push(line("muted", `${other.label} here: ${bytesText(other.live[pointAt(other, value)])}`));
  tip.replaceChildren(...lines);
  placeTip(at, $("chart").getBoundingClientRect().top + TOP);
  $("chart").setAttribute("aria-valuenow", run.step(cursor));
  $("chart").setAttribute("aria-valuetext", `step ${run.step(cursor)}, ${what}${again ? ", again" : ""}, ${bytesText(run.live[cursor])}`);
}

// Beside `at`, in pixels of the chart; `top` in the window.
function placeTip(at, top) {
  const tip = $("tip"), chart = $("chart").getBoundingClientRect(), left = chart.left + (at * chart.width) / geometry.width;
  const fits = left + 16 + tip.offsetWidth < document.documentElement.clientWidth - 8;
  tip.style.left = `${window.scrollX + Math.max(8, fits ? left + 16 : left - 16 - tip.offsetWidth)}px`;
  tip.style.top = `${window.scrollY + top}px`;
}

// Of the points that share a pixel, the one that is drawn.
function pointUnder(at) {
  const run = state.shown;
  if (!run.points) return -1;
  let best = pointAt(run, geometry.value(at - 0.5));
  for (let i = best; i < run.points && edges(run)[i] < geometry.value(at + 0.5); ++i)
    if (run.live[i] > run.live[best]) best = i;
  return best;
}

function setView(low, high) {
  const least = Math.min(1, 8 / extent());
  const size = Math.min(1, Math.max(high - low, state.axis === "steps" ? least : 1e-4));
  const start = Math.min(Math.max((low + high - size) / 2, 0), 1 - size);
  state.view = [start, start + size];
  drawChart();
  drawCursor();
}
const centreView = (at) => setView(at - (state.view[1] - state.view[0]) / 2, at + (state.view[1] - state.view[0]) / 2);
function zoom(factor, about = (state.view[0] + state.view[1]) / 2) {
  setView(about + (state.view[0] - about) * factor, about + (state.view[1] - about) * factor);
}
function moveTo(point) {
  const run = state.shown;
  if (!run.points) return;
  state.cursor = Math.min(Math.max(point, 0), run.points - 1);
  const at = centre(run, state.cursor) / extent();
  if (at < state.view[0] || at > state.view[1]) centreView(at);
  else drawCursor();
}

function listen() {
  const chart = $("chart"), overview = $("overview");
  const pixel = (event) => {
    const box = chart.getBoundingClientRect();
    return Math.min(Math.max(((event.clientX - box.left) * geometry.width) / box.width, LEFT), geometry.right);
  };
  const part = (at) => geometry.value(at) / extent();
  const leave = () => { state.cursor = -1; drawCursor(); };
  let from = null;

  chart.addEventListener("wheel", (event) => {
    const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
    const delta = sideways ? event.deltaX || event.deltaY : event.deltaY;
    const size = state.view[1] - state.view[0];
    // Where there is nothing to zoom out to, the page may scroll.
    if (size === 1 && (sideways || delta > 0)) return;
    event.preventDefault();
    if (sideways) setView(state.view[0] + (delta / 800) * size, state.view[1] + (delta / 800) * size);
    else zoom(Math.exp(Math.min(Math.max(delta, -200), 200) / 400), part(pixel(event)));
  }, { passive: false });
  chart.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    from = pixel(event);
    chart.setPointerCapture(event.pointerId);
  });
  chart.addEventListener("pointermove", (event) => {
    const at = pixel(event);
    state.cursor = pointUnder(at);
    drawCursor();
    if (from === null || Math.abs(at - from) <= 4) return;
    $("over").append(svg("rect", { class: "chosen", x: Math.min(at, from), y: TOP, width: Math.abs(at - from), height: geometry.height - TOP - BOTTOM }));
  });
  chart.addEventListener("pointerup", (event) => {
    if (from === null) return;
    const at = pixel(event), dragged = Math.abs(at - from) > 4;
    if (dragged) setView(part(Math.min(at, from)), part(Math.max(at, from)));
    else pin(pointUnder(at));
    from = null;
  });
  chart.addEventListener("pointercancel", () => { from = null; });
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("blur", leave);
  chart.addEventListener("dblclick", () => setView(0, 1));
  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const at = state.cursor >= 0 ? state.cursor : Math.max(state.pinned, 0), far = event.shiftKey ? 50 : 1;
    const about = centre(state.shown, at) / extent();
    const actions = {
      arrowleft: () => moveTo(at - far), arrowright: () => moveTo(at + far),
      home: () => moveTo(0), end: () => moveTo(state.shown.points - 1),
      "+": () => zoom(0.6, about), "=": () => zoom(0.6, about), "-": () => zoom(1 / 0.6, about), 0: () => setView(0, 1),
      p: () => moveTo(state.shown.peakPoint), r: () => moveTo(Math.max(state.shown.again.indexOf("1", at + 1), at)),
      enter: () => pin(at), " ": () => pin(at), escape: () => { leave(); setView(0, 1); },
    };
    const action = actions[event.key.toLowerCase()];
    if (!action || !state.shown.points) return;
    event.preventDefault();
    action();
  });

  const drag = (event) => {
    if (!(event.buttons & 1)) return;
    const box = overview.getBoundingClientRect();
    centreView((((event.clientX - box.left) * geometry.width) / box.width - LEFT) / (geometry.right - LEFT));
  };
  overview.addEventListener("pointerdown", (event) => { overview.setPointerCapture(event.pointerId); drag(event); });
  overview.addEventListener("pointermove", drag);
  $("zoom-in").onclick = () => zoom(0.5);
  $("zoom-out").onclick = () => zoom(2);
  $("zoom-all").onclick = () => setView(0, 1);
  listenToLanes();
  new ResizeObserver(() => requestAnimationFrame(() => {
    if (chart.clientWidth === geometry.width) return;
    drawChart();
    drawCursor();
  })).observe(chart);
}
