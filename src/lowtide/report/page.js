"use strict";
// What every page has: its data as D (D.tick is the unit of times), numbers as people read them,
// elements, tables.
const D = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

const BYTES = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
const TIMES = { ns: ["ns", "us", "ms", "s"], us: ["us", "ms", "s"], ms: ["ms", "s"], flop: ["FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP", "PFLOP", "EFLOP"] }[D.tick];
function scaled(count, step, units) {
  if (Math.abs(count) < step) return `${count} ${units[0]}`;
  let unit = 0;
  for (; unit + 1 < units.length && Math.abs(count) >= step - 0.5; ++unit) count /= step;
  return `${count.toFixed(count < 9.995 ? 2 : count < 99.95 ? 1 : 0)} ${units[unit]}`;
}
const countText = (count) => count.toLocaleString("en-US");
const bytesText = (bytes) => scaled(bytes, 1024, BYTES);
const ticksText = (ticks) => (TIMES ? scaled(ticks, 1000, TIMES) : countText(ticks));
const percentText = (percent, digits = 2) => `${percent.toFixed(digits)} %`;
const plural = (count, word) => `${countText(count)} ${word}${count === 1 ? "" : "s"}`;
function changeText(before, after) {
  const change = before > 0 ? 100 * (after / before - 1) : 0;
  return `${change < 0 ? "\u2212" : "+"}${Math.abs(change).toFixed(1)} %`;
}
// A label of an axis: in the unit of its highest value, with the digits that its step needs.
function axisText(value, step, high, base, units) {
  const unit = Math.max(0, Math.min(units.length - 1, Math.floor(Math.log(Math.max(high, 1)) / Math.log(base) + 1e-9)));
  const size = base ** unit, digits = Math.max(0, Math.ceil(-Math.log10(step / size) - 1e-6));
  return `${(value / size).toFixed(digits)} ${units[unit]}`;
}
const ticksOnAxis = (value, step, high) => (TIMES ? axisText(value, step, high, 1000, TIMES) : countText(Math.round(value)));
// 1, 2 or 5 times a power of ten, the first that is not below `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= value * (1 - 1e-9));
}

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const element = (tag, attributes = {}, ...children) => build(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) => build(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);

// A column is {title, kind, text, value}: kind is "name", "number" or "meter", `value` what to sort
// by, or the share that a meter shows. Clicks on titles sort, unless `still`.
function table(caption, columns, rows, { still = false, long = false } = {}) {
  const body = element("tbody");
  const cell = (column, row) =>
    element("td", { class: column.kind }, column.kind === "meter" ? element("div", { style: `width:${100 * column.value(row)}%` }) : column.text(row));
  const fill = () => body.replaceChildren(...rows.map((row) => element("tr", {}, ...columns.map((column) => cell(column, row)))));
  const sort = (column, head) => {
    const now = head.getAttribute("aria-sort");
    const down = now ? now === "ascending" : column.kind === "number";
    const key = column.value || column.text;
    rows = rows.map((row) => [key(row), row]).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1)).map(([, row]) => row);
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    fill();
  };
  const heads = columns.map((column) => {
    const head = element("th", { scope: "col", class: column.kind });
    if (still || column.kind === "meter") head.append(column.title);
    else head.append(element("button", { type: "button" }, column.title));
    head.onclick = (event) => { if (event.target !== head) sort(column, head); };
    return head;
  });
  if (!still) heads[0].setAttribute("aria-sort", "descending");
  fill();
  return element("div", { class: long ? "table long" : "table" },
    element("table", { "aria-label": caption }, element("thead", {}, element("tr", {}, ...heads)), body));
}

const px = (value) => value.toFixed(1);
// An empty drawing that fills the width of `host`.
function frame(host, height) {
  const width = Math.max(host.clientWidth, 280);
  const node = svg("svg", { viewBox: `0 0 ${width} ${height}`, width, height, "aria-hidden": "true" });
  host.replaceChildren(node);
  return [node, width];
}
