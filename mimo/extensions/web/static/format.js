// Parts that several views share: dates, labels, rows of memories, and notes about empty answers.

import { h, memoryLink, visible } from "./dom.js";

let zone = "UTC";
let dayFormat = dayFormatOf(zone);

/** Sets the time zone in which days are shown: a name, or `local` for that of the browser. */
export function useZone(name) {
  const wanted = name === "local" ? undefined : name || "UTC";
  try {
    dayFormat = dayFormatOf(wanted);
    zone = wanted;
  } catch {
    zone = "UTC"; // The browser does not know the name.
    dayFormat = dayFormatOf(zone);
  }
}

function dayFormatOf(timeZone) {
  const parts = { year: "numeric", month: "2-digit", day: "2-digit" };
  return new Intl.DateTimeFormat("en-CA", { timeZone, ...parts });
}

/** Returns a day such as 2026-11-20. */
export function day(moment) {
  const date = new Date(moment);
  return Number.isNaN(date.valueOf()) ? "" : dayFormat.format(date);
}

/** Returns a day in words, such as `Fri, 20 Nov 2026`. */
export function longDay(moment) {
  const parts = { weekday: "short", day: "numeric", month: "short", year: "numeric" };
  const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...parts });
  return format.format(new Date(moment));
}

/** Returns a number with its noun: `1 memory`, `1,204 memories`. */
export function count(number, noun, plural = `${noun}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? noun : plural}`;
}

/** Returns an element that shows a time. */
export function time(moment) {
  return h("time", { datetime: moment, title: `${moment} (UTC)` }, day(moment));
}

/** Returns the mark of a memory's type. */
export function typeMark(type) {
  return h("span", { class: "type", "data-type": type }, type);
}

/** Returns a label of a kind, which has a colour. */
export function label(text, kind = "", title = null) {
  return h("span", { class: `label ${kind}`.trim(), title }, text);
}

/** Returns the labels that a reader must not miss. */
export function labels(memory) {
  const outcome = memory.outcome?.toLowerCase();
  return [
    outcome && label(outcome, outcome),
    memory.closed && label(memory.closed, "success"),
    memory.superseded_by && label("superseded", "old"),
    memory.competing?.length && label("competing", "warn"),
    memory.trust === "untrusted" && label("untrusted", "warn", "Not approved on this machine"),
    memory.scope === "user" && label("yours", "", "Your memory for all projects"),
    memory.private && label("private", "", "Never in git"),
    memory.stale && label("stale", "warn", memory.stale),
  ].filter(Boolean);
}

/** Returns the links to the tags of a memory. */
export function tags(memory) {
  return memory.tags.map((tag) => h("span", { class: "tag" }, `#${tag}`));
}

/** Returns a memory as an item of a list that the arrow keys walk through. */
export function row(memory, { passage = memory.about, words = [], weak = false, date = true } = {}) {
  return h(
    "li",
    {},
    h(
      "a",
      { class: "row", href: memoryLink(memory.id), "data-key": memory.id },
      h(
        "span",
        { class: "row-head" },
        h("span", { class: "row-title", dir: "auto" }, marked(memory.title, words)),
        labels(memory),
        weak && label("weak match"),
      ),
      under(passage, words),
      h(
        "span",
        { class: "row-about" },
        typeMark(memory.type),
        date && time(memory.created_at),
        memory.topic && h("span", { class: "topic" }, memory.topic),
        memory.origin && h("span", { class: "topic" }, memory.origin),
        tags(memory),
      ),
    ),
  );
}

/** Returns the text below a title, or nothing. */
export function under(passage, words = []) {
  return passage && h("span", { class: "row-passage", dir: "auto" }, marked(excerpt(passage), words));
}

/** Returns a list of memories; neighbours that are parts of one ingested file are folded. */
export function rows(memories, options = {}) {
  const list = h("ul", { class: "rows" });
  for (let place = 0; place < memories.length; ) {
    const { parent, origin } = memories[place];
    let end = place + 1;
    while (parent && end < memories.length && memories[end].parent === parent) end += 1;
    if (end - place > 2) {
      const parts = memories.slice(place, end);
      const summary = h("summary", {}, h("span", { class: "row-title" }, origin ?? parent));
      summary.append(h("span", { class: "muted" }, ` ${count(parts.length, "part")} of a file`));
      const inner = h("ul", { class: "rows" }, parts.map((part) => row(part, options)));
      list.append(h("li", {}, h("details", { class: "fold", "data-key": `parts of ${parent}` }, summary, inner)));
    } else {
      list.append(...memories.slice(place, end).map((memory) => row(memory, options)));
    }
    place = end;
  }
  return list;
}

/**
 * Returns versions, newest first, as a list: a line leads from each to the one that it replaced, and
 * those that replaced the same one are branches.
 */
export function chain(versions, arcs, draw) {
  const byId = new Map(versions.map((version) => [version.id, version]));
  const replaced = ({ id }) =>
    arcs
      .filter(({ source, target, type }) => source === id && type === "supersedes" && byId.has(target))
      .map(({ target }) => byId.get(target));
  const items = [];
  for (const version of versions) {
    const path = [];
    let next = version;
    while (next && ![...items, ...path].some((item) => item.version === next)) {
      path.push({ version: next });
      [next] = replaced(next);
    }
    const into = items.find((item) => item.version === next);
    const lane = into ? into.lane + 1 : 0;
    path.forEach((item, place) => Object.assign(item, { lane, next: path[place + 1], into }));
    items.splice(into ? items.indexOf(into) : items.length, 0, ...path);
  }
  const line = (kind, lane) => withLane(h("i", { class: `lane ${kind}` }), lane);
  return h(
    "ol",
    { class: "chain" },
    items.map((item, place) => {
      const { version, lane, next, into } = item;
      const passing = items.slice(0, place).filter((other) => items.indexOf(other.next) > place);
      const isReached = items.some((other) => (other.next ?? other.into) === item);
      const kind = version.superseded_by ? "old" : "current";
      return withLane(
        h(
          "li",
          { class: kind },
          passing.map((other) => line("", other.lane)),
          isReached && line("up", lane),
          next ? line("down", lane) : into && line("join", into.lane),
          draw(version, replaced(version), items[place + 1]?.version),
        ),
        lane,
      );
    }),
  );
}

function withLane(element, lane) {
  element.style.setProperty("--lane", String(lane));
  return element;
}

/** Returns a passage of Markdown as one line of plain words. */
function excerpt(passage) {
  return passage
    .replace(/^\s*(?:#{1,6}|[-*+>]|\d+[.)]|```\w*)(?:\s+|$)/gm, "")
    .replace(/\*+(?=\S)|(?<=\S)\*+|__|`/g, "")
    .replace(/\s+/g, " ")
    .trim();
}

/** Returns a text as nodes, with some of its words marked. */
function marked(text, words) {
  const shown = visible(text);
  if (!words.length) return [shown];
  // Scripts without spaces have no ends of words.
  const each = words
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
    .map((word) => (/^[ -~]+$/.test(word) ? `\\b${word}\\b` : word));
  const pattern = new RegExp(`(${each.join("|")})`, "giu");
  return shown.split(pattern).map((part, place) => (place % 2 ? h("mark", {}, part) : part));
}

/** Returns the note in the place of an empty list. */
export function empty(title, advice) {
  return h("div", { class: "empty" }, h("p", {}, title), advice && h("p", { class: "muted" }, advice));
}

/** Returns a note about an answer, or nothing. */
export function notice(text) {
  return text ? h("p", { class: "notice" }, text) : null;
}
