// The lanes of a plan that copies to the host or uses the network, over time, below the chart:
// computing, copies out, copies in, network. report_chart.js comes first.
//
// run.lanes has, in columns, the copies of the lanes `out` and `in` (in sampled pages one for each of
// several that follow one another: `count` of them, with the largest one's tensor) and the stalls, in
// which computing waits: `what` is done then, as of points, or -1 at the end of the run. If the graph
// has network ops, `network` has them, `what` as of points.
const LANE = 16, LANE_GAP = 5;
const lanesOf = (run) => ["compute", ...(run.lanes.moved.length ? ["out", "in"] : []), ...(run.lanes.network ? ["network"] : [])];
const spansOf = (run, name) => (name === "compute" ? run.lanes.stalls : run.lanes[name]);
const laneTop = (lane) => 4 + lane * (LANE + LANE_GAP);

// The first span that ends after `time`.
function spanAt(spans, time) {
  let low = 0, high = spans.end.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (spans.end[middle] > time) high = middle;
    else low = middle + 1;
  }
  return low;
}

// Boxes for those within [low, high), merged where they share a pixel. None is narrower than `least`:
// many short stalls must not look like long ones.
function boxes(spans, [low, high], lane, least = 0.8) {
  const out = [];
  let from = -1, to = -1;
  const put = () => { if (from >= 0) out.push(`M${from.toFixed(2)},${laneTop(lane)}h${Math.max(to - from, least).toFixed(2)}v${LANE}H${from.toFixed(2)}z`); };
  for (let i = spanAt(spans, low); i < spans.end.length && spans.begin[i] < high; ++i) {
    const left = geometry.x(Math.max(spans.begin[i], low)), right = geometry.x(Math.min(spans.end[i], high));
    // A line between two copies, where there is room for one.
    if (from >= 0 && (left - to > 0.6 || right - from > 4)) { put(); from = -1; }
    if (from < 0) from = left + (right - left > 3 ? 0.6 : 0);
    to = right;
  }
  put();
  return out.join("");
}

function drawLanes(range) {
  const run = state.shown, { right, x } = geometry;
  $("lanes").hidden = !run.lanes || state.axis !== "time";
  if ($("lanes").hidden) return;
  const names = lanesOf(run);
  const [node] = frame($("lanes"), laneTop(names.length) + 2);
  names.forEach((name, lane) => node.append(
    svg("rect", { class: "lane", x: LEFT, y: laneTop(lane), width: right - LEFT, height: LANE }),
    svg("text", { x: LEFT - 10, y: laneTop(lane) + 12, "text-anchor": "end" }, name)));
  const whole = { begin: [0], end: [run.clock[run.points - 1] || 0] };
  const again = { begin: [], end: [] };
  for (let i = pointAt(run, range[0]); i < run.points && run.edges.time[i] < range[1]; ++i)
    if (run.recomputes(i)) { again.begin.push(run.edges.time[i]); again.end.push(run.edges.time[i + 1]); }
  const others = [["copy-out", "out"], ["copy-in", "in"], ["sent", "network"]].filter(([, name]) => names.includes(name));
  for (const [kind, spans, lane] of [["computing", whole, 0], ["computing-again", again, 0], ["stall", run.lanes.stalls, 0],
    ...others.map(([kind, name]) => [kind, run.lanes[name], names.indexOf(name)])])
    node.append(svg("path", { class: kind, d: boxes(spans, range, lane, kind === "stall" ? 0.1 : 0.8) }));
  node.append(svg("g", { id: "over-lanes" }));
}

function hiddenText(lanes, time = lanes.copying, hiddenTime = lanes.hidden) {
  const hidden = time ? hiddenTime / time : 1;
  return `${percentText(100 * hidden, 1)} of the time hidden; computing ${lanes.stalled ? `waits for ${ticksText(lanes.stalled)}` : "never waits"}`;
}

function drawCopied() {
  $("copied-part").hidden = !plan || !plan.lanes || !plan.lanes.moved.length;
  if ($("copied-part").hidden) return;
  const { bytesOut, bytesIn, moved, rest } = plan.lanes;
  $("copied-sum").textContent = `${bytesText(bytesOut)} out, ${bytesText(bytesIn)} in, ${hiddenText(plan.lanes)}`;
  const row = ([tensor, out, back, bytes, time, hidden]) => ({ tensor: D.tensors[tensor], out, back, bytes, time, share: time ? hidden / time : 1 });
  const rows = [...moved, ...rest].map(row), most = Math.max(1, ...rows.map((one) => one.bytes));
  const columns = [
    { title: "bytes", kind: "number", text: (one) => bytesText(one.bytes), value: (one) => one.bytes },
    { title: "", kind: "meter", value: (one) => one.bytes / most },
    { title: "out", kind: "number", text: (one) => countText(one.out), value: (one) => one.out },
    { title: "in", kind: "number", text: (one) => countText(one.back), value: (one) => one.back },
    { title: "time", kind: "number", text: (one) => ticksText(one.time), value: (one) => one.time },
    { title: "hidden", kind: "number", text: (one) => percentText(100 * one.share, 1), value: (one) => one.share },
    { title: "tensor", kind: "name", text: (one) => (one.tensor ? one.tensor.name : "all others") },
    { title: "origin", kind: "name", text: (one) => (one.tensor ? one.tensor.origin : "") },
  ];
  const seen = columns.filter(({ value, text }) => value || rows.some(text));
  $("copied").replaceChildren(table("Copied to the host", seen, rows, { long: true }));
}

const waitedFor = (run) => [...(run.lanes.moved.length ? ["copies"] : []), ...(run.lanes.network ? ["the network"] : [])].join(" or ");

// What the lane does at that time, as lines of the tip, and the span it is; null for nothing.
function laneNews(lane, time, near) {
  const run = state.shown, name = lanesOf(run)[lane], spans = spansOf(run, name);
  const i = spanAt(spans, time - near);
  if (i >= spans.end.length || spans.begin[i] > time + near) return null;
  const took = `${ticksText(spans.begin[i])} to ${ticksText(spans.end[i])}, ${ticksText(spans.end[i] - spans.begin[i])}`;
  if (lane === 0) {
    const what = spans.what[i] < 0 ? "The end" : describeCode(spans.what[i])[0];
    return [i, spans, [`Waiting ${ticksText(spans.end[i] - spans.begin[i])}`, `${what} waits for ${waitedFor(run)}`, took]];
  }
  if (name === "network") {
    const time = spans.end[i] - spans.begin[i];
    return [i, spans, [describeCode(spans.what[i])[0], `${percentText(100 * (time ? spans.hidden[i] / time : 1), 1)} of the time hidden`, took]];
  }
  const tensor = D.tensors[spans.tensor[i]], several = spans.count[i] > 1;
  const hidden = spans.copying[i] ? spans.hidden[i] / spans.copying[i] : 1;
  return [i, spans, [
    several ? `${plural(spans.count[i], "copy").replace("copys", "copies")} ${name}, the largest ${tensor.name}` : `${name === "out" ? "offload" : "prefetch"} of ${tensor.name}`,
    `${bytesText(spans.bytes[i])}, ${percentText(100 * hidden, 1)} of the time hidden`, took, tensor.origin]];
}

function listenToLanes() {
  const host = $("lanes"), tip = $("tip");
  const leave = () => {
    tip.hidden = true;
    if ($("over-lanes")) $("over-lanes").replaceChildren();
  };
  host.addEventListener("pointermove", (event) => {
    const box = host.getBoundingClientRect();
    const at = ((event.clientX - box.left) * geometry.width) / box.width;
    const lane = Math.floor((event.clientY - box.top - 4 + LANE_GAP / 2) / (LANE + LANE_GAP));
    leave();
    if (lane < 0 || lane >= lanesOf(state.shown).length || at < LEFT || at > geometry.right) return;
    const news = laneNews(lane, geometry.value(at), Math.abs(geometry.value(at + 1) - geometry.value(at)));
    if (!news) return;
    const [i, spans, [head, ...lines]] = news, left = Math.max(geometry.x(spans.begin[i]), LEFT);
    $("over-lanes").replaceChildren(svg("rect", { class: "chosen-copy", x: px(left), y: laneTop(lane), height: LANE,
      width: px(Math.max(1.5, Math.min(geometry.x(spans.end[i]), geometry.right) - left)) }));
    tip.replaceChildren(element("div", { class: "strong" }, head), ...lines.filter((line) => line).map((line) => element("div", { class: "muted" }, line)));
    tip.hidden = false;
    placeTip(at, box.top + laneTop(lane) + LANE + 6);
  });
  host.addEventListener("pointerleave", leave);
}
