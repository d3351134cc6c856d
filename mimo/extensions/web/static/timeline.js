// Memories by day, below a bar for each month.

import { h, viewLink } from "./dom.js";
import { count, day, empty, longDay, rows } from "./format.js";
import { pagedList } from "./paging.js";

const PAGE = 100;
const MOST_MONTHS = 36;

/** Shows the memories by day, newest first. */
export async function timelineView(view) {
  const { parameters, source, overview, signal, announce } = view;
  const given = parameters.when ? { time_filter: parameters.when } : {};
  const { body, total } = await pagedList({
    ...view,
    size: PAGE,
    field: "memories",
    read: (offset, limit) => source.list({ ...given, limit, offset }, signal),
    draw: (memories) => (memories.length ? days(memories) : [empty("No memories in this time")]),
  });
  body.className = "timeline";
  const about = count(total, "memory", "memories");
  announce(about);
  const span = parameters.when ? ` in ${parameters.when}` : "";
  return [h("h1", {}, "Timeline", h("small", {}, `${about}${span}`)), bars(parameters, overview), body];
}

function days(memories) {
  const groups = new Map();
  for (const memory of memories) {
    const key = day(memory.created_at);
    groups.set(key, [...(groups.get(key) ?? []), memory]);
  }
  return [...groups.values()].map((some) =>
    h("section", {}, h("h2", {}, longDay(some[0].created_at)), rows(some, { date: false })),
  );
}

/** Returns a bar for each month with a link to its memories. */
function bars(parameters, overview) {
  const months = filled(Object.keys(overview.months)).slice(-MOST_MONTHS);
  if (months.length < 2) return null;
  const most = Math.max(...months.map((month) => overview.months[month] ?? 0));
  const items = months.map((month, place) => {
    const number = overview.months[month] ?? 0;
    const here = parameters.when === month;
    const bar = h("span", { class: "bar" });
    bar.style.setProperty("--share", String(number / most));
    const text = `${month}: ${count(number, "memory", "memories")}`;
    const shown = place === 0 || month.endsWith("-01") || months.length <= 12;
    return h(
      "li",
      {},
      h(
        "a",
        {
          href: viewLink("timeline", here ? {} : { when: month }),
          "aria-label": text,
          title: text,
          "aria-current": here && "true",
          "data-key": `month-${month}`,
        },
        bar,
        h("span", { class: "bar-name", "aria-hidden": "true" }, shown ? label(month, place) : ""),
      ),
    );
  });
  return h("nav", { "aria-label": "Months" }, h("ol", { class: "bars" }, items));
}

function label(month, place) {
  const [year, number] = month.split("-");
  const format = new Intl.DateTimeFormat("en", { month: "short", timeZone: "UTC" });
  const name = format.format(new Date(`${month}-15T00:00:00Z`));
  return place === 0 || number === "01" ? `${name}\n${year}` : name;
}

/** Returns all months between the first and the last of some. */
function filled(months) {
  if (!months.length) return [];
  const last = months.at(-1);
  const every = [];
  let [year, month] = months[0].split("-").map(Number);
  while (every.length < 1200) {
    const name = `${String(year).padStart(4, "0")}-${String(month).padStart(2, "0")}`;
    every.push(name);
    if (name >= last) break;
    month += 1;
    if (month > 12) [year, month] = [year + 1, 1];
  }
  return every;
}
