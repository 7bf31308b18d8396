// The list of all rollouts: only the rows in sight are elements, rows come in chunks.
import { $, el, fill, get, link } from "./dom.js";

const ROW = 44, CHUNK = 100;
const known = { total: 0, chunks: new Map(), query: "", sort: "", reverse: false, complete: false, at: "" };
let asked = 0;

export const choice = () => ({ q: known.query, sort: known.sort, reverse: known.reverse });

export function start() {
  $("list").addEventListener("scroll", () => requestAnimationFrame(draw));
  new ResizeObserver(draw).observe($("list"));
  let timer;
  $("query").addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(again, 150); });
  $("sort").addEventListener("change", again);
}

export async function again() {
  const order = $("sort").value;
  Object.assign(known, { query: $("query").value, sort: order.replace("-", ""), reverse: order.startsWith("-") });
  known.chunks.clear();
  $("list").scrollTop = 0;
  await fetchChunk(0);
}

// Called with every poll: the rows in sight are asked for again when there are more, and stay in sight meanwhile.
export async function grown(total, complete) {
  const counted = !known.query && !known.sort && !known.reverse;
  if (counted && total === known.total && complete === known.complete) return;
  const inSight = Math.floor($("list").scrollTop / ROW / CHUNK);
  for (const number of [...known.chunks.keys()]) if (number !== inSight) known.chunks.delete(number);
  await fetchChunk(inSight, true);
}

async function fetchChunk(number, anew = false) {
  if (known.chunks.has(number) && !anew) return;
  if (!known.chunks.has(number)) known.chunks.set(number, null);
  const mine = ++asked, now = JSON.stringify(choice());
  try {
    const told = await get("/api/rollouts", { ...choice(), offset: number * CHUNK, limit: CHUNK });
    if (now !== JSON.stringify(choice())) return;
    known.chunks.set(number, told.rows);
    if (mine === asked || told.total > known.total) known.total = told.total;
    known.complete = told.complete;
    $("count").textContent = `${told.total} rollouts${told.complete ? "" : ", still reading…"}`;
  } catch (error) {
    known.chunks.delete(number);
    $("count").textContent = error.message;
  }
  draw();
}

export function mark(key) { known.at = key; draw(); }

export function reveal(at) {
  const list = $("list"), top = at * ROW;
  if (at >= 0 && (top < list.scrollTop || top + ROW > list.scrollTop + list.clientHeight)) list.scrollTop = top - list.clientHeight / 3;
}

function draw() {
  const list = $("list"), first = Math.max(0, Math.floor(list.scrollTop / ROW) - 4);
  const last = Math.min(known.total, Math.ceil((list.scrollTop + list.clientHeight) / ROW) + 4);
  $("rows").style.height = `${known.total * ROW}px`;
  const rows = [];
  for (let i = first; i < last; i++) {
    const chunk = known.chunks.get(Math.floor(i / CHUNK));
    if (chunk === undefined) fetchChunk(Math.floor(i / CHUNK));
    rows.push(row(chunk?.[i % CHUNK], i));
  }
  fill($("rows"), ...rows);
}

function row(r, i) {
  const node = r
    ? el("a", { class: `row ${r.verdict} ${r.key === known.at ? "at" : ""}`, href: link(r.key), title: r.key },
        el("span", {}, `${r.task || r.id}${r.kind ? ` · ${r.kind}` : ""}`),
        el("small", {}, `${r.verdict || "not scored"} · ${r.stop} · ${r.turns} turns · ${r.tokens} tokens · ${r.folder}`))
    : el("div", { class: "row" }, "…");
  node.style.top = `${i * ROW}px`;
  return node;
}
