// Scores and learning curves; drawn again with every poll while they are in sight.
import { $, el, fill, interval, svg, table } from "./dom.js";

const short = (v) => (v !== 0 && Math.abs(v) < 0.01 ? v.toExponential(1) : String(Number(v.toPrecision(3))));
const W = 340, H = 170, L = 48, B = 22;

export function show(state) {
  const scores = state.evaluations.length
    ? [el("h2", {}, "Scores"), table(["checkpoint", "pass@1", "faults"], state.evaluations.map((e) => [e.name || e.folder, interval(e["pass@1"]), Object.values(e.faults ?? {}).reduce((a, b) => a + b, 0)]))]
    : [];
  const runs = state.trainings.flatMap((t) => [el("h2", {}, `${t.kind} · ${t.name}${t.receipt ? ` · receipt ${t.receipt}` : ""}`),
    el("div", { class: "plots" }, ...Object.entries(t.curves).map(([name, points]) => plot(name, points)))]);
  const problems = state.problems.map((p) => el("p", { class: "warn" }, p));
  const ledgers = table(["folder", "rollouts", "lines skipped"], state.ledgers.map((l) => [l.folder, l.count, l.skipped]));
  fill($("main"), el("h1", {}, state.name), ...problems, ...scores, ...runs, el("h2", {}, "Ledgers"), ledgers);
}

function plot(name, points) {
  const xs = points.map((p) => p[0]), ys = points.map((p) => p[1]);
  const [x0, x1, y0, y1] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
  const x = (v) => L + ((v - x0) / (x1 - x0 || 1)) * (W - L - 8), y = (v) => H - B - ((v - y0) / (y1 - y0 || 1)) * (H - B - 12);
  const text = (at, up, said, anchor) => svg("text", { x: at, y: up, "text-anchor": anchor }, said);
  const line = points.length > 1 ? svg("polyline", { class: "plot-line", points: points.map((p) => `${x(p[0]).toFixed(1)},${y(p[1]).toFixed(1)}`).join(" ") }) : svg("g");
  const last = points[points.length - 1];
  return el("figure", {}, el("figcaption", {}, `${name} ${short(last[1])}`), svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${name} by step` },
    svg("path", { class: "plot-axis", fill: "none", d: `M${L} 6V${H - B}H${W - 4}` }), line, svg("circle", { class: "plot-dot", cx: x(last[0]), cy: y(last[1]), r: 3 }),
    text(L - 5, 16, short(y1), "end"), text(L - 5, H - B, short(y0), "end"), text(L, H - 6, String(x0), "start"), text(W - 6, H - 6, `step ${x1}`, "end")));
}
