// Elements from data: strings become text nodes, nothing is ever parsed as HTML.
const SVG = "http://www.w3.org/2000/svg";

export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const $ = (id) => document.getElementById(id);
export const fill = (node, ...children) => node.replaceChildren(...children);
export const percent = (x) => (x === null || x === undefined ? "no score" : `${(100 * x).toFixed(1)} %`);
export const interval = (s) => (!s || s.mean === null ? "no score" : `${percent(s.mean)} [${(100 * s.low).toFixed(1)}, ${(100 * s.high).toFixed(1)}]`);
export const link = (key, rest = "") => `#rollout/${encodeURIComponent(key)}${rest}`;

export async function get(path, params = {}) {
  const told = await fetch(`${path}?${new URLSearchParams(params)}`);
  return answer(told);
}

export async function post(path, body) {
  return answer(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

async function answer(told) {
  const text = await told.text();
  let data;
  try { data = JSON.parse(text); } catch { data = { error: text }; }
  if (!told.ok) throw new Error([data.error ?? JSON.stringify(data.detail), data.fix].filter(Boolean).join(" · "));
  return data;
}

export function table(head, rows) {
  return el("table", {}, el("tr", {}, ...head.map((h) => el("th", {}, h))), ...rows.map((r) => el("tr", {}, ...r.map((c) => el("td", {}, c instanceof Node ? c : String(c ?? "-"))))));
}

export function diff(text) {
  const kind = (line) => (line.startsWith("+") ? "add" : line.startsWith("-") ? "del" : "");
  return el("pre", { class: "diff" }, ...text.split("\n").map((line) => el("span", { class: kind(line) }, `${line}\n`)));
}
