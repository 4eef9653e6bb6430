// The page's data and everything but the chart (report_chart.js).
//
// D.runs are one or two runs: the unplanned step, the plan. A run has points: in full pages one for each
// step, in sampled ones one for each stretch of steps, standing for the step with the most bytes.
//   what   5 x index + kind: an index into D.ops (compute, in place or not) or D.tensors (the rest)
//   over   in full pages: by point, the tensors that a step in place overwrites
//   live   bytes in use      clock  when the point has ended
//   extra  time lost so far  again  "1" where an op is computed again
//   tensors    [first, end) of D.tensors that are the run's, where a plan has a graph of its own
//   stretches  of parts of splits: [transform, part, depth, first point, last point]
//   lanes  of a plan that copies to the host: see report_lanes.js
const KINDS = ["compute", "compute in place", "free", "offload", "prefetch"];
const [COMPUTE, IN_PLACE, FREE, , PREFETCH] = KINDS.keys();
const ROLES = ["input", "parameter", "state", "constant", "activation", "gradient"];
const BANDS = ["fixed", "gradient", "activation", "workspace"];
const BAND_NAMES = ["inputs and parameters", "gradients", "activations", "workspace"];
const BAND_OF_ROLE = [0, 0, 0, 0, 2, 1];

class Run {
  constructor(data) {
    Object.assign(this, data);
    this.points = this.live.length;
    this.peakPoint = this.live.indexOf(this.peak);
    // Point i reaches from edges[i] to edges[i + 1].
    this.edges = { steps: new Float64Array(this.points + 1), time: new Float64Array(this.points + 1) };
    for (let i = 0; i < this.points; ++i) {
      this.edges.steps[i + 1] = Math.floor(((i + 1) * this.steps) / this.points);
      this.edges.time[i + 1] = this.clock[i];
    }
    if (D.full) this.bands = this.sumBands();
  }
  step(point) { return this.at ? this.at[point] : point; }
  kind(point) { return this.what[point] % KINDS.length; }
  index(point) { return Math.floor(this.what[point] / KINDS.length); }
  computes(point) { return this.kind(point) === COMPUTE || this.kind(point) === IN_PLACE; }
  overwritten(point) { return (this.over && this.over[point]) || []; }
  // The innermost part of a split that the point lies in, in words.
  partAt(point) {
    const around = (this.stretches || []).filter(([, , , first, last]) => first <= point && point <= last);
    if (!around.length) return "";
    const [transform, part] = around[around.length - 1], { what } = D.transforms[transform];
    return part < 0 ? `before the parts of ${what}` : `part ${part + 1} of ${what}`;
  }
  recomputes(point) { return this.again[point] === "1"; }
  workspaceAt(point) { return this.computes(point) ? D.ops[this.index(point)].workspace : 0; }

  // Tells of each tensor that comes to be live, or ceases to be, around the points up to `last`; and
  // of each point between the two.
  replay(last, comes, goes, passes = () => {}) {
    const [first, end] = this.tensors || [0, D.tensors.length];
    for (let i = first; i < end; ++i) if (D.tensors[i].maker < 0) comes(i);
    for (let i = 0; i <= last; ++i) {
      const kind = this.kind(i), index = this.index(i);
      this.overwritten(i).forEach(goes);
      if (this.computes(i)) D.ops[index].outputs.forEach(comes);
      if (kind === PREFETCH) comes(index);
      passes(i);
      if (kind === FREE && i < last) goes(index);
    }
  }
  // The bytes of each band at each point: [[band, bytes], ...].
  sumBands() {
    const bands = BANDS.map((name) => [name, new Float64Array(this.points)]), sums = [D.resident, 0, 0, 0];
    const add = (sign) => (i) => { sums[BAND_OF_ROLE[D.tensors[i].role]] += sign * D.tensors[i].bytes; };
    this.replay(this.points - 1, add(1), add(-1), (point) => {
      sums[3] = this.workspaceAt(point);
      bands.forEach(([, bytes], band) => { bytes[point] = sums[band]; });
    });
    return bands;
  }
  // What is in use at a point: tensors, the largest first, and [role, bytes, tensors].
  held(point) {
    if (!D.full || point < 0) return this;
    const live = new Set();
    this.replay(point, (i) => live.add(i), (i) => live.delete(i));
    const roles = ROLES.map((_, role) => [role, 0, 0]);
    for (const i of live) {
      roles[D.tensors[i].role][1] += D.tensors[i].bytes;
      ++roles[D.tensors[i].role][2];
    }
    const largest = [...live].sort((a, b) => D.tensors[b].bytes - D.tensors[a].bytes || a - b).slice(0, 50);
    return { largest, roles: roles.filter(([, bytes]) => bytes > 0), workspace: this.workspaceAt(point) };
  }
  // [what is done, where in the model]
  describe(point) {
    const [what, where] = describeCode(this.what[point]), over = this.overwritten(point).map((i) => D.tensors[i].name);
    return [`${what}${over.length ? ` over ${over.join(", ")}` : ""}`, where];
  }
}

// The same of an entry of `what`.
function describeCode(code) {
  const kind = code % KINDS.length, thing = (kind === COMPUTE || kind === IN_PLACE ? D.ops : D.tensors)[Math.floor(code / KINDS.length)];
  return [`${KINDS[kind]} ${thing.name}`, thing.origin];
}

// The file has columns; here they become objects.
const origin = (op) => D.origins[D.ops.origin[op]];
const makers = D.tensors.maker, opNames = D.ops.name;
D.tensors = D.tensors.name.map((name, i) => ({
  name: name === 0 ? opNames[makers[i]] : name, bytes: D.tensors.bytes[i], role: D.tensors.role[i], maker: makers[i],
  origin: makers[i] < 0 ? "" : origin(makers[i]), by: makers[i] < 0 ? "" : opNames[makers[i]],
}));
D.ops = opNames.map((name, i) => ({ name, origin: origin(i), workspace: D.ops.workspace[i], outputs: D.ops.outputs[i] }));
const runs = D.runs.map((data) => new Run(data));
const [own, plan] = runs;
const state = {
  shown: plan || own,  // drawn as an area; the cursor is on it
  axis: plan && plan.lanes ? "time" : "steps",  // copies have a place in time alone
  view: [0, 1],        // the part of the axis that is seen
  cursor: -1, pinned: -1,
};

// Shows below the chart what is in use at a point.
function pin(point) {
  const run = state.shown, atPeak = point === run.peakPoint || !D.full;
  state.pinned = atPeak ? run.peakPoint : point;
  drawChart();
  drawCursor();
  const atStart = state.pinned < 0, bytes = atStart ? run.peak : run.live[state.pinned];
  const share = (part) => part / Math.max(bytes, 1);
  const step = atStart ? "before the first step" : `at step ${countText(run.step(state.pinned))}`;
  $("state-title").textContent = `${bytesText(bytes)} in use ${step}${atPeak ? `, the peak${plan ? ` of the ${run.label}` : ""}` : ""}`;
  $("state-what").textContent = atStart ? "" : run.describe(state.pinned).filter((text) => text).join(" in ");
  $("to-peak").parentElement.hidden = atPeak;

  const held = run.held(state.pinned);
  const parts = held.roles.map(([role, size, count]) => [BANDS[BAND_OF_ROLE[role]], ROLES[role], size, `, ${plural(count, "tensor")}`]);
  parts.push(["workspace", "workspace", held.workspace, ""], ["fixed", "resident", D.resident, ""]);
  const seen = parts.filter(([, , size]) => size > 0).sort((a, b) => b[2] - a[2]);
  $("roles").replaceChildren(...seen.map(([band, , size]) => element("div", { class: band, style: `flex:${share(size)} 0 0` })));
  $("roles").setAttribute("aria-label", seen.map(([, name, size]) => `${name} ${bytesText(size)}`).join(", "));
  $("role-list").replaceChildren(...seen.map(([band, name, size, count]) =>
    element("li", {}, element("span", { class: `key ${band}` }), `${name} ${bytesText(size)} (${percentText(100 * share(size), 1)}${count})`)));

  const rows = held.largest.map((i) => D.tensors[i]), most = Math.max(1, ...rows.map((tensor) => tensor.bytes));
  const columns = [
    { title: "bytes", kind: "number", text: (tensor) => bytesText(tensor.bytes), value: (tensor) => tensor.bytes },
    { title: "share", kind: "number", text: (tensor) => percentText(100 * share(tensor.bytes), 1), value: (tensor) => tensor.bytes },
    { title: "", kind: "meter", value: (tensor) => tensor.bytes / most },
    { title: "tensor", kind: "name", text: (tensor) => tensor.name },
    { title: "role", kind: "name short", text: (tensor) => ROLES[tensor.role] },
    { title: "origin", kind: "name", text: (tensor) => tensor.origin },
    { title: "made by", kind: "name", text: (tensor) => (tensor.by === tensor.name ? "" : tensor.by) },
  ];
  if (rows.length) $("tensors").replaceChildren(table("The largest tensors in use", columns.filter(({ value, text }) => value || rows.some(text)), rows, { long: true }));
}

function drawFigures() {
  const figure = (title, before, value, note) => element("div", {},
    element("div", { class: "muted" }, title),
    element("div", { class: "value" }, before ? element("span", { class: "muted" }, `${before} \u2192 `) : "", element("b", {}, value)),
    element("div", { class: "muted small" }, note));
  const peak = (plan || own).peak, left = D.budget - (D.taken ?? peak);
  const list = [plan
    ? figure("Peak memory", bytesText(own.peak), bytesText(peak), own.peak === peak ? "as unplanned" : `${changeText(own.peak, peak)} against unplanned`)
    : figure("Peak memory", "", bytesText(peak), "unplanned")];
  if (D.budget !== null) list.push(figure(D.footprint ? `Budget, ${D.footprint}` : "Budget", "", bytesText(D.budget), plan && D.notice ? "the plan breaks a rule" : left < 0 ? `exceeded by ${bytesText(-left)}` : `kept, ${bytesText(left)} to spare`));
  if (plan) {
    const bound = D.bound === null || !D.base ? "" : `; no plan${D.transforms ? " with these transforms" : ""} has less than ${percentText(100 * (D.bound / D.base - 1))}`;
    list.push(figure("Overhead", "", percentText(plan.overhead), `${ticksText(own.duration)} \u2192 ${ticksText(plan.duration)}${bound}`));
    list.push(figure("Recomputed", "", plural(plan.recomputations, "op"), `of ${countText(plan.computations)} computations, ${ticksText(plan.recomputedTime)}`));
    if (plan.lanes && plan.lanes.moved.length) list.push(figure("Copied to the host", "", bytesText(plan.lanes.bytesOut), hiddenText(plan.lanes)));
    if (plan.lanes && plan.lanes.network) list.push(figure("On the network", "", ticksText(plan.lanes.sending), hiddenText(plan.lanes, plan.lanes.sending, plan.lanes.sentHidden)));
  } else {
    list.push(figure("Duration", "", ticksText(own.duration), "of computing each op once"));
    list.push(figure("Inputs and parameters", "", bytesText(D.inputs), "in use from the start"));
  }
  if (D.reserved) list.push(figure("Reserved", "", bytesText(D.reserved.bytes), [D.reserved.text, D.reserved.help].filter(Boolean).join(" ")));
  $("figures").replaceChildren(...list);
}

function drawSums() {
  const rows = [
    ["peak", (run) => bytesText(run.peak)],
    ["at step", (run) => (run.peakPoint < 0 ? "the start" : countText(run.peakStep))],
    ["duration", (run) => ticksText(run.duration)],
    ["overhead", (run) => percentText(run.overhead)],
    ["steps", (run) => countText(run.steps)],
    ["computations", (run) => countText(run.computations)],
    ["recomputations", (run) => countText(run.recomputations)],
    ["recomputed time", (run) => ticksText(run.recomputedTime)],
  ];
  if (runs.some((run) => run.inPlace)) rows.push(["in place", (run) => countText(run.inPlace)]);
  if (runs.some((run) => run.transfers)) rows.push(["transfers", (run) => countText(run.transfers)], ["peak on the host", (run) => bytesText(run.hostPeak)]);
  const columns = runs.map((run) => ({ title: run.label, kind: "number", text: ([, text]) => text(run) }));
  $("sums").replaceChildren(table("Figures of the runs", [{ title: "", kind: "name", text: ([name]) => name }, ...columns], rows, { still: true }));
}

function drawRecomputed(groups) {
  const rows = groups.map(([what, ops, times, time]) => ({ what, ops, times, time }));
  const all = Math.max(1, rows.reduce((sum, row) => sum + row.time, 0)), most = Math.max(1, ...rows.map((row) => row.time));
  $("recomputed-part").hidden = rows.length === 0;
  $("recomputed-title").textContent = `Recomputed time by ${D.recomputedBy}`;
  $("recomputed").replaceChildren(table("Recomputed time", [
    { title: "time", kind: "number", text: (row) => ticksText(row.time), value: (row) => row.time },
    { title: "share", kind: "number", text: (row) => percentText((100 * row.time) / all, 1), value: (row) => row.time },
    { title: "", kind: "meter", value: (row) => row.time / most },
    { title: "times", kind: "number", text: (row) => countText(row.times), value: (row) => row.times },
    { title: "ops", kind: "number", text: (row) => countText(row.ops), value: (row) => row.ops },
    { title: D.recomputedBy, kind: "name", text: (row) => row.what },
  ], rows, { long: true }));
}

function drawTransforms() {
  const rows = D.transforms || [];
  $("transforms-part").hidden = rows.length === 0;
  $("transforms").replaceChildren(table("Transforms of the graph", [
    { title: "transform", kind: "name", text: (row) => row.what },
    { title: "ops made", kind: "number", text: (row) => (row.ops ? countText(row.ops) : "") },
    { title: "steps", kind: "number", text: (row) => (row.ops ? `${countText(row.first)} to ${countText(row.last)}` : "") },
    { title: "peak there", kind: "number", text: (row) => (row.ops ? bytesText(row.peak) : "") },
  ], rows, { still: true }));
}

function drawParts() {
  const rows = D.parts.filter((part) => part.work || part.plans), timed = rows.some((part) => part.seconds);
  const share = (ticks) => (ticks ? percentText((100 * ticks) / Math.max(1, D.base)) : "");
  $("parts-part").hidden = rows.length === 0;
  $("parts").replaceChildren(table("What each solver took and found", [
    { title: "solver", kind: "name", text: (row) => row.name },
    timed
      ? { title: "seconds", kind: "number", text: (row) => row.seconds.toFixed(3) }
      : { title: "work", kind: "number", text: (row) => countText(row.work) },
    { title: "plans", kind: "number", text: (row) => (row.plans ? countText(row.plans) : "") },
    { title: "less overhead", kind: "number", text: (row) => share(row.won) },
    { title: "higher bound", kind: "number", text: (row) => share(row.bound) },
  ], rows, { still: true }));
}

function drawLegend() {
  const run = state.shown, bands = run.bands
    ? run.bands.map(([band], i) => [band, BAND_NAMES[i]]).filter((_, i) => run.bands[i][1].some((bytes) => bytes > 0))
    : [["total", run.label]];
  const entries = [...bands.reverse(), ...runs.filter((other) => other !== run).map((other) => ["own", other.label])];
  if (D.budget !== null) entries.push(["budget", "budget"]);
  if (run.recomputations) entries.push(["again", "computed again"]);
  if (run.stretches) entries.push(["region", "parts of a split"]);
  if (run.lanes && run.lanes.stalled) entries.push(["stall", `waiting for ${waitedFor(run)}`]);
  $("legend").replaceChildren(...entries.map(([key, text]) => element("li", {}, element("span", { class: `key ${key}` }), text)));
}

function offer(host, choices, current, choose) {
  host.hidden = choices.length < 2;
  const buttons = choices.map(([value, text]) => {
    const button = element("button", { type: "button", "aria-pressed": value === current() }, text[0].toUpperCase() + text.slice(1));
    button.onclick = () => {
      choose(value);
      buttons.forEach((other, i) => other.setAttribute("aria-pressed", choices[i][0] === current()));
    };
    return button;
  });
  host.replaceChildren(...buttons);
}

function show(run) {
  state.shown = run;
  state.cursor = -1;
  drawLegend();
  const chart = $("chart");
  chart.setAttribute("aria-valuemin", 0);
  chart.setAttribute("aria-valuemax", Math.max(run.steps - 1, 0));
  chart.setAttribute("aria-valuenow", Math.min(run.peakStep, Math.max(run.steps - 1, 0)));
  chart.setAttribute("aria-valuetext", `${run.label}, peak ${bytesText(run.peak)}`);
  pin(run.peakPoint);
}

// The same steps stay in view.
function chooseAxis(axis) {
  const all = state.view[0] === 0 && state.view[1] === 1 || !state.shown.points;
  const ends = state.view.map((end) => pointAt(state.shown, end * extent()));
  state.axis = axis;
  if (all) setView(0, 1);
  else setView(edges(state.shown)[ends[0]] / extent(), edges(state.shown)[ends[1] + 1] / extent());
}

function main() {
  document.querySelector("main").hidden = false;
  document.querySelector("h1").textContent = D.name || "Graph";
  $("about").textContent = [plural(D.opCount, "op"), plural(D.tensorCount, "tensor"), `inputs and parameters ${bytesText(D.inputs)}`,
    ...(D.resident ? [`resident ${bytesText(D.resident)}`] : []), ...(D.full ? [] : ["drawn from the peaks of stretches of steps"])].join(", ");
  $("notice").textContent = D.notice;
  $("notice").hidden = !D.notice;
  $("to-peak").onclick = () => pin(state.shown.peakPoint);
  offer($("choose-run"), runs.map((run) => [run, run.label]), () => state.shown, show);
  offer($("choose-axis"), [["steps", "Steps"], ["time", "Time"]], () => state.axis, chooseAxis);
  drawFigures();
  drawSums();
  drawTransforms();
  drawParts();
  drawCopied();
  let groups = D.recomputedAlike.length ? D.recomputedAlike : D.recomputed;
  const draw = (which) => drawRecomputed(groups = which);
  draw(groups);
  const ways = [[D.recomputedAlike, "Alike together"], [D.recomputed, "Each"]];
  offer($("choose-groups"), ways.filter(([which]) => which.length), () => groups, draw);
  show(state.shown);
  listen();
}
