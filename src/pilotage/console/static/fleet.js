// The heat map of all nodes. Only what is in sight is drawn, so that ten thousand nodes are as fluent as ten.

const NOTHING = 255;
const FULL = 95;
const SMALLEST = 4;
const LARGEST = 96;
const LARGEST_FIT = 40;
const NUMBERED = 26;
const HEADING = 22;
const GAP = 8;
const fleet = { size: 0, chosen: -1, names: [], values: [], groups: [], columns: 1, width: 0, height: 0 };
let colours = null;
let isDue = false;

const canvas = () => document.getElementById("fleet");
const frame = () => canvas()?.closest(".scroll");
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

function parts(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

// As WCAG has it: how much light a colour gives, and how far two of them are apart.
function luminance(colour) {
  const [red, green, blue] = colour.map((part) => (part <= 10 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

function contrast(one, other) {
  const [less, more] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (more + 0.05) / (less + 0.05);
}

// By percent: from the colour of an empty node to that of a used one; full ones stand out. Numbers are readable on each.
function palette() {
  const [low, high, full] = ["--heat-low", "--heat-high", "--heat-full"].map((name) => parts(variable(name)));
  const mix = (share) => low.map((from, at) => Math.round(from + (high[at] - from) * share));
  const colours = Array.from({ length: NOTHING }, (_, percent) => (percent < FULL ? mix(percent / FULL) : full));
  const inks = ["--heat-on-low", "--heat-on-high"].map(variable);
  const ink = (colour) => inks[contrast(colour, parts(inks[0])) >= contrast(colour, parts(inks[1])) ? 0 : 1];
  const cells = [...colours.map((colour) => `rgb(${colour.join(" ")})`), variable("--heat-none")];
  return { cells, inks: colours.map(ink), text: variable("--text") };
}

function read() {
  const element = document.getElementById("fleet-names");
  const data = document.getElementById("fleet-data");
  if (!canvas() || !element || !data) return false;
  if (fleet.element !== element) {
    const { names, groups } = JSON.parse(element.textContent);
    Object.assign(fleet, { element, names, groups });
  }
  fleet.values = Uint8Array.from(atob(data.dataset.values), (sign) => sign.charCodeAt(0));
  return true;
}

// Where each group begins, in pixels and as the number of its first node.
function lay() {
  fleet.width = frame().clientWidth || 800;
  if (!fleet.size) fit();
  fleet.columns = Math.max(1, Math.floor(fleet.width / fleet.size));
  let top = 0, first = 0;
  for (const group of fleet.groups) {
    Object.assign(group, { top: top + HEADING, first });
    top = group.top + Math.ceil(group.nodes / fleet.columns) * fleet.size + GAP;
    first += group.nodes;
  }
  fleet.height = top;
}

function fit() {
  const room = 300 - fleet.groups.length * (HEADING + GAP);
  const size = Math.floor(Math.sqrt((fleet.width * Math.max(room, 160)) / (fleet.names.length || 1)));
  fleet.size = Math.max(SMALLEST, Math.min(LARGEST_FIT, size));
}

export function drawFleet() {
  if (!read()) return;
  lay();
  const spacer = document.getElementById("fleet-spacer");
  spacer.style.height = `${fleet.height}px`;
  paint();
}

function paint() {
  isDue = false;
  const target = canvas(), outer = frame();
  if (!target || !outer) return;
  const shown = Math.min(fleet.height, matchMedia("print").matches ? fleet.height : outer.clientHeight || fleet.height);
  const scale = devicePixelRatio || 1;
  target.width = fleet.width * scale;
  target.height = shown * scale;
  target.style.width = `${fleet.width}px`;
  target.style.height = `${shown}px`;
  colours ??= palette();
  const pen = target.getContext("2d");
  pen.scale(scale, scale);
  pen.translate(0, -outer.scrollTop);
  const begin = outer.scrollTop, end = begin + shown;
  for (const group of fleet.groups) {
    const rows = Math.ceil(group.nodes / fleet.columns);
    if (group.top - HEADING > end) break;
    if (group.top + rows * fleet.size < begin) continue;
    pen.font = "13px system-ui, sans-serif";
    pen.textAlign = "left";
    pen.fillStyle = colours.text;
    pen.fillText(`${group.name} (${group.nodes.toLocaleString("en")})`, 0, group.top - 6);
    const from = Math.max(0, Math.floor((begin - group.top) / fleet.size));
    const to = Math.min(rows, Math.ceil((end - group.top) / fleet.size));
    for (let at = from * fleet.columns; at < Math.min(group.nodes, to * fleet.columns); at += 1) cell(pen, group, at);
  }
  if (fleet.chosen >= 0) outline(pen);
}

function cell(pen, group, at) {
  const size = fleet.size, gap = size > 6 ? 1 : 0;
  const x = (at % fleet.columns) * size, y = group.top + Math.floor(at / fleet.columns) * size;
  const value = fleet.values[group.first + at];
  pen.fillStyle = colours.cells[value];
  pen.fillRect(x, y, size - gap, size - gap);
  if (size < NUMBERED || value === NOTHING) return;
  pen.font = `${Math.min(14, Math.floor(size / 2.6))}px system-ui, sans-serif`;
  pen.textAlign = "center";
  pen.fillStyle = colours.inks[value];
  pen.fillText(String(value), x + size / 2, y + size / 2 + 4);
}

// [x, y] of a node in the whole picture.
function place(number) {
  const group = fleet.groups.findLast((one) => one.first <= number);
  const at = number - group.first;
  return [(at % fleet.columns) * fleet.size, group.top + Math.floor(at / fleet.columns) * fleet.size];
}

function outline(pen) {
  const [x, y] = place(fleet.chosen);
  pen.lineWidth = 2;
  pen.strokeStyle = colours.text;
  pen.strokeRect(x, y, fleet.size, fleet.size);
}

function later() {
  if (isDue) return;
  isDue = true;
  requestAnimationFrame(paint);
}

function choose(number) {
  if (number < 0 || number >= fleet.names.length) return;
  fleet.chosen = number;
  const value = fleet.values[number], cell = document.getElementById("fleet-cell");
  if (cell) cell.textContent = `${fleet.names[number]}: ${value === NOTHING ? "has none" : `${value} %`}`;
  later();
}

function bringIntoSight() {
  if (fleet.chosen < 0) return;
  const outer = frame(), y = place(fleet.chosen)[1];
  if (y < outer.scrollTop) outer.scrollTop = y - HEADING;
  else if (y + fleet.size > outer.scrollTop + outer.clientHeight) outer.scrollTop = y + fleet.size - outer.clientHeight + GAP;
}

// What is in the middle stays there, or the chosen node in sight.
function zoom(factor) {
  const outer = frame(), before = fleet.height || 1;
  const middle = (outer.scrollTop + outer.clientHeight / 2) / before;
  if (factor) fleet.size = Math.max(SMALLEST, Math.min(LARGEST, Math.round(fleet.size * factor) + (factor > 1 ? 1 : 0)));
  else fit();
  drawFleet();
  outer.scrollTop = middle * fleet.height - outer.clientHeight / 2;
  bringIntoSight();
  later();
}

function open(number) {
  if (fleet.names[number] !== undefined) location.href = `/console/nodes/${encodeURIComponent(fleet.names[number])}`;
}

function under(event) {
  const box = canvas().getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top + frame().scrollTop;
  const column = Math.floor(x / fleet.size);
  const group = fleet.groups.findLast((one) => one.top <= y);
  if (!group || column < 0 || column >= fleet.columns) return -1;
  const at = Math.floor((y - group.top) / fleet.size) * fleet.columns + column;
  return at < group.nodes ? group.first + at : -1;
}

const isFleet = (event) => event.target.id === "fleet";
document.addEventListener("mousemove", (event) => {
  if (!isFleet(event)) return;
  const at = under(event);
  if (at >= 0 && at !== fleet.chosen) choose(at);
});
document.addEventListener("click", (event) => {
  if (isFleet(event)) open(under(event));
  const button = event.target.closest("button[data-zoom]");
  if (button) zoom(Number(button.dataset.zoom));
});
document.addEventListener("keydown", (event) => {
  if (!isFleet(event)) return;
  const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: fleet.columns, ArrowUp: -fleet.columns };
  if (event.key in steps) {
    choose(fleet.chosen < 0 ? 0 : fleet.chosen + steps[event.key]);
    bringIntoSight();
    event.preventDefault();
  } else if (event.key === "Enter") open(fleet.chosen);
  else if (event.key === "+" || event.key === "=") zoom(1.5);
  else if (event.key === "-") zoom(0.67);
  else if (event.key === "0") zoom(0);
});
document.addEventListener("wheel", (event) => {
  if (!isFleet(event) || !event.ctrlKey) return;
  event.preventDefault();
  zoom(event.deltaY < 0 ? 1.2 : 0.83);
}, { passive: false });
document.addEventListener("scroll", (event) => { if (event.target === frame()) later(); }, true);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { colours = null; later(); });
addEventListener("resize", drawFleet);
drawFleet();
