// What the lines of a chart say below the mouse: the values stand in its legend for as long as it is there.

const LEFT = 58, RIGHT = 4, TOP = 8, BOTTOM = 20;
const UNITS = [["d", 86400], ["h", 3600], ["min", 60]];
let shown = null;

function three(number) {
  return String(Number(number.toPrecision(3)));
}

// As the server writes them.
function duration(seconds) {
  for (const [name, unit] of UNITS) if (seconds >= 2 * unit) return `${three(seconds / unit)} ${name}`;
  if (seconds >= 0.1 || seconds === 0) return `${three(seconds)} s`;
  return seconds >= 0.001 ? `${three(seconds * 1e3)} ms` : `${three(seconds * 1e6)} us`;
}

function amount(value) {
  return value >= 100 ? Math.round(value).toLocaleString("en") : three(value);
}

// The height of a line at x, between the points on both sides; null where it has a gap.
function heightAt(line, x) {
  const points = line.points;
  for (let at = 1; at < points.numberOfItems; at += 1) {
    const before = points.getItem(at - 1), after = points.getItem(at);
    if (before.x - 1 <= x && x <= after.x + 1) {
      const share = after.x === before.x ? 0 : Math.min(1, Math.max(0, (x - before.x) / (after.x - before.x)));
      return before.y + share * (after.y - before.y);
    }
  }
  return null;
}

// As exactly as a height in pixels says it: to a hundredth of the scale.
function valueAt(share, top) {
  return Number((Math.round(Math.max(0, share) * 100) * (top / 100)).toPrecision(6));
}

function show(figure, x) {
  const svg = figure.querySelector("svg"), box = svg.viewBox.baseVal, base = box.height - BOTTOM;
  const { top, form, begin, end } = figure.dataset;
  const share = (x - LEFT) / (box.width - LEFT - RIGHT);
  const written = form === "duration" ? duration : amount;
  const heights = new Map();
  for (const line of svg.querySelectorAll("polyline")) {
    const y = heightAt(line, x);
    if (y !== null) heights.set(line.dataset.name, written(valueAt((base - y) / (base - TOP), Number(top))));
  }
  for (const item of figure.querySelectorAll(".legend li[data-name]")) {
    const value = item.querySelector("b");
    value.dataset.now ??= value.textContent;
    value.textContent = heights.get(item.dataset.name) ?? "-";
  }
  let cursor = svg.querySelector(".cursor");
  if (!cursor) {
    cursor = document.createElementNS("http://www.w3.org/2000/svg", "line");
    cursor.setAttribute("class", "cursor");
    svg.append(cursor);
  }
  for (const [name, value] of Object.entries({ x1: x, x2: x, y1: TOP, y2: base })) cursor.setAttribute(name, value);
  const time = new Date((Number(begin) + share * (Number(end) - Number(begin))) * 1000);
  const when = figure.querySelector(".when");
  when.textContent = `at ${time.toLocaleTimeString()}`;
  when.hidden = false;
}

function hide(figure) {
  figure.querySelector(".cursor")?.remove();
  figure.querySelector(".when").hidden = true;
  for (const value of figure.querySelectorAll("b[data-now]")) {
    value.textContent = value.dataset.now;
    delete value.dataset.now;
  }
}

document.addEventListener("mousemove", (event) => {
  const figure = event.target.closest?.("figure.chart svg[role=img]")?.parentElement ?? null;
  if (shown && shown !== figure) hide(shown);
  shown = figure;
  if (!figure) return;
  const svg = figure.querySelector("svg"), box = svg.getBoundingClientRect();
  const width = svg.viewBox.baseVal.width, x = ((event.clientX - box.left) / box.width) * width;
  show(figure, Math.min(width - RIGHT, Math.max(LEFT, x)));
});
