// Routes, keys, and the poll that follows a running run.
import { $, el, fill, get, link } from "./dom.js";
import * as curves from "./curves.js";
import * as list from "./list.js";
import * as review from "./review.js";
import * as rollout from "./rollout.js";

let state = null;

async function route() {
  const [page, key, , turn, , token] = location.hash.slice(1).split("/");
  const number = (x) => (x === undefined ? undefined : Number(x));
  try {
    const name = key === undefined ? "" : decodeURIComponent(key);
    document.title = `${name || page || "inloop"} · inloop view`;
    if (page !== "rollout") rollout.leave();
    document.body.classList.toggle("blind", page === "review"); // the list says whose work it is and what the tests say
    list.mark(page === "rollout" ? name : "");
    if (page === "rollout") await rollout.show(name, number(turn), number(token));
    else if (page === "group") await rollout.group(name);
    else if (page === "curves" && state) curves.show(state);
    else if (page === "review") await review.show();
    else if (page === "acceptance") await review.acceptance();
    else if (page !== "curves") fill($("main"), el("h1", {}, "Choose a rollout"), el("p", {}, "Press ? for the keys; / searches, for example verdict:failed stop:turn_limit, kind:operator or text:\"return a\"."));
  } catch (error) {
    fill($("main"), el("p", { class: "warn", role: "alert" }, error.message));
  }
}

async function poll() {
  let wait = 2000;
  try {
    state = await get("/api/state");
    const total = state.ledgers.reduce((sum, l) => sum + l.count, 0);
    $("name").textContent = state.name;
    $("status").textContent = `${total} rollouts${state.complete ? "" : ", reading…"}${state.problems.length ? ` · ${state.problems.length} problems` : ""}`;
    if (!state.complete) wait = 150;
    await list.grown(total, state.complete);
    if (location.hash === "#curves") curves.show(state);
  } catch (error) {
    $("status").textContent = `not reached: ${error.message}`;
  }
  setTimeout(poll, wait);
}

async function neighbour(which) {
  const now = rollout.current();
  const told = await get("/api/place", { ...list.choice(), key: now?.key ?? "" });
  const next = told[which] || (told.at < 0 ? (await get("/api/rollouts", { ...list.choice(), limit: 1 })).rows[0]?.key : "");
  if (next) { location.hash = link(next); list.reveal(told.at + (which === "after" ? 1 : -1)); }
}

const KEYS = {
  j: () => neighbour("after"), k: () => neighbour("before"), n: () => rollout.step(1, 0), p: () => rollout.step(-1, 0),
  l: () => rollout.step(0, 1), h: () => rollout.step(0, -1), m: rollout.cycle, c: () => { location.hash = "#curves"; },
  r: () => { location.hash = "#review"; }, o: () => { location.hash = "#rollouts"; }, "?": () => $("keys").showModal(),
  g: () => { const now = rollout.current(); if (now) location.hash = `#group/${encodeURIComponent(now.key)}`; },
  "/": (event) => { event.preventDefault(); $("query").focus(); },
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") document.activeElement.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName)) return;
  KEYS[event.key]?.(event);
});
$("help").addEventListener("click", () => $("keys").showModal());
window.addEventListener("hashchange", route);
list.start();
route();
poll();
