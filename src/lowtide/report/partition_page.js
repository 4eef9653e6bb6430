// A tree of blocks, level by level. D.blocks: [parent, level, name, forward from, to, backward from,
// to, alike, children, interface, saved]; positions are those of D.order's ops.
const ROW = 26, HEAD = 20, GAP = 14, MOST_ROWS = 14, THINNEST = 0.35;
const blocks = D.blocks.map(([parent, level, name, f0, f1, b0, b1, alike, children, crossing, saved], number) =>
  ({ number, parent, level, name, halves: [[f0, f1], [b0, b1]], alike, children, crossing, saved, inside: [] }));
for (const block of blocks) if (block.parent !== null) blocks[block.parent].inside.push(block);
for (const block of blocks) block.inside.sort((a, b) => a.halves[0][0] - b.halves[0][0] || a.halves[1][0] - b.halves[1][0]);
const times = new Map();
for (const { alike } of blocks) times.set(alike, (times.get(alike) || 0) + 1);
const opsOf = ({ halves }) => halves.reduce((sum, [from, to]) => sum + to - from, 0);
// Kinds with several blocks, those with the most ops first, have hues far from one another.
const kinds = blocks.filter((block) => block.alike === block.number && block.parent !== null)
  .sort((a, b) => times.get(b.number) * opsOf(b) - times.get(a.number) * opsOf(a));
const hues = new Map(kinds.filter((block) => times.get(block.number) > 1).map((block, i) => [block.number, (205 + i * 137.5) % 360]));
const colour = (block) => `hsl(${hues.get(block.alike)} 48% 62%)`;
const title = (block) => (block.parent === null ? "whole graph" : block.name || `block ${block.number}`);

let focus = blocks[0], selected = null, geometry;

// Within the width both halves of the block in focus, each as wide as its ops.
function scales(width) {
  const total = opsOf(focus) || 1, [forward, backward] = focus.halves;
  const gap = forward[1] > forward[0] && backward[1] > backward[0] ? GAP : 0;
  const unit = (width - gap) / total, turn = (forward[1] - forward[0]) * unit + gap;
  return { width, x: [(at) => (at - forward[0]) * unit, (at) => turn + (at - backward[0]) * unit] };
}

function place(block, half) {
  const [from, to] = block.halves[half], left = geometry.x[half](from);
  return { x: left, y: HEAD + (block.level - focus.level) * ROW, width: geometry.x[half](to) - left, height: ROW - 2 };
}

// Those in focus and inside it that can be seen.
function* visible() {
  const open = [focus];
  while (open.length) {
    const block = open.pop();
    if (block.level - focus.level >= MOST_ROWS) continue;
    const boxes = [0, 1].map((half) => place(block, half)).filter((box) => box.width > THINNEST);
    if (!boxes.length) continue;
    yield [block, boxes];
    open.push(...block.inside);
  }
}

function drawChart() {
  const host = $("chart"), deepest = (block) => {
    let most = block.level;
    const open = [block];
    while (open.length) {
      const now = open.pop();
      most = Math.max(most, now.level);
      if (most - block.level >= MOST_ROWS - 1) return MOST_ROWS - 1 + block.level;
      open.push(...now.inside);
    }
    return most;
  };
  const rows = deepest(focus) - focus.level + 1;
  const [node, width] = frame(host, HEAD + rows * ROW);
  geometry = scales(width);
  ["forward", "backward"].forEach((word, half) => {
    const [from, to] = focus.halves[half];
    if (to > from) node.append(svg("text", { x: geometry.x[half](from), y: 13 }, D.hasBackward ? word : "ops"));
  });
  for (const [block, boxes] of visible())
    for (const box of boxes) {
      const kind = block === focus && block.parent === null ? "block root" : hues.has(block.alike) ? "block" : "block single";
      const shape = svg("rect", { class: kind, rx: 2, ...box, "data-block": block.number });
      if (kind === "block") shape.style.fill = colour(block);
      node.append(shape);
      const room = Math.floor((box.width - 10) / 6.6), text = title(block);
      if (room >= Math.min(text.length, 6)) node.append(svg("text", { class: kind === "block" ? "on-colour" : "on-page", x: box.x + 5, y: box.y + 16, "pointer-events": "none" }, text.length > room ? `${text.slice(0, room - 1)}\u2026` : text));
    }
  node.append(svg("g", { id: "over" }));
  $("outward").disabled = $("whole").disabled = focus.parent === null;
  drawSelection();
}

function linesOf(block) {
  const line = (kind, text) => element("div", { class: kind }, text), [forward, backward] = block.halves.map(([from, to]) => to - from);
  const lines = [line("strong", title(block)), line("", `level ${block.level + 1}, ${plural(opsOf(block), "op")}${D.hasBackward ? `, ${countText(forward)} of them forward and ${countText(backward)} backward` : ""}`),
    line("", `${countText(block.children)} inside; ${bytesText(block.crossing)} cross its border, ${bytesText(block.saved)} saved`)];
  if (times.get(block.alike) > 1) lines.push(line("muted", `${times.get(block.alike)} are equal`));
  return lines;
}

function drawSelection() {
  const over = $("over"), tip = $("tip");
  over.replaceChildren();
  tip.hidden = !selected;
  if (!selected) return;
  const boxes = [0, 1].map((half) => place(selected, half)).filter((box) => box.width > 0);
  for (const box of boxes) over.append(svg("rect", { class: "selected", rx: 2, ...box }));
  tip.replaceChildren(...linesOf(selected));
  const chart = $("chart").getBoundingClientRect(), box = boxes[0] || { x: 0, y: 0, height: 0 };
  const left = Math.min(chart.left + Math.max(0, box.x), document.documentElement.clientWidth - tip.offsetWidth - 8);
  tip.style.left = `${window.scrollX + Math.max(8, left)}px`;
  tip.style.top = `${window.scrollY + chart.top + box.y + box.height + 6}px`;
}

function look(block) {
  focus = block;
  selected = null;
  drawChart();
}

function listen() {
  const chart = $("chart");
  const blockAt = (event) => {
    const number = event.target.dataset ? event.target.dataset.block : undefined;
    return number === undefined ? null : blocks[number];
  };
  chart.addEventListener("pointermove", (event) => {
    const block = blockAt(event);
    if (block && block !== selected) { selected = block; drawSelection(); }
  });
  const leave = () => { selected = null; drawSelection(); };
  chart.addEventListener("pointerleave", leave);
  chart.addEventListener("blur", leave);
  chart.addEventListener("click", (event) => {
    const block = blockAt(event);
    if (block) look(block === focus && block.parent !== null ? blocks[block.parent] : block);
  });
  const outward = () => look(focus.parent === null ? focus : blocks[focus.parent]);
  $("outward").onclick = outward;
  $("whole").onclick = () => look(blocks[0]);
  const beside = (step) => {
    const all = selected && selected !== focus ? blocks[selected.parent].inside : [focus];
    return all[Math.min(Math.max(all.indexOf(selected || focus) + step, 0), all.length - 1)];
  };
  chart.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const now = selected || focus;
    const actions = {
      ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), ArrowDown: () => now.inside[0] || now,
      ArrowUp: () => (now === focus ? now : blocks[now.parent]), Enter: () => (look(now), null), Escape: () => (outward(), null),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    selected = actions[event.key]();
    drawSelection();
  });
  new ResizeObserver(() => requestAnimationFrame(() => { if (chart.clientWidth !== geometry.width) drawChart(); })).observe(chart);
}

function drawFigures() {
  const figure = (name, value, note) => element("div", {}, element("div", { class: "muted" }, name),
    element("div", { class: "value" }, value), element("div", { class: "muted small" }, note));
  $("figures").replaceChildren(
    figure("Blocks", countText(blocks.length), `${countText(times.size)} of them different, in ${plural(D.levels.length, "level")}`),
    figure("Largest", countText(D.largest), `inside the largest block; ${countText(D.top)} in the whole graph`),
    figure("Interfaces", bytesText(D.crossing), `across all borders; ${bytesText(D.widest)} across the widest`),
    figure("Equal blocks", percentText(100 * (1 - times.size / blocks.length), 0), "of the blocks need not be planned anew"));
}

function drawTables() {
  const count = (name, of) => ({ title: name, kind: "number", text: (row) => countText(of(row)), value: of });
  const bytes = (name, of) => ({ title: name, kind: "number", text: (row) => bytesText(of(row)), value: of });
  const still = { still: true, long: true };
  $("levels").replaceChildren(table("Levels", [
    count("level", (row) => row.number), count("blocks", (row) => row.blocks), count("unique", (row) => row.unique), count("largest", (row) => row.largest),
    count("ops", (row) => row.ops), bytes("interface", (row) => row.crossing), bytes("saved", (row) => row.saved)],
  D.levels.map(([count, unique, largest, ops, crossing, saved], i) => ({ number: i + 1, blocks: count, unique, largest, ops, crossing, saved })), still));
  $("kinds").replaceChildren(table("Kinds of blocks", [
    { title: "first of them", kind: "name", text: (block) => `${title(block)}`, value: (block) => block.number },
    count("times", (block) => times.get(block.number)), count("ops", opsOf), count("children", (block) => block.children),
    bytes("interface", (block) => block.crossing), bytes("saved", (block) => block.saved)], kinds.slice(0, 500), { long: true }));
}

function main() {
  document.querySelector("main").hidden = false;
  document.querySelector("h1").textContent = D.name || "Graph";
  $("about").textContent = `${plural(D.opCount, "op")} in blocks by ${D.how}`;
  drawFigures();
  drawTables();
  const entry = (key, text) => { const box = element("span", { class: `key ${key}` }); return element("li", {}, box, text); };
  const equal = entry("", "equal to others of its colour");
  equal.firstChild.style.background = "hsl(205 48% 62%)";
  $("legend").replaceChildren(...(hues.size ? [equal] : []), entry("single", "the only one of its kind"));
  drawChart();
  listen();
}
