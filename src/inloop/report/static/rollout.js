// One rollout turn by turn, and a group side by side.
import { $, diff, el, fill, get, link, percent, table } from "./dom.js";

const COLOURS = ["mask", "logprob", "advantage"];
let colour = 0, shown = null;
export const current = () => shown;

export async function show(key, turn, token) {
  if (shown?.key !== key) {
    const here = location.hash, got = await get("/api/rollout", { key });
    if (location.hash !== here) return; // a late answer must not take the place of what was asked for since
    shown = got;
    fill($("main"), ...page(shown));
    recolour();
  }
  select(turn, token);
}

export const leave = () => { shown = null; };

export function cycle() { colour = (colour + 1) % COLOURS.length; recolour(); }

function recolour() {
  const turns = $("turns");
  if (turns) turns.className = `by-${COLOURS[colour]}`;
  const said = $("colour");
  if (said) said.textContent = `coloured by ${COLOURS[colour]}`;
}

function page(r) {
  const reward = r.reward, tests = reward?.tests ?? [];
  return [
    el("h1", {}, r.task || r.id),
    el("p", {}, el("span", { class: `tag ${r.verdict}` }, r.verdict || "not scored"), el("span", { class: "tag" }, r.stop || "unknown"),
      ` reward ${reward?.value ?? "none"}`, r.fraction === null ? "" : `, ${percent(r.fraction)} of the hidden tests`,
      r.advantage === null ? "" : `, advantage ${r.advantage.toFixed(3)}`, r.dropped ? `, group dropped: ${r.dropped}` : ""),
    el("p", { class: "soft" }, `${r.key} · ${r.model ?? "unknown model"} · seed ${r.seed ?? "-"} · harness ${r.harness?.hash ?? "-"} · `,
      r.peers.length > 1 ? el("a", { href: `#group/${encodeURIComponent(r.key)}` }, `group of ${r.peers.length}`) : "no group"),
    el("p", {}, el("button", { id: "colour", onclick: cycle }), " ",
      r.vocabulary ? "" : el("small", {}, "no tokenizer of this model was found here: ids are shown")),
    el("div", { id: "turns" }, ...r.turns.map((t, i) => turnNode(t, i, r.advantage))),
    el("h2", {}, "Diff"), r.diff ? diff(r.diff) : el("p", {}, "nothing was changed"),
    el("h2", {}, "Hidden tests"), tests.length ? table(["test", "outcome", "detail"], tests.map((t) => [t.id, t.status, t.detail])) : el("p", {}, "none was run"),
    ...(reward?.evidence ?? []).map((e) => el("p", { class: "soft" }, e)),
    el("h2", {}, "Events"), r.events.length ? el("pre", {}, r.events.map((e) => Object.entries(e).map(([k, v]) => `${k}: ${v}`).join("  ")).join("\n")) : el("p", {}, "none"),
    el("h2", {}, "Counts and seconds"), el("pre", {}, JSON.stringify({ ...r.counts, seconds: r.timings }, null, 1)),
    el("div", { id: "token", hidden: "" }),
  ];
}

function turnNode(t, i, advantage) {
  const marks = [`turn ${i}`, t.role, t.origin && `by ${t.origin}`, t.context ? `context ${t.context + 1}` : "", t.sampled && (t.trained ? "sampled, trains" : `sampled, does not train: ${t.why}`),
    t.is_error && "error", t.weights !== null && `weights v${t.weights}`, t.seconds && `${t.seconds.toFixed(2)} s`].filter(Boolean);
  const body = t.tokens
    ? [el("pre", { class: "tokens" }, ...t.tokens.map((k, j) => tokenNode(k, i, j, t.sampled, advantage))), t.cut ? el("small", {}, `${t.cut} more tokens are not shown`) : null]
    : t.parts.map((p) => el("pre", {}, p.text));
  return el("section", { class: `turn ${t.sampled ? "sampled" : ""}`, id: `turn-${i}` }, el("header", {}, marks.join(" · ")), ...body.filter(Boolean));
}

function tokenNode(k, i, j, sampled, advantage) {
  const classes = ["t", k.trained ? "y" : sampled ? "x" : "c"];
  if (k.logprob !== null && sampled) classes.push(`p${[-0.1, -0.7, -1.6, -3].filter((edge) => k.logprob < edge).length}`);
  if (k.trained && advantage) classes.push(`${advantage > 0 ? "up" : "down"}${Math.abs(advantage) > 1.5 ? 3 : Math.abs(advantage) > 0.7 ? 2 : 1}`);
  return el("span", { class: classes.join(" "), id: `t-${i}-${j}`, onclick: () => go(i, j) }, k.text);
}

export function go(turn, token) {
  if (shown) location.hash = link(shown.key, `/turn/${turn}${token === undefined ? "" : `/token/${token}`}`);
}

function select(turn, token) {
  for (const old of document.querySelectorAll("#turns .at")) old.classList.remove("at");
  const info = $("token");
  info.hidden = true;
  if (turn === undefined || !shown.turns[turn]) return;
  const node = $(`turn-${turn}`), k = shown.turns[turn].tokens?.[token];
  node.classList.add("at");
  if (!k) { node.scrollIntoView({ block: "start" }); return; }
  const at = $(`t-${turn}-${token}`);
  at.classList.add("at");
  at.scrollIntoView({ block: "center" });
  info.hidden = false;
  fill(info, el("b", {}, JSON.stringify(k.text)), ` turn ${turn}, token ${token} · id ${k.ids.join("+")} · ${k.trained ? "trains" : "masked"}`,
    k.logprob === null ? "" : ` · log-probability ${k.logprob.toFixed(4)} (p = ${Math.exp(k.logprob).toFixed(3)})`,
    shown.advantage === null || !k.trained ? "" : ` · advantage ${shown.advantage.toFixed(3)}`);
}

export function step(turn, token) {
  if (!shown) return;
  const [, , , atTurn, , atToken] = location.hash.slice(1).split("/");
  const t = atTurn === undefined ? -1 : Number(atTurn);
  if (turn) { const next = Math.min(shown.turns.length - 1, Math.max(0, t + turn)); go(next); return; }
  const now = Math.max(0, t), most = (shown.turns[now].tokens?.length ?? 0) - 1;
  if (most >= 0) go(now, Math.min(most, Math.max(0, (atToken === undefined ? -1 : Number(atToken)) + token)));
}

export async function group(key) {
  leave();
  const here = location.hash, g = await get("/api/group", { key });
  if (location.hash !== here) return;
  const one = (r) => el("section", {}, el("a", { href: link(r.key) }, r.id),
    el("p", {}, el("span", { class: `tag ${r.verdict}` }, r.verdict || "not scored"), ` ${r.stop}, ${r.turns} turns`,
      el("br"), r.advantage === null ? "no advantage" : `advantage ${r.advantage.toFixed(3)}`),
    ...r.said.map((s, i) => el("div", {}, el("small", {}, `turn ${i + 1}`), el("pre", {}, s))), r.diff ? diff(r.diff) : el("small", {}, "no change"));
  fill($("main"), el("h1", {}, `group ${g.group || "of one"}`),
    el("p", { class: "soft" }, `${g.task} · ${g.rollouts.length} rollouts · mean reward ${g.mean === null ? "-" : g.mean.toFixed(3)}${g.dropped ? ` · dropped: ${g.dropped}` : ""}`),
    el("div", { class: "columns" }, ...g.rollouts.map(one)));
}
