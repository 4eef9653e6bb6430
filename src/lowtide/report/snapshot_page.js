// The memory of a job over its recorded events, device by device. D.devices: {device, events, allocated:
// [[event, bytes], ...], peak, event, reserved, parts: [[name, bytes], ...], owners: [[bytes, blocks,
// place], ...], replays: [[settings, reserved], ...]}.
const LEFT = 78, RIGHT = 16, TOP = 18, BOTTOM = 34, HEIGHT = 280;
const share = (bytes, whole) => percentText(whole ? (100 * bytes) / whole : 0, 1);

function drawMemory(host, device) {
  const [node, width] = frame(host, HEIGHT);
  const most = Math.max(device.reserved, device.peak, 1), last = Math.max(device.events, 1);
  const x = (event) => LEFT + (Math.max(event, 0) / last) * (width - LEFT - RIGHT);
  const y = (bytes) => HEIGHT - BOTTOM - (bytes / (1.05 * most)) * (HEIGHT - TOP - BOTTOM);
  const step = 1024 ** Math.floor(Math.log2(most) / 10) * roundUp(most / 1024 ** Math.floor(Math.log2(most) / 10) / 5);
  for (let i = 0; i * step <= most; ++i)
    node.append(svg("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(i * step), y2: y(i * step) }),
      svg("text", { x: LEFT - 8, y: y(i * step) + 4, "text-anchor": "end" }, axisText(i * step, step, most, 1024, BYTES)));
  let line = "";
  for (const [event, bytes] of device.allocated)
    line += line ? `H${px(x(event))}V${px(y(bytes))}` : `M${px(x(event))} ${px(y(bytes))}`;
  line += `H${px(x(last))}`;
  node.append(
    svg("path", { class: "own", d: `${line}V${px(y(0))}H${px(x(0))}Z` }), svg("path", { class: "own-line", d: line }),
    svg("line", { class: "budget-line", x1: LEFT, x2: width - RIGHT, y1: y(device.reserved), y2: y(device.reserved) }),
    svg("text", { x: LEFT, y: HEIGHT - 10 }, "event 0"),
    svg("text", { x: width - RIGHT, y: HEIGHT - 10, "text-anchor": "end" }, countText(device.events)));
}

function sections(device) {
  const chart = element("div", { role: "img", "aria-label": `Allocated bytes over ${plural(device.events, "event")}` });
  const row = (title, kind, text, value) => ({ title, kind, text, value });
  const bytes = (title, of) => row(title, "number", (r) => bytesText(of(r)), of);
  const node = element("section", {},
    element("h2", {}, `Device ${device.device}: allocated over ${plural(device.events, "event")}`), chart,
    element("p", { class: "muted small" }, "The area is what is allocated, the dashed line the most that the allocator has reserved."));
  const peak = element("section", {},
    element("h2", {}, "The peak"),
    table("Parts of the peak", [row("part", "name", (r) => r[0]), bytes("bytes", (r) => r[1]), row("share", "number", (r) => share(r[1], device.peak), (r) => r[1])], device.parts, { still: true }));
  const owners = element("section", {},
    element("h2", {}, "Who owns it"),
    table("Owners of the peak", [bytes("bytes", (r) => r[0]), row("share", "number", (r) => share(r[0], device.peak), (r) => r[0]), row("blocks", "number", (r) => countText(r[1]), (r) => r[1]), row("allocated by", "name", (r) => r[2])], device.owners, { long: true }));
  const replays = element("section", {},
    element("h2", {}, "Replayed"),
    table("Replays", [row("with", "name", (r) => r[0]), bytes("reserved", (r) => r[1])], device.replays, { still: true }));
  return [[node, peak, owners, replays], () => drawMemory(chart, device)];
}

function main() {
  document.querySelector("h1").textContent = D.name;
  document.querySelector("main").hidden = false;
  const figure = (name, value, note) => element("div", {}, element("div", { class: "muted" }, name),
    element("div", { class: "value" }, value), element("div", { class: "muted small" }, note));
  const figures = [], draws = [];
  for (const device of D.devices) {
    const name = D.devices.length > 1 ? ` on device ${device.device}` : "";
    figures.push(figure(`Allocated${name}`, bytesText(device.peak), "at the peak"),
      figure(`Reserved${name}`, bytesText(device.reserved), `${share(device.reserved, device.peak)} of that`),
      figure(`Movable${name}`, bytesText(device.parts[0][1]), "at most, by recomputation or offload"));
    const [nodes, draw] = sections(device);
    $("devices").append(...nodes);
    draws.push(draw);
  }
  $("figures").replaceChildren(...figures);
  const draw = () => draws.forEach((each) => each());
  draw();
  addEventListener("resize", draw);
}
