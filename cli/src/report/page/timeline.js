
// The timeline: what is seen of it, how it is drawn, and how it is moved.

const element = id => document.getElementById(id);
const canvas = element("canvas"), room = element("room"), scroller = element("tracks");
const LABELS = 170;
const view = { from: 0, to: length };
let selection = null;
let onView = () => {};

const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const PALETTE = ["#9ecbff", "#ffd479", "#a8e6a1", "#ffb3ba", "#d0b8ff", "#8fe3e3", "#f2c5a0", "#d9e08a"];

/** The colours of the causes: what runs is green, what could run yellow, what waits in other colours. */
const CAUSES = {
  running: "#4caf50", ready: "#f2c037", lock: "#d9534f", disk: "#8d6e63", network: "#5c9ded", sleep: "#b0bec5",
  "page fault": "#ab47bc", "another thread": "#ff8a65", blocked: "#90a4ae", "not polled": "#cfd8dc", unknown: "#e0e0e0",
};

function colorOf(name) {
  let hash = 7;
  for (const letter of name) hash = (hash * 31 + letter.codePointAt(0)) >>> 0;
  return PALETTE[hash % PALETTE.length];
}

const width = () => canvas.clientWidth - LABELS;
const toX = at => LABELS + (at - view.from) / (view.to - view.from) * width();
const toTime = x => view.from + (x - LABELS) / width() * (view.to - view.from);

/** Shows these times, within those of the trace. */
function show(from, to) {
  const shown = Math.min(length, Math.max(to - from, Math.min(10, length)));
  view.from = Math.min(Math.max(0, from), length - shown);
  view.to = view.from + shown;
  draw();
  onView();
}

function zoom(factor, center = (view.from + view.to) / 2) {
  show(center - (center - view.from) * factor, center + (view.to - center) * factor);
}

const move = part => show(view.from + part * (view.to - view.from), view.to + part * (view.to - view.from));

function ruler(context) {
  const span = view.to - view.from;
  const raw = span / Math.max(1, width() / 110), base = 10 ** Math.floor(Math.log10(raw));
  const step = base * ([1, 2, 5, 10].find(factor => base * factor >= raw) || 10);
  context.fillStyle = color("--faint");
  context.strokeStyle = color("--line");
  context.textAlign = "left";
  for (let tick = Math.ceil(view.from / step) * step; tick <= view.to; tick += step) {
    const x = Math.round(toX(tick)) + .5;
    context.beginPath();
    context.moveTo(x, 0);
    context.lineTo(x, canvas.clientHeight);
    context.stroke();
    context.fillText(time(tick, step), x + 3, 14);
  }
}

/** The text as far as it has room: its begin, or its end. */
function fitted(context, text, room, end = false) {
  if (context.measureText(text).width <= room) return text;
  for (let letters = Math.floor(text.length * room / context.measureText(text).width); letters > 1; letters--) {
    const shorter = end ? `…${text.slice(-letters)}` : `${text.slice(0, letters)}…`;
    if (context.measureText(shorter).width <= room) return shorter;
  }
  return "";
}

function drawTrack(context, track, top) {
  const right = canvas.clientWidth, drawn = { spans: 0, states: 0, events: 0, losses: 0 };
  context.fillStyle = color("--text");
  context.fillText(fitted(context, track.title, LABELS - 10), 6, top + 12);
  context.fillStyle = color("--faint");
  context.fillText(fitted(context, track.name, LABELS - 10), 6, top + 27);
  context.save();
  context.beginPath();
  context.rect(LABELS, RULER, right - LABELS, canvas.clientHeight - RULER);
  context.clip();
  context.fillStyle = color("--bar");
  const step = Math.max(1, width() / (track.density.length * (view.to - view.from) / length));
  for (let x = LABELS; x < right; x += step) {
    const count = densest(track, toTime(x), toTime(Math.min(right, x + step)) - 1e-3);
    const bar = count && Math.max(2, DENSITY * Math.log1p(count) / Math.log1p(track.most));
    if (bar) context.fillRect(x, top + DENSITY - bar, step + .3, bar);
  }
  for (const event of track.events) {
    if (event.at < view.from || event.at > view.to) continue;
    drawn.events++;
    context.fillStyle = event === selection ? color("--focus") : color("--accent");
    context.fillRect(toX(event.at) - (event === selection ? 2 : .5), top + DENSITY + 1, event === selection ? 5 : 1.5, 8);
  }
  for (const state of track.states) {
    if (state.at + state.length < view.from || state.at > view.to) continue;
    drawn.states++;
    const x = Math.max(LABELS - 2, toX(state.at)), end = Math.min(right + 2, toX(state.at + state.length));
    context.fillStyle = state === selection ? color("--focus") : CAUSES[state.cause];
    context.fillRect(x, top + DENSITY + 11, Math.max(.5, end - x), STATES - 2);
  }
  for (const span of track.spans) {
    if (span.at + span.length < view.from || span.at > view.to) continue;
    drawn.spans++;
    const x = Math.max(LABELS - 2, toX(span.at)), end = Math.min(right + 2, toX(span.at + span.length));
    const y = top + track.spansTop + span.lane * LANE;
    context.fillStyle = colorOf(span.name);
    context.fillRect(x, y, Math.max(1.5, end - x), LANE - 2);
    if (span === selection) {
      context.strokeStyle = color("--focus");
      context.lineWidth = 3;
      context.strokeRect(x, y, Math.max(1.5, end - x), LANE - 2);
      context.lineWidth = 1;
    }
    if (end - x > 24) {
      context.fillStyle = "#111111";
      context.fillText(fitted(context, span.name, end - x - 6, true), x + 3, y + 11);
    }
  }
  context.fillStyle = color("--loss-band");
  for (const loss of track.losses) {
    if (loss.to < view.from || loss.from > view.to) continue;
    drawn.losses++;
    const x = toX(loss.from);
    context.fillRect(x, top, Math.max(3, toX(loss.to) - x), track.height - GAP);
  }
  context.restore();
  return drawn;
}

function draw() {
  const shown = Math.max(120, Math.min(height + RULER, Math.round(innerHeight * .6) - 2)), scale = devicePixelRatio || 1;
  room.style.height = `${height + RULER}px`;
  canvas.style.height = `${shown}px`;
  canvas.width = Math.round(canvas.clientWidth * scale);
  canvas.height = Math.round(shown * scale);
  const context = canvas.getContext("2d");
  context.scale(scale, scale);
  context.font = "11px system-ui, sans-serif";
  context.fillStyle = color("--back");
  context.fillRect(0, 0, canvas.clientWidth, shown);
  ruler(context);
  const sum = { spans: 0, states: 0, events: 0, losses: 0 };
  for (const track of order) {
    const top = RULER + track.top - scroller.scrollTop;
    if (top + track.height < RULER || top > shown) continue;
    const drawn = drawTrack(context, track, top);
    for (const what of Object.keys(sum)) sum[what] += drawn[what];
  }
  Object.assign(document.body.dataset, { from: Math.round(view.from), to: Math.round(view.to), ...Object.fromEntries(Object.entries(sum).map(([what, count]) => [`drawn_${what}`, count])) });
  element("view").textContent = `${time(view.from, (view.to - view.from) / 1000)} to ${time(view.to, (view.to - view.from) / 1000)}, ${duration(view.to - view.from)}`;
}

/** Selects a span, a state, an event or a loss, and says what it is. */
function select(item, bring = false) {
  selection = item;
  const track = item && tracks[item.track];
  const what = !item ? "" : "cause" in item
    ? `${item.cause}${item.text && ` ${item.text}`} at ${time(item.at)}, ${duration(item.length, 3)} (${track.title}, ${track.name})`
    : "name" in item
    ? `${item.name} at ${time(item.at)}${"length" in item ? `, ${duration(item.length, 3)}${item.open ? ", not ended" : ""}` : ""}: ${item.text} (${track.title}, ${track.name})`
    : `Lost: ${item.text}, between ${time(item.from)} and ${time(item.to)}`;
  element("selected").textContent = what;
  divide(item);
  if (item && bring) {
    const at = item.at ?? item.from, took = (item.length ?? item.to - item.from) || 0;
    if (track) scroller.scrollTop = Math.max(0, track.top - 40);
    const around = Math.max(took * 1.5, Math.min(view.to - view.from, length / 20));
    show(at + took / 2 - around / 2, at + took / 2 + around / 2);
  } else draw();
}

/** What is drawn at a place; the nearest event within a few pixels. */
function itemAt(x, y) {
  const row = y - RULER + scroller.scrollTop;
  const track = order.find(track => row >= track.top && row < track.top + track.height);
  if (!track || x < LABELS) return null;
  const lane = Math.floor((row - track.top - track.spansTop) / LANE), at = toTime(x), near = Math.abs(toTime(x + 4) - at);
  if (lane < 0 && row - track.top >= DENSITY + 10) {
    const state = track.states.find(state => state.at <= at && at < state.at + state.length);
    if (state) return state;
  }
  if (lane >= 0) {
    const hit = track.spans.filter(span => span.lane === lane && span.at - near <= at && at <= span.at + span.length + near);
    if (hit.length) return hit.sort((a, b) => a.length - b.length)[0];
  }
  const events = track.events.filter(event => Math.abs(event.at - at) <= near);
  events.sort((a, b) => Math.abs(a.at - at) - Math.abs(b.at - at));
  return events[0] || track.losses.find(loss => loss.from - near <= at && at <= loss.to + near) || null;
}

/** Selects the span or the state that begins after the selected one, or before it; the first one after a selection of another kind. */
function step(by, items = spansInOrder) {
  const at = items.indexOf(selection), from = selection?.at ?? view.from;
  const first = items.findIndex(item => item.at >= from);
  const next = at >= 0 ? at + by : Math.max(0, first);
  if (items[next]) select(items[next], true);
}

const KEYS = {
  "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), ArrowLeft: () => move(-.25), ArrowRight: () => move(.25),
  Home: () => show(0, length), n: () => step(1), p: () => step(-1), s: () => step(1, statesInOrder), S: () => step(-1, statesInOrder), Escape: () => select(null),
};
scroller.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
  event.preventDefault();
  KEYS[event.key]();
});
scroller.addEventListener("scroll", draw);
scroller.addEventListener("wheel", event => {
  if (!event.ctrlKey && !event.shiftKey) return;
  event.preventDefault();
  const turned = event.deltaY || event.deltaX;
  if (event.ctrlKey) zoom(turned > 0 ? 1.25 : .8, toTime(event.offsetX));
  else move(turned > 0 ? .1 : -.1);
}, { passive: false });
canvas.addEventListener("dblclick", event => zoom(.25, toTime(event.offsetX)));
canvas.addEventListener("pointerdown", event => {
  const began = { x: event.clientX, from: view.from, to: view.to };
  let dragged = false;
  const drag = moved => {
    const by = (began.x - moved.clientX) / width() * (began.to - began.from);
    dragged ||= Math.abs(began.x - moved.clientX) > 3;
    if (dragged) show(began.from + by, began.to + by);
  };
  addEventListener("pointermove", drag);
  addEventListener("pointerup", () => {
    removeEventListener("pointermove", drag);
    if (!dragged) select(itemAt(event.offsetX, event.offsetY));
  }, { once: true });
});
for (const [id, act] of Object.entries({ "zoom-in": KEYS["+"], "zoom-out": KEYS["-"], left: KEYS.ArrowLeft, right: KEYS.ArrowRight, fit: KEYS.Home })) {
  element(id).addEventListener("click", act);
}
