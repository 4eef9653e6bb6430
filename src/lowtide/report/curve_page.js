// Overhead against budget. D.points come by ascending budgets; D.smallest is the smallest budget
// for which there is a plan, which may lie below all of them.
const LEFT = 72, RIGHT = 22, TOP = 26, BOTTOM = 56;
const isLive = D.footprint === "live";
const overheadOf = (ticks) => (D.base ? 100 * (ticks / D.base - 1) : 0);
const shareText = (bytes) => percentText(D.ownPeak ? (100 * bytes) / D.ownPeak : 100, 1);

// In the table all of them; in the chart those of the range that was asked for, since one far beyond
// it would press all others together.
const all = [...D.points];
if (D.smallest && !all.some((point) => point.budget === D.smallest.budget)) all.push(D.smallest);
all.sort((a, b) => a.budget - b.budget);
const inRange = (budget) => budget >= D.points[0].budget && budget <= D.points[D.points.length - 1].budget;
const points = all.filter((point) => inRange(point.budget));
for (const point of all) {
  point.overhead = point.duration === null ? null : overheadOf(point.duration);
  point.boundOverhead = point.bound === null ? null : overheadOf(point.bound);
}
// The smallest budget that a point's plan keeps.
const needs = (point) => point.taken ?? point.peak;
const planned = points.filter((point) => point.overhead !== null);
// The curve beside it: the least overhead of its plans within each budget.
const besides = (D.beside ? D.beside.points : []).filter((point) => point.duration !== null).sort((a, b) => needs(a) - needs(b));
const besideWithin = (budget) => {
  const durations = besides.filter((point) => needs(point) <= budget).map((point) => point.duration);
  return durations.length ? overheadOf(Math.min(...durations)) : null;
};
const lacking = D.beside ? D.techniques.filter((name) => !D.beside.techniques.includes(name)).join(", ").replaceAll("_", " ") : "";
const besideText = lacking ? `without ${lacking}` : "beside it";
let geometry, cursor = -1, everything = false;

// Where few points are far above all others, as budgets near the smallest are, they are left out at
// first so that the others can be seen.
const sorted = planned.map((point) => point.overhead).sort((a, b) => a - b);
const most = Math.max(0, ...sorted, ...(sorted.length ? [] : points.map((point) => point.boundOverhead ?? 0))), high = sorted[Math.floor((sorted.length * 3) / 4)] ?? 0;
const beyond = high > 0 && most > 3 * high ? 2 * high : null;
// Below 0 if plans hide more of the network than the given order.
const least = Math.min(0, ...sorted, ...points.map((point) => point.boundOverhead ?? 0));

function scales(width, height) {
  const first = points[0].budget, last = points[points.length - 1].budget;
  const margin = (last - first) * 0.02 || Math.max(1, last * 0.02);
  const range = [first - margin, last + margin];
  const top = 1.08 * Math.max(0.5, everything ? most : beyond ?? most);
  const x = (budget) => LEFT + ((budget - range[0]) / (range[1] - range[0])) * (width - LEFT - RIGHT);
  const low = 1.08 * least;
  const y = (percent) => height - BOTTOM - ((Math.min(percent, top) - low) / (top - low)) * (height - TOP - BOTTOM);
  return { width, height, right: width - RIGHT, range, low, top, x, y };
}

function drawAxes(node, { height, right, range, low, top, x, y }) {
  const step = roundUp((top - low) / 7), digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-6));
  for (let i = Math.ceil(low / step); i * step <= top; ++i)
    node.append(
      svg("line", { class: "grid", x1: LEFT, x2: right, y1: y(i * step), y2: y(i * step) }),
      svg("text", { x: LEFT - 10, y: y(i * step) + 4, "text-anchor": "end" }, `${(i * step).toFixed(digits)} %`));
  const unit = 1024 ** Math.min(6, Math.floor(Math.log2(Math.max(range[1], 1)) / 10));
  const wide = unit * Math.max(roundUp((range[1] - range[0]) / unit / Math.max(2, right / 110)), unit > 1 ? 0 : 1);
  for (let i = Math.ceil(Math.max(range[0], 0) / wide); i * wide <= range[1]; ++i) {
    const at = x(i * wide);
    node.append(
      svg("line", { class: "axis", x1: at, x2: at, y1: y(low), y2: y(low) + 5 }),
      svg("text", { x: at, y: y(low) + 20, "text-anchor": "middle" }, i ? axisText(i * wide, wide, range[1], 1024, BYTES) : "0"),
      svg("text", { x: at, y: y(low) + 35, "text-anchor": "middle" }, shareText(i * wide)));
  }
  node.append(
    svg("line", { class: "axis", x1: LEFT, x2: right, y1: y(low), y2: y(low) }),
    svg("text", { x: right, y: height - 6, "text-anchor": "end" }, "budget, and its share of the baseline peak"));
}

// From what a plan needs on its height to the right, from each point the bound's to the left.
function drawStairs(node, { right, low, x, y }) {
  const bounded = points.filter((point) => point.boundOverhead !== null && point.budget >= D.floor);
  if (bounded.length) {
    const start = x(Math.max(D.floor, points[0].budget));
    const stairs = bounded.map((point) => `V${px(y(point.boundOverhead))}H${px(x(point.budget))}`).join("");
    node.append(
      svg("path", { class: "proven", d: `M${px(start)},${px(y(low))}${stairs}V${px(y(low))}Z` }),
      svg("path", { class: "proven-line", d: `M${px(start)},${px(y(bounded[0].boundOverhead))}${stairs}` }));
  }
  const start = (point, i) => x(Math.max(needs(point), planned[i - 1]?.budget ?? points[0].budget));
  if (planned.length)
    node.append(svg("path", { class: "plans", d: planned.map((point, i) => `${i ? `H${px(start(point, i))}V` : `M${px(start(point, i))},`}${px(y(point.overhead))}`).join("") + `H${px(right)}` }));
}

// Its plans as stairs down to the right, from the smallest that is in the range.
function drawBeside(node, { range, right, x, y }) {
  let path = "";
  for (const point of besides) {
    const from = Math.max(needs(point), points[0].budget), at = px(x(from)), height = px(y(besideWithin(from)));
    if (from <= range[1]) path += path ? `H${at}V${height}` : `M${at},${height}`;
  }
  if (path) node.append(svg("path", { class: "beside", d: `${path}H${px(right)}` }));
}

function drawFloor(node, { range, low, x, y, right }) {
  if (D.floor <= range[0]) return;
  const at = Math.min(x(D.floor), right);
  node.append(
    svg("rect", { class: "impossible", x: LEFT, y: TOP, width: Math.max(0, at - LEFT), height: y(low) - TOP }),
    svg("line", { class: "impossible-line", x1: at, x2: at, y1: TOP, y2: y(low) }));
  if (at - LEFT > 110) node.append(svg("text", { class: "impossible-text", x: at - 6, y: TOP + 14, "text-anchor": "end" }, "no plan fits"));
}

function drawChart() {
  const height = window.innerWidth < 640 ? 320 : 440;
  const [node, width] = frame($("chart"), height);
  geometry = scales(width, height);
  const { x, y } = geometry;
  drawAxes(node, geometry);
  drawFloor(node, geometry);
  drawStairs(node, geometry);
  drawBeside(node, geometry);
  for (const point of planned) {
    const at = x(point.budget), kind = point.status === "optimal" ? "dot optimal" : "dot";
    node.append(point.overhead > geometry.top
      ? svg("path", { class: kind, d: `M${px(at)},${TOP - 5}l5,8h-10z` })
      : svg("circle", { class: kind, cx: at, cy: y(point.overhead), r: 4 }));
  }
  if (D.smallest && D.smallest.duration !== null && inRange(D.smallest.budget)) {
    const at = x(D.smallest.budget), right = at < width - 190;
    node.append(svg("text", { class: "strong halo", x: at + (right ? 9 : -9), y: y(overheadOf(D.smallest.duration)) - 8, "text-anchor": right ? "start" : "end" }, `smallest ${bytesText(D.smallest.budget)}`));
  }
  node.append(svg("g", { id: "over" }));
  drawLegend();
  drawCursor();
}

function linesOf(point) {
  const line = (kind, text) => element("div", { class: kind }, text);
  const lines = [line("strong", `${bytesText(point.budget)}, ${shareText(point.budget)} of the baseline peak`)];
  if (point.overhead === null) lines.push(line("", point.status === "infeasible" ? "proven: no plan fits" : "no plan was found"));
  else lines.push(
    line("", `overhead ${percentText(point.overhead)}${point.status === "optimal" ? ", proven the least" : ""}`),
    line("muted", `${ticksText(point.duration)}, peak ${bytesText(point.peak)}${isLive ? "" : `, ${D.footprint} ${bytesText(point.taken)}`}`));
  if (D.beside) lines.push(line("muted", `${besideText} ${besideWithin(point.budget) === null ? "no plan was found" : percentText(besideWithin(point.budget))}`));
  if (point.boundOverhead !== null && point.status !== "optimal") lines.push(line("muted", `no plan has less than ${percentText(point.boundOverhead)}`));
  if (point.note && point.overhead === null) lines.push(line("muted", point.note));
  return lines;
}

function drawCursor() {
  const over = $("over"), tip = $("tip"), point = points[cursor];
  over.replaceChildren();
  tip.hidden = !point;
  if (!point) return;
  const at = geometry.x(point.budget);
  over.append(svg("line", { class: "cursor", x1: at, x2: at, y1: TOP, y2: geometry.height - BOTTOM }));
  if (point.overhead !== null) over.append(svg("circle", { class: "pinned", cx: at, cy: geometry.y(point.overhead), r: 5 }));
  tip.replaceChildren(...linesOf(point));
  const chart = $("chart").getBoundingClientRect(), left = chart.left + (at * chart.width) / geometry.width;
  const fits = left + 16 + tip.offsetWidth < document.documentElement.clientWidth - 8;
  tip.style.left = `${window.scrollX + Math.max(8, fits ? left + 16 : left - 16 - tip.offsetWidth)}px`;
  tip.style.top = `${window.scrollY + chart.top + TOP}px`;
  $("chart").setAttribute("aria-valuenow", cursor);
  $("chart").setAttribute("aria-valuetext", linesOf(point).map((line) => line.textContent).join(", "));
}

function listen() {
  const chart = $("chart");
  const moveTo = (i) => { cursor = Math.min(Math.max(i, 0), points.length - 1); drawCursor(); };
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect(), at = ((event.clientX - box.left) * geometry.width) / box.width;
    const far = points.map((point) => Math.abs(geometry.x(point.budget) - at));
    moveTo(far.indexOf(Math.min(...far)));
  });
  const leave = () => { cursor = -1; drawCursor(); };
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("blur", leave);
  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const actions = {
      ArrowLeft: () => moveTo(cursor < 0 ? points.length - 1 : cursor - 1), ArrowRight: () => moveTo(cursor + 1),
      Home: () => moveTo(0), End: () => moveTo(points.length - 1), Escape: leave,
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  });
  new ResizeObserver(() => requestAnimationFrame(() => { if (chart.clientWidth !== geometry.width) drawChart(); })).observe(chart);
}

function drawFigures() {
  const figure = (title, value, note) => element("div", {}, element("div", { class: "muted" }, title),
    element("div", { class: "value" }, value), element("div", { class: "muted small" }, note));
  const list = [figure("Baseline peak", bytesText(D.ownPeak), "without a plan")];
  // A plan of the baseline peak, since the budgets that were asked for may all be larger.
  const free = Math.min(...all.filter((point) => point.duration === D.base).map(needs));
  if (Number.isFinite(free)) list.push(figure("Without overhead", bytesText(free), `${shareText(free)} of the baseline peak`));
  const half = planned.filter((point) => point.budget <= D.ownPeak / 2).pop();
  if (half) list.push(figure(`At ${shareText(half.budget)}`, percentText(half.overhead), half.status === "optimal" ? "overhead, proven the least" : half.boundOverhead === null ? "overhead" : `overhead; no plan has less than ${percentText(half.boundOverhead)}`));
  const where = !D.smallest || inRange(D.smallest.budget) ? "" : D.smallest.budget < D.points[0].budget ? ", below this range" : ", above this range";
  if (D.smallest) list.push(figure("Smallest budget", bytesText(D.smallest.budget), `found${where}, at ${percentText(D.smallest.overhead ?? overheadOf(D.smallest.duration))} overhead; none can need less than ${bytesText(D.floor)}`));
  $("figures").replaceChildren(...list);
}

function drawTable() {
  const percent = (value) => (value === null ? "\u2013" : percentText(value));
  const rows = [...all].reverse(), missing = -1;
  $("points").replaceChildren(table("Points of the curve", [
    { title: "budget", kind: "number", text: (point) => bytesText(point.budget), value: (point) => point.budget },
    { title: "share", kind: "number", text: (point) => shareText(point.budget), value: (point) => point.budget },
    { title: "overhead", kind: "number", text: (point) => percent(point.overhead), value: (point) => point.overhead ?? missing },
    ...(D.beside ? [{ title: besideText, kind: "number", text: (point) => percent(besideWithin(point.budget)), value: (point) => besideWithin(point.budget) ?? missing }] : []),
    { title: "bound", kind: "number", text: (point) => percent(point.boundOverhead), value: (point) => point.boundOverhead ?? missing },
    { title: "duration", kind: "number", text: (point) => (point.duration === null ? "\u2013" : ticksText(point.duration)), value: (point) => point.duration ?? missing },
    { title: "peak", kind: "number", text: (point) => (point.peak === null ? "\u2013" : bytesText(point.peak)), value: (point) => point.peak ?? missing },
    ...(isLive ? [] : [{ title: D.footprint, kind: "number", text: (point) => (point.taken === null ? "\u2013" : bytesText(point.taken)), value: (point) => point.taken ?? missing }]),
    { title: "status", kind: "name", text: (point) => (point === D.smallest ? `${point.status}, the smallest found` : point.status), value: (point) => point.status },
  ], rows));
}

function drawLegend() {
  const entries = [];
  if (planned.some((point) => point.status !== "optimal")) entries.push(["plan", "overhead of the plan"]);
  if (planned.some((point) => point.status === "optimal")) entries.push(["plan optimal", "proven the least"]);
  if (planned.some((point) => point.overhead > geometry.top)) entries.push(["far", "far above"]);
  if (besides.length) entries.push(["beside", `overhead ${besideText}`]);
  if (points.some((point) => point.boundOverhead > 0)) entries.push(["proven", "no plan has so little, proven"]);
  if (D.floor > geometry.range[0]) entries.push(["impossible", "no plan fits, proven"]);
  $("legend").replaceChildren(...entries.map(([key, text]) => element("li", {}, element("span", { class: `key ${key}` }), text)));
}

function main() {
  document.querySelector("main").hidden = false;
  document.querySelector("h1").textContent = D.name || "Graph";
  const counted = { live: [], arena: ["budgets limit the arena"], reserved: [`budgets limit what PyTorch's allocator reserves${D.allocator ? ` with ${D.allocator}` : ""}`] };
  $("about").textContent = [plural(D.opCount, "op"), plural(D.tensorCount, "tensor"), `${D.order} order`, `${ticksText(D.base)} without recomputation`, ...counted[D.footprint]].join(", ");
  drawFigures();
  drawTable();
  $("everything").hidden = beyond === null;
  $("everything").onclick = () => {
    everything = !everything;
    $("everything").setAttribute("aria-pressed", everything);
    drawChart();
  };
  drawChart();
  $("chart").setAttribute("aria-valuemin", 0);
  $("chart").setAttribute("aria-valuemax", points.length - 1);
  listen();
}
