// Keeps the regions of a page up to date. Everything readable is in the page already.

import "./charts.js";
import { drawFleet } from "./fleet.js";

const body = document.body;
const state = document.getElementById("state");
const notice = document.getElementById("notice");
const regionNames = () => [...document.querySelectorAll("[data-region]")].map((section) => section.dataset.region);
const AWAY_MILLISECONDS = 4000;
const AGAIN_MILLISECONDS = 3000;
let lastAlive = Date.now();
let dueAt = lastAlive + 2000; // When the next answer is to be there: what is costly to make is asked for less often.
let isLoggedOut = false;
let source = null;

function say(text, isAway) {
  if (state.textContent !== text) state.textContent = text;
  state.classList.toggle("away", isAway);
  state.classList.toggle("live", !isAway);
}

function notify(text) {
  notice.textContent = text;
  notice.hidden = false;
}

function put(name, html) {
  const section = document.getElementById(`region-${name}`);
  if (!section) return;
  const open = [...section.querySelectorAll("details")].map((one) => one.open);
  const scrolled = [...section.querySelectorAll(".scroll")].map((one) => [one.scrollLeft, one.scrollTop]);
  const focused = section.contains(document.activeElement) ? document.activeElement.id : "";
  section.innerHTML = html;
  section.querySelectorAll("details").forEach((one, at) => { if (at < open.length) one.open = open[at]; });
  section.querySelectorAll(".scroll").forEach((one, at) => { if (at < scrolled.length) one.scrollTo(...scrolled[at]); });
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  if (name.startsWith("fleet")) drawFleet();
}

// The page has other regions now, such as when a pod comes, is bound, or goes.
async function renew() {
  source.close();
  const answer = await fetch(location.href).catch(() => null);
  const found = answer && new DOMParser().parseFromString(await answer.text(), "text/html");
  const regions = found?.querySelector(".regions");
  if (regions) {
    document.querySelector(".regions").replaceWith(regions);
    body.dataset.known = found.body.dataset.known;
    drawFleet();
  }
  setTimeout(listen, regions ? 0 : AGAIN_MILLISECONDS);
}

// What the scheduler says of itself: that it was restarted, or that its part has changed, stays to be read.
function heard(alive) {
  lastAlive = Date.now();
  dueAt = lastAlive + alive.again_milliseconds;
  say(alive.text, alive.is_away);
  const at = new Date().toLocaleTimeString();
  const decides = String(alive.decides);
  if (Number(body.dataset.started) !== alive.started) {
    notify(`As of ${at}, a scheduler answers that was started anew, or another one: counts and stories begin with it.`);
  } else if (body.dataset.decides !== decides) {
    notify(`As of ${at}, ${alive.decides ? "this scheduler decides: it leads now" : "another scheduler decides"}.`);
  }
  body.dataset.started = alive.started;
  body.dataset.decides = decides;
  document.getElementById("follows").hidden = alive.decides;
}

function loggedOut(answer) {
  isLoggedOut = true;
  say("you are no longer logged in: ", true);
  if (answer.type === "opaqueredirect") {
    const link = document.createElement("a");
    link.href = location.href;
    link.textContent = "log in again";
    state.append(link);
  } else state.append("open the link that the command has printed");
}

function listen() {
  const view = encodeURIComponent(location.pathname + location.search);
  source = new EventSource(`${body.dataset.live}?view=${view}&known=${encodeURIComponent(body.dataset.known)}`);
  const names = regionNames();
  for (const name of names) source.addEventListener(name, (event) => put(name, event.data));
  source.addEventListener("alive", (event) => {
    heard(JSON.parse(event.data));
    const there = event.lastEventId.split(",").map((pair) => pair.split("=")[0]);
    if (there.join() !== names.join()) renew();
  });
  source.addEventListener("error", async () => {
    if (source.readyState !== EventSource.CLOSED) return;
    // Not what a stream looks like: find out whether it is the log-in, or the scheduler is away.
    const answer = await fetch(location.href, { redirect: "manual" }).catch(() => null);
    if (answer && (answer.status === 401 || answer.type === "opaqueredirect")) {
      loggedOut(answer);
      return;
    }
    if (answer?.status === 500) {
      dueAt = lastAlive = Date.now();
      say("this page cannot be made now: the log of the scheduler says why", true);
    } else if (answer?.status === 503) {
      dueAt = Date.now();
      say(`the API server does not answer: this is as of ${new Date(lastAlive).toLocaleTimeString()}`, true);
    } else if (answer?.ok) body.dataset.known = "";
    setTimeout(listen, AGAIN_MILLISECONDS);
  });
}

if (regionNames().length && body.dataset.live) {
  listen();
  addEventListener("pagehide", () => source.close());
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) source.close();
    else if (source.readyState === EventSource.CLOSED && !isLoggedOut) { dueAt = Date.now() + 2000; body.dataset.known = ""; listen(); }
  });
  setInterval(() => {
    if (!document.hidden && Date.now() > dueAt + AWAY_MILLISECONDS && !isLoggedOut) {
      say(`the scheduler does not answer: this is as of ${new Date(lastAlive).toLocaleTimeString()}`, true);
    }
  }, 1000);
}

// Only where the page may write to the clipboard: on this machine, or over HTTPS. Otherwise the text is selected.
async function copy(button) {
  const text = document.getElementById(button.dataset.copy);
  try {
    await navigator.clipboard.writeText(text.textContent);
    button.textContent = "Copied";
  } catch {
    text.closest("details").open = true;
    getSelection().selectAllChildren(text);
    button.textContent = "Selected: press Ctrl-C";
  }
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.dataset.copy) copy(button);
});

// Paper has no triangles to click on.
addEventListener("beforeprint", () => {
  for (const one of document.querySelectorAll("details:not([open]):not(.report details)")) { one.open = true; one.dataset.printed = "true"; }
  drawFleet();
});
addEventListener("afterprint", () => {
  for (const one of document.querySelectorAll("details[data-printed]")) { one.open = false; delete one.dataset.printed; }
  drawFleet();
});
