
// The data, and what is computed of it once. Times are nanoseconds since `begin_ns`.

const data = JSON.parse(document.getElementById("data").textContent);
const beginMs = Number(BigInt(data.begin_ns) / 1000000n);
const length = Math.max(data.length_ns, 1);

const number = value => value.toLocaleString("en");

/** A duration with its unit, and so many digits behind the point. */
function duration(ns, digits = 2) {
  const units = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];
  const [unit, scale] = units.find(([, scale]) => Math.abs(ns) >= scale) || units[3];
  return unit === "ns" ? `${Math.round(ns)} ns` : `${(ns / scale).toFixed(digits)} ${unit}`;
}

/** A time since the begin with so many digits that steps of `step` differ. */
function time(ns, step = 1) {
  const digits = Math.min(9, Math.max(0, Math.ceil(9 - Math.log10(Math.max(step, 1)))));
  return `${(ns / 1e9).toFixed(digits)} s`;
}

const valueText = (value, isDuration) =>
  value === null ? "–" : typeof value === "string" ? value : isDuration ? duration(value) :
    Number.isSafeInteger(value) ? value.toLocaleString("en") : Number(value.toPrecision(6)).toLocaleString("en", { maximumFractionDigits: 6 });

/** Puts spans of a track below each other: each into the first lane that is free at its begin. Spans are sorted by their begin. */
function placeSpans(spans) {
  const ends = [];
  for (const span of spans) {
    let lane = ends.findIndex(end => end <= span.at);
    if (lane < 0) lane = Math.min(ends.length, MOST_LANES - 1);
    ends[lane] = Math.max(ends[lane] || 0, span.at + span.length);
    span.lane = lane;
  }
  return ends.length;
}

const MOST_LANES = 8, LANE = 16, DENSITY = 18, STATES = 10, GAP = 8, RULER = 22;

const tracks = data.tracks.map((track, index) => {
  const process = data.processes[track.process];
  const pid = process.pid === null ? "" : ` ${process.pid}`;
  const host = process.host && data.processes.some(other => other.host !== process.host) ? `${process.host}: ` : "";
  return { ...track, index, title: `${host}${process.name}${pid}`, spans: [], states: [], events: [], losses: [], most: Math.max(1, ...track.density) };
});
// Threads of a process beside each other. Losses of streams without an event are on the first track.
const order = [...tracks].sort((a, b) => a.process - b.process || b.count - a.count);
for (const row of [...data.spans.rows, ...data.events.rows]) row.name = data.names[row.name];
for (const span of data.spans.rows) tracks[span.track].spans.push(span);
for (const [track, cause, at, took, text] of data.states.rows) tracks[track].states.push({ track, cause: data.states.causes[cause], at, length: took, text: data.states.texts[text] ?? "" });
for (const event of data.events.rows) tracks[event.track].events.push(event);
for (const loss of data.losses.rows) (loss.track === null ? order.slice(0, 1) : [tracks[loss.track]]).forEach(track => track.losses.push(loss));
let height = 0;
for (const track of order) {
  track.lanes = placeSpans(track.spans);
  track.top = height;
  track.spansTop = DENSITY + 12 + (track.states.length ? STATES : 0);
  track.height = track.spansTop + track.lanes * LANE + GAP;
  height += track.height;
}
/** All spans and states in the order of their begins, for the keyboard. */
const inOrder = items => items.sort((a, b) => a.at - b.at || b.length - a.length);
const spansInOrder = inOrder([...data.spans.rows]), statesInOrder = inOrder(tracks.flatMap(track => track.states));

/** The largest number of events in a slice of the track between two times. */
function densest(track, from, to) {
  const { density } = track, width = length / density.length;
  let most = 0;
  const last = Math.min(density.length - 1, Math.floor(to / width));
  for (let slice = Math.max(0, Math.floor(from / width)); slice <= last; slice++) most = Math.max(most, density[slice]);
  return most;
}
