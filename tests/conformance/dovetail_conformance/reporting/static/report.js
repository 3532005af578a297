// What the page does beyond being read: unpacks the cases, opens cells, filters and sorts the matrix.
"use strict";

const $ = (selector, root = document) => root.querySelector(selector);
const all = (selector, root = document) => [...root.querySelectorAll(selector)];

/** An element with attributes and children; text stays text. */
function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key in element && typeof value === "boolean") element[key] = value;
    else if (value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null));
  return element;
}

// ---- the packed cases

let unpacked;

function cases() {
  unpacked ??= (async () => {
    const bytes = Uint8Array.from(atob($("#packed").textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  })();
  return unpacked;
}

/** Columns into rows; the ones that want attention first. */
function rows(data, op, dtype) {
  const columns = data.cells[op][dtype];
  const found = columns.names.map((name, i) => {
    const inside = [dtype, name].filter(Boolean).join(",");
    const ulp = columns.ulp[i], tol = columns.tol[i];
    return {
      id: `${op}[${inside}]`, name: name || "–", status: columns.status[i], ulp, tol, ms: columns.ms[i],
      used: tol && ulp !== null ? ulp / tol : null, ...columns.more[i],
    };
  });
  return found.sort((a, b) => rank(a.status) - rank(b.status) || (b.used ?? -1) - (a.used ?? -1));
}

const rank = (letter) => "fctbwnup".indexOf(letter);
const quoted = (text) => `'${text.replaceAll("'", `'"'"'`)}'`;
const number = (value, digits = 3) => (value === null || value === undefined ? "" : String(Number(value.toPrecision(digits))));

// ---- the panel of a cell

const panel = $("#panel");
let opener;

async function open(op, dtype, from) {
  opener = from;
  panel.replaceChildren(make("p", { class: "inside" }, "Unpacking…"));
  panel.showModal();
  try {
    panel.replaceChildren(...contents(await cases(), op, dtype));
  } catch (error) {
    const why = `The cases could not be unpacked (${error.message}); they are in results.json next to this file.`;
    panel.replaceChildren(heading(op, dtype), make("p", { class: "inside" }, why));
  }
  panel.scrollTop = 0;
  $("button.close", panel).focus();
}

function heading(op, dtype) {
  const cell = $(`tr[data-op="${CSS.escape(op)}"] button[data-dtype="${CSS.escape(dtype)}"]`);
  const text = cell?.getAttribute("aria-label").replace(/^[^:]*: /, "") ?? "";
  const sign = cell && make("span", { class: cell.className, "aria-hidden": "true" }, cell.textContent);
  const title = make("h2", { id: "panel-title" }, `${op} `, make("span", { class: "muted" }, dtype));
  const close = make("button", { type: "button", class: "close" }, "Close");
  close.addEventListener("click", () => panel.close());
  return make("header", {}, sign, make("div", {}, title, make("p", { class: "muted" }, text)), close);
}

function contents(data, op, dtype) {
  const listed = rows(data, op, dtype);
  const inside = make("div", { class: "inside" });
  const errors = data.cells[op][dtype].errors;
  if (errors.some((n) => n > 0)) inside.append(make("h3", {}, "Errors of all elements"), histogram(errors, data.edges));
  const head = make("tr", {}, ...["", "case", "ulp", "allowed", "used", "ms", ""].map((name, i) =>
    make("th", { scope: "col", class: i > 1 && i < 6 ? "num" : undefined }, name)));
  const body = make("tbody", {}, ...listed.flatMap((row) => caseRows(data, row)));
  inside.append(make("h3", {}, `${listed.length} case${listed.length === 1 ? "" : "s"}`),
    make("table", { class: "cases" }, make("thead", {}, head), body));
  return [heading(op, dtype), inside];
}

function caseRows(data, row) {
  const word = data.statuses[row.status];
  const sign = make("span", { class: `sign ${tone(row.status)}`, title: word, role: "img", "aria-label": word }, data.signs[row.status]);
  const replay = row.replay ?? data.replay.replace(data.case, () => quoted(row.id));
  const text = [row.message, row.waiver && `waiver: ${row.waiver}`].filter(Boolean).join("\n");
  const main = make("tr", {}, make("td", {}, sign), make("td", { class: "name" }, row.name),
    ...[row.ulp === null && row.tol !== null && "fctb".includes(row.status) ? "wrong" : number(row.ulp), number(row.tol), row.used === null ? "" : `${Math.round(100 * row.used)} %`, number(row.ms, 2)]
      .map((text) => make("td", { class: "num" }, text)),
    make("td", {}, row.replay ? undefined : make("button", { type: "button", class: "copy", "data-copy": replay, "aria-label": `Copy the command that runs ${row.id}` }, "Copy")));
  if (!text && !row.replay) return [main];
  const command = row.replay && make("div", { class: "command" }, make("code", {}, replay),
    make("button", { type: "button", class: "copy", "data-copy": "", "aria-label": "Copy the command" }, "Copy"));
  return [main, make("tr", { class: "detail" }, make("td"), make("td", { colspan: "6" }, text && make("pre", {}, text), command))];
}

const tone = (letter) => ({ p: "pass", f: "fail", c: "fail", t: "fail", b: "fail", w: "waived" })[letter] ?? "";

/** Elements by the size of their error: exactly 0, then up to each edge, then all above. */
function histogram(errors, edges) {
  const total = errors.reduce((sum, n) => sum + n, 0), most = Math.max(...errors);
  const list = make("dl", { class: "histogram" });
  errors.slice(0, errors.findLastIndex((n) => n > 0) + 1).forEach((n, i) => {
    const name = i === 0 ? "exact" : i < edges.length ? `≤ ${edges[i]} ulp` : `> ${edges[edges.length - 1]} ulp or wrong`;
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    bar.setAttribute("height", "12");
    bar.style.width = n ? `max(2px, ${(100 * n) / most}%)` : "0";
    svg.setAttribute("aria-hidden", "true");
    svg.append(bar);
    const share = total ? (100 * n) / total : 0;
    const text = n ? `${n.toLocaleString("en")} · ${share < 0.1 ? "< 0.1" : share.toFixed(1)} %` : "0";
    const last = i === edges.length ? "last" : "";
    list.append(make("dt", {}, name), make("dd", { class: last }, svg), make("dd", {}, text));
  });
  return list;
}

panel.addEventListener("close", () => opener?.focus());
panel.addEventListener("click", (event) => {
  if (event.target === panel) panel.close(); // a click outside it
});

// ---- copying

const announced = $("#announced");

async function copy(button) {
  const code = button.parentElement.querySelector("code");
  const text = button.dataset.copy || code.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    if (code) getSelection().selectAllChildren(code); // no clipboard here: ready for the keyboard
    button.textContent = code ? "Selected" : "Not allowed";
  }
  announced.textContent = button.textContent;
  setTimeout(() => (button.textContent = "Copy"), 1500);
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  if ("copy" in button.dataset) copy(button);
  else if (button.matches(".matrix .cell")) open(button.closest("tr").dataset.op, button.dataset.dtype, button);
  else if (button.dataset.op) open(button.dataset.op, button.dataset.dtype, button);
});

// ---- the matrix: one stop of the tab key, arrows inside

const grid = $(".matrix");

function visibleCells() {
  return all("tbody tr[data-op]", grid).filter((row) => !row.hidden).map((row) =>
    all("td", row).filter((td) => !td.hidden).map((td) => $("button", td)));
}

function makeCurrent(cell) {
  for (const other of all("button.cell[tabindex='0']", grid)) other.tabIndex = -1;
  if (cell) cell.tabIndex = 0;
}

function move(event) {
  const cell = event.target.closest("button.cell");
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0],
    PageDown: [10, 0], Home: [0, -Infinity], End: [0, Infinity] };
  if (!cell || !(event.key in steps)) return;
  event.preventDefault();
  const cells = visibleCells();
  let y = cells.findIndex((row) => row.includes(cell));
  let x = cells[y].indexOf(cell);
  const [dy, dx] = event.ctrlKey && event.key === "Home" ? [-Infinity, -Infinity]
    : event.ctrlKey && event.key === "End" ? [Infinity, Infinity] : steps[event.key];
  const target = dx ? across(cells, clamp(y + dy, cells.length), x, dx) : down(cells, y, x, dy);
  if (target) {
    makeCurrent(target);
    target.focus();
  }
}

const clamp = (i, length) => Math.max(0, Math.min(length - 1, i));

/** The next cell of a row in a direction; an op has none where it does not take the dtype. */
function across(cells, y, x, dx) {
  const row = cells[y];
  const order = dx === Infinity ? row.toReversed() : dx === -Infinity ? row : dx > 0 ? row.slice(x + 1) : row.slice(0, x).toReversed();
  return order.find(Boolean);
}

function down(cells, y, x, dy) {
  const step = Math.sign(dy);
  for (let i = clamp(y + dy, cells.length); i >= 0 && i < cells.length; i += step) if (cells[i][x]) return cells[i][x];
  return undefined;
}

// ---- filter and sort

const tools = $("#tools");

function filter() {
  const { op, dtype, state } = Object.fromEntries(new FormData(tools));
  const wanted = op.trim().toLowerCase();
  const column = dtype ? all("thead th", grid).findIndex((th) => th.textContent === dtype) : -1;
  for (const line of all("tr:not(.family)", grid)) {
    [...line.cells].forEach((td, i) => (td.hidden = column > 0 && i > 0 && i !== column));
  }
  let shown = 0;
  for (const row of all("tr[data-op]", grid)) {
    const buttons = all("td:not([hidden]) button", row);
    const matching = buttons.filter((button) => !state || button.classList.contains(state));
    for (const button of buttons) button.classList.toggle("dim", !matching.includes(button));
    row.hidden = !row.dataset.op.includes(wanted) || !matching.length;
    shown += row.hidden ? 0 : 1;
  }
  for (const body of grid.tBodies) {
    const family = $(".family", body);
    if (family) family.hidden = !all("tr[data-op]", body).some((row) => !row.hidden);
  }
  const total = all("tr[data-op]", grid).length;
  $("#shown").textContent = shown === total ? `${total} ops` : `${shown} of ${total} ops`;
  announced.textContent = $("#shown").textContent;
  $("#nothing").hidden = shown > 0;
  makeCurrent(visibleCells().flat().find(Boolean));
}

const families = grid && [...grid.tBodies].map((body) => ({ body, rows: all("tr[data-op]", body) }));

function sort() {
  const by = tools.elements.sort.value;
  const flat = $("tbody.flat", grid) ?? grid.appendChild(make("tbody", { class: "flat" }));
  for (const { body, rows: own } of families) {
    body.hidden = Boolean(by);
    if (!by) body.append(...own);
  }
  const failed = (row) => all(".failed", row).length;
  const orders = {
    name: (a, b) => a.dataset.op.localeCompare(b.dataset.op),
    failed: (a, b) => failed(b) - failed(a),
    worst: (a, b) => (b.dataset.worst ?? -1) - (a.dataset.worst ?? -1),
  };
  if (by) flat.append(...families.flatMap((family) => family.rows).sort(orders[by]));
  else flat.remove();
  filter();
}

if (grid) {
  for (const button of all("button.cell", grid)) button.tabIndex = -1;
  for (const button of all("button.cell", grid)) button.title = button.getAttribute("aria-label");
  makeCurrent($("button.cell", grid));
  grid.addEventListener("keydown", move);
  grid.addEventListener("focusin", (event) => event.target.matches("button.cell") && makeCurrent(event.target));
  tools.hidden = $("#hint").hidden = false;
  tools.addEventListener("input", filter);
  tools.addEventListener("change", (event) => (event.target.name === "sort" ? sort() : filter()));
  tools.addEventListener("submit", (event) => event.preventDefault());
  tools.addEventListener("reset", () => setTimeout(sort));
}

// ---- tables that sort by their head

for (const table of all("table.sortable")) {
  all("thead th", table).forEach((th, column) => {
    const button = make("button", { type: "button", class: "sort" }, th.textContent);
    th.replaceChildren(button);
    button.addEventListener("click", () => {
      const descending = th.getAttribute("aria-sort") !== "descending" && (th.matches(".num") || th.hasAttribute("aria-sort"));
      for (const other of all("thead th", table)) other.removeAttribute("aria-sort");
      th.setAttribute("aria-sort", descending ? "descending" : "ascending");
      const key = (row) => row.cells[column]?.textContent.trim().replaceAll(",", "") ?? "";
      const compare = (a, b) => (parseFloat(key(a)) - parseFloat(key(b)) || key(a).localeCompare(key(b), "en", { numeric: true }));
      table.tBodies[0].append(...[...table.tBodies[0].rows].sort((a, b) => (descending ? compare(b, a) : compare(a, b))));
    });
  });
}

// ---- light and dark

const theme = $("#theme");
const themes = ["system", "light", "dark"];

function wear(name) {
  if (name === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.textContent = `Theme: ${name}`;
}

/** Some browsers keep nothing for pages of the file system. */
function remembered(name) {
  try {
    if (name) localStorage.setItem("dovetail-theme", name);
    return localStorage.getItem("dovetail-theme");
  } catch {
    return null;
  }
}

theme.hidden = false;
wear(themes.includes(remembered()) ? remembered() : "system");
theme.addEventListener("click", () => {
  const now = theme.textContent.replace("Theme: ", "");
  const next = themes[(themes.indexOf(now) + 1) % themes.length];
  remembered(next);
  wear(next);
});
