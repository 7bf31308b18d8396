// Acceptance: one deliverable after the other, without its source; then what the verdicts come to.
import { $, diff, el, fill, get, interval, link, post, table } from "./dom.js";

let reviewer = "";

export async function show() {
  if (!reviewer) { fill($("main"), ...ask()); return; }
  const told = await get("/api/review/next", { reviewer });
  const head = [el("h1", {}, "Would you accept this?"), el("p", { class: "soft" }, `${told.done} of ${told.of} judged by ${reviewer} · `, el("a", { href: "#acceptance" }, "what the verdicts come to"))];
  if (!told.item) { fill($("main"), ...head, el("p", {}, told.of ? "You have judged them all." : "There is nothing to judge yet.")); return; }
  const why = el("textarea", { id: "reason", rows: 2, placeholder: "why", "aria-label": "reason" }), trouble = el("p", { class: "warn", hidden: "" });
  const say = (accept) => async () => {
    try { await post("/api/review", { item: told.item, reviewer, accept, reason: why.value }); await show(); } catch (error) { trouble.hidden = false; trouble.textContent = error.message; }
  };
  fill($("main"), ...head, el("h2", {}, "Asked"), el("pre", {}, told.instruction), el("h2", {}, "Handed in"), told.diff ? diff(told.diff) : el("p", {}, "no change at all"),
    el("h2", {}, "The visible tests said"), told.tests ? el("pre", {}, told.tests) : el("p", {}, "they were not run"),
    el("h2", {}, "Verdict"), why, trouble, el("p", {}, el("button", { id: "accept", class: "accept", onclick: say(true) }, "accept"), " ", el("button", { id: "reject", class: "reject", onclick: say(false) }, "reject")));
  $("main").scrollTop = 0;
}

function ask() {
  const name = el("input", { type: "text", id: "reviewer", maxlength: 80, "aria-label": "your name" });
  const begin = () => { reviewer = name.value.trim(); show(); };
  return [el("h1", {}, "Acceptance review"), el("p", {}, "You see what was asked, the diff and what the visible tests said; not who made it and not what the hidden tests say. The order is your own."),
    el("p", {}, "Your name ", name), el("button", { id: "begin", onclick: begin }, "begin")];
}

export async function acceptance() {
  const s = await get("/api/review/summary"), a = s.agreement;
  const num = (x) => (x === null || x === undefined ? "-" : x.toFixed(2));
  const points = (g) => (g.effect === null ? "nothing to compare" : `${g.verdict}: ${(100 * g.effect).toFixed(1)} points [${(100 * g.low).toFixed(1)}, ${(100 * g.high).toFixed(1)}], p = ${g.p.toFixed(3)}, ${g.tasks} tasks`);
  const parts = (name, keys) => keys.length ? el("p", {}, `${name}: `, ...keys.flatMap((k) => [el("a", { href: link(k) }, k), " "])) : null;
  const judge = (name, g) => [el("h2", {}, name), el("p", {}, points(g)), parts("it accepts, people reject", g.judge_yes_people_no), parts("it rejects, people accept", g.judge_no_people_yes)];
  fill($("main"), el("h1", {}, "What the verdicts come to"), el("p", {}, `${s.reviews} verdicts of ${s.reviewers.length} people on ${s.deliverables} deliverables`),
    table(["source", "accepted, over tasks"], [["all", interval(s.acceptance)], ...Object.entries(s.by_source).map(([k, v]) => [k, interval(v)])]),
    el("h2", {}, "Agreement of people"), el("p", {}, `${a.shared} deliverables were judged by several; observed ${num(a.observed)}, beyond chance (Krippendorff's alpha) ${num(a.alpha)}`),
    ...[...judge("Hidden tests against people", s.tests_against_people), ...Object.entries(s.models_against_people).flatMap(([k, v]) => judge(`${k} against people`, v))].filter(Boolean));
}
