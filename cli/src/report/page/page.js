
// Everything but the timeline: summary, tables, histograms, search, theme, and the state in the address.

const SVG = "http://www.w3.org/2000/svg";
const MOST_RESULTS = 200;

/** An element with attributes and children; texts become text, never markup. */
function make(name, attributes = {}, ...children) {
  const made = ["svg", "rect", "text", "title"].includes(name) ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, value);
  made.append(...children.filter(child => child !== null));
  return made;
}

/** Fills a table. A column has a title, its text of a row, and perhaps a number by which it is sorted, or an element. */
function fill(table, caption, columns, rows) {
  const body = make("tbody");
  const line = row => make("tr", {}, ...columns.map(({ cell, by }) => make("td", by ? { class: "number" } : {}, cell(row))));
  const put = sorted => body.replaceChildren(...sorted.map(line));
  const heads = columns.map(({ title, by, text }) => {
    const sortable = by || text;
    const head = make("th", { scope: "col", ...(by ? { class: "number" } : {}) }, sortable ? "" : title);
    if (!sortable) return head;
    const button = make("button", { type: "button" }, title);
    button.addEventListener("click", () => {
      const current = head.getAttribute("aria-sort");
      const up = current ? current === "descending" : !by;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const compare = by ? (a, b) => by(a) - by(b) : (a, b) => text(a).localeCompare(text(b));
      put([...rows].sort((a, b) => (up ? 1 : -1) * compare(a, b)));
    });
    head.replaceChildren(button);
    return head;
  });
  table.replaceChildren(make("caption", {}, caption), make("thead", {}, make("tr", {}, ...heads)), body);
  put(rows);
}

function bars(values, label, height) {
  const most = Math.max(1, ...values), svg = make("svg", { viewBox: `0 0 ${values.length} ${height}`, preserveAspectRatio: "none", role: "img", "aria-label": label });
  values.forEach((value, index) => {
    const tall = value && Math.max(height / 12, height * value / most);
    if (tall) svg.append(make("rect", { x: index, y: height - tall, width: .9, height: tall }));
  });
  return svg;
}

const seconds = data.length_ns / 1e9;
const rate = count => seconds > 0 ? count / seconds : 0;

function summary() {
  const { losses, account, spans } = data;
  element("source").textContent = data.paths.join(", ") + (data.selection ? `, selected by ${data.selection}` : "");
  document.title = `Trace report: ${data.paths.join(", ")}`;
  const lost = losses.lost || losses.lost_more ? `${number(losses.lost)}${losses.lost_more ? " or more" : ""}` : "none";
  const balance = !account ? "none" : account.failed ? `${number(account.failed)} of ${number(account.checks)} checks fail` : `balances (${account.checks} checks)`;
  const entries = [
    ["Events", number(data.count)], ["Spans", number(spans.all)],
    ["Time", duration(data.length_ns, 3)], ["Begin", new Date(beginMs).toISOString().replace("T", " ").replace("Z", " UTC")],
    ["Events per second", number(Math.round(rate(data.count)))],
    ["Processes, threads", `${data.processes.length}, ${data.tracks.length}`],
    ["Lost events", lost, lost !== "none"], ["Account", balance, !account || account.failed > 0],
  ];
  element("summary").append(...entries.map(([title, text, isBad]) =>
    make("div", {}, make("dt", {}, title), make("dd", isBad ? { class: "bad" } : {}, text))));
  element("summary").dataset.events = data.count;
  const notes = data.damage.map(text => `Damaged: ${text}`);
  if (spans.unmatched) notes.push(`${number(spans.unmatched)} spans have an end and no beginning: they began before the recording, or the event is lost.`);
  if (spans.unpaired) notes.push(`${number(spans.unpaired)} spans were not paired: too many were open, or an id was used again.`);
  if (data.further_kinds) notes.push(`${number(data.further_kinds)} less frequent tracepoints are not listed.`);
  element("notes").append(...notes.map(text => make("p", { class: "note" }, text)));
  const kept = (rows, all, what) => rows.length === all ? `all ${number(all)} ${what}` : `${number(rows.length)} of ${number(all)} ${what}`;
  const sampled = `${kept(spans.rows, spans.all, "spans")} and ${kept(data.events.rows, data.events.all, "events")}`;
  element("sampled").textContent = `Bars show all events, of each slice of ${duration(length / (data.tracks[0]?.density.length || 1))}, on a logarithmic scale; red bands show losses. In this file are ${sampled}: of spans the longest of each thread and each 64th of the time, of events a random choice from each tracepoint and each 64th of the time.`;
  if (data.states.all) {
    const used = new Set(data.states.rows.map(([, cause]) => data.states.causes[cause]));
    const boxes = [...used].map(cause => {
      const box = make("span", { class: "cause" });
      box.style.background = CAUSES[cause];
      return make("span", {}, box, `${cause} `);
    });
    element("legend").append("Below the bars are the states of threads: ", ...boxes, `(${kept(data.states.rows, data.states.all, "states")}, the longest of each thread and each 64th of the time).`);
    if (data.states.without_track) element("legend").append(` ${number(data.states.without_track)} further threads have no track of their own, and none of their states are shown.`);
  }
  return sampled;
}

function tables() {
  const total = data.kinds.reduce((sum, kind) => sum + kind.count, 0);
  fill(element("kinds"), `${number(data.kinds.length)} tracepoints with ${number(total)} events; the small bars show them over time`, [
    { title: "Tracepoint", cell: kind => kind.name, text: kind => kind.name },
    { title: "Events", cell: kind => number(kind.count), by: kind => kind.count },
    { title: "Per second", cell: kind => number(Number(rate(kind.count).toPrecision(4))), by: kind => kind.count },
    { title: "Over time", cell: kind => bars(kind.history, `${kind.name} over time`, 18) },
  ], data.kinds);
  fill(element("threads"), `${number(data.tracks.length)} threads of ${number(data.processes.length)} processes`, [
    { title: "Process", cell: track => track.title, text: track => track.title },
    { title: "Thread", cell: track => track.name, text: track => track.name },
    { title: "Events", cell: track => number(track.count), by: track => track.count },
  ], order);
  const { account, losses } = data;
  if (account) {
    const lost = Object.entries(account.lost).filter(([, count]) => count);
    const reasons = lost.map(([reason, count]) => `${reason} ${number(count)}`).join(", ") || "none";
    const text = `Account of the whole traces: ${number(account.fired)} fired, ${number(account.recorded)} recorded, ${number(account.filtered)} filtered, ${number(account.suppressed)} suppressed; lost by reason: ${reasons}.`;
    element("account").append(make("p", { "data-lost": JSON.stringify(Object.fromEntries(lost)), "data-recorded": account.recorded }, text));
    if (account.incomplete) element("account").append(make("p", { class: "bad" }, `${account.incomplete} accounts are missing or not final: \`tracectl recover\` completes the trace of a killed process.`));
    account.failures.forEach(failure => element("account").append(make("p", { class: "bad" }, failure)));
    const unnamed = account.failed - account.failures.length;
    if (unnamed) element("account").append(make("p", { class: "bad" }, `${number(unnamed)} further failures: \`tracectl verify --failures\` shows all.`));
  } else element("account").append(make("p", {}, "The traces have no account: what was lost before they were written is not known."));
  const more = losses.further ? `; ${number(losses.further)} smaller ones are not listed` : "";
  fill(element("losses"), losses.rows.length ? `${number(losses.rows.length)} losses on the timeline${more}` : "No loss on the timeline", [
    { title: "From", cell: loss => link(time(loss.from), loss), by: loss => loss.from },
    { title: "To", cell: loss => time(loss.to), by: loss => loss.to },
    { title: "Lost", cell: loss => loss.text, text: loss => loss.text },
    { title: "Thread", cell: loss => loss.track === null ? "" : `${tracks[loss.track].title}, ${tracks[loss.track].name}` },
  ], losses.rows);
}

/** Shows how the time of a span divides, if it is known. */
function divide(item) {
  const parts = item?.division ?? [], table = element("division"), { causes, texts } = data.states;
  table.hidden = !parts.length;
  table.replaceChildren();
  if (!parts.length) return;
  table.dataset.division = JSON.stringify(Object.fromEntries(parts.map(([cause, took]) => [causes[cause], took])));
  const share = took => `${(took * 100 / Math.max(1, item.length)).toFixed(1)} %`;
  const waits = cause => (item.waits ?? []).filter(([of]) => of === cause)
    .map(([, text, count, took]) => `${texts[text]}, ${number(count)} ${count === 1 ? "time" : "times"}, ${duration(took)}`).join("; ");
  const legend = cause => {
    const box = make("span", { class: "cause" });
    box.style.background = CAUSES[cause];
    return make("span", {}, box, cause);
  };
  fill(table, "How its time divides", [
    { title: "Cause", cell: ([cause]) => legend(causes[cause]), text: ([cause]) => causes[cause] },
    { title: "Time", cell: ([, took]) => duration(took), by: ([, took]) => took },
    { title: "Share", cell: ([, took]) => share(took), by: ([, took]) => took },
    { title: "Longest waits", cell: ([cause]) => waits(cause) },
  ], parts);
}

/** A button that shows an item on the timeline. */
function link(text, item) {
  const button = make("button", { type: "button" }, text);
  button.addEventListener("click", () => { select(item, true); scroller.focus(); });
  return button;
}

function histograms() {
  element("fields").textContent = `${number(data.histograms.length)} numeric fields, all values${data.further_fields ? `; ${number(data.further_fields)} further fields have no histogram here` : ""}. Buckets are as wide as they are far from 0, percentiles within 1.6 %; minimum, maximum and mean are exact.`;
  element("histograms").append(...data.histograms.map(histogram => {
    const { event, field, is_duration, bins, count } = histogram;
    const text = value => valueText(value, is_duration);
    const figures = [`${number(count)} values, min ${text(histogram.min)}`, `mean ${text(histogram.mean)}`,
      ...histogram.percentiles.map(([percent, value]) => `p${percent} ${text(value)}`), `max ${text(histogram.max)}`].join(", ");
    const svg = bars(bins.map(bin => bin.count), `${event} ${field}: ${figures}`, 60);
    svg.style.height = "90px";
    [...svg.children].forEach(bar => {
      const bin = bins[Number(bar.getAttribute("x"))];
      bar.append(make("title", {}, `${text(bin.from)} to ${text(bin.to)}: ${number(bin.count)}`));
    });
    const axis = make("div", { class: "note", style: "display:flex;justify-content:space-between" }, make("span", {}, text(bins[0].from)), make("span", {}, text(bins[bins.length - 1].to)));
    return make("figure", { "data-field": `${event} ${field}`, "data-count": count }, make("figcaption", {}, make("strong", {}, `${event} ${field}`), make("br"), figures), svg, axis);
  }));
}

function search(sampled) {
  const input = element("search"), all = [...data.spans.rows, ...data.events.rows];
  const run = () => {
    const wanted = input.value.trim().toLowerCase();
    const found = wanted ? all.filter(item => item.name.toLowerCase().includes(wanted) || item.text.toLowerCase().includes(wanted)) : [];
    element("found").textContent = wanted
      ? `${number(found.length)} matches${found.length > MOST_RESULTS ? `, the first ${MOST_RESULTS} are shown` : ""}, in ${sampled} of this file; \`tracectl view --filter\` searches all.`
      : `Searches ${sampled} of this file.`;
    document.body.dataset.found = found.length;
    fill(element("results"), wanted ? "Matches, by time" : "", wanted ? [
      { title: "Time", cell: item => link(time(item.at), item), by: item => item.at },
      { title: "Duration", cell: item => "length" in item ? duration(item.length) : "", by: item => item.length ?? -1 },
      { title: "Name", cell: item => item.name, text: item => item.name },
      { title: "Fields", cell: item => item.text, text: item => item.text },
      { title: "Thread", cell: item => `${tracks[item.track].title}, ${tracks[item.track].name}` },
    ] : [], found.sort((a, b) => a.at - b.at).slice(0, MOST_RESULTS));
  };
  input.addEventListener("input", () => { run(); remember(); });
  return run;
}

/** What is shown is in the address, so that it can be linked: #from=…&to=…&q=…&theme=… */
function remember() {
  const state = new URLSearchParams();
  if (view.from > 0 || view.to < length) { state.set("from", Math.round(view.from)); state.set("to", Math.round(view.to)); }
  if (element("search").value) state.set("q", element("search").value);
  if (document.documentElement.dataset.theme) state.set("theme", document.documentElement.dataset.theme);
  // A page from a file may not be allowed to.
  try { history.replaceState(null, "", `#${state}`); } catch { /* The address stays as it was. */ }
}

const prefersDark = matchMedia("(prefers-color-scheme: dark)");
const isDark = () => (document.documentElement.dataset.theme || (prefersDark.matches ? "dark" : "light")) === "dark";

function retheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  element("theme").setAttribute("aria-pressed", isDark());
  draw();
}

function recall(run) {
  const state = new URLSearchParams(location.hash.slice(1));
  const [from, to] = ["from", "to"].map(name => Number(state.get(name) ?? NaN));
  if (from < to) show(from, to); else show(0, length);
  if (["dark", "light"].includes(state.get("theme"))) retheme(state.get("theme"));
  element("search").value = state.get("q") || "";
  run();
}

function fail(error) {
  const failure = element("failure");
  failure.hidden = false;
  failure.textContent = `This page failed: ${error}`;
  document.body.dataset.error = String(error);
}

addEventListener("error", event => fail(event.message));
const sampled = summary();
tables();
histograms();
const run = search(sampled);
recall(run);
retheme();
onView = remember;
element("theme").addEventListener("click", () => { retheme(isDark() ? "light" : "dark"); remember(); });
prefersDark.addEventListener("change", () => retheme());
addEventListener("resize", draw);
addEventListener("hashchange", () => recall(run));
document.body.dataset.ready = "true";
