// The list of memories with its filters, and the answers of a search.

import { h, viewLink } from "./dom.js";
import { count, empty, notice, row, rows } from "./format.js";
import { pagedList } from "./paging.js";

const OUTCOMES = ["SUCCESS", "PARTIAL", "FAILED"];
const PAGE = 50;

/** Returns the arguments of a list or a search for the parameters in the address. */
function asked(parameters) {
  const given = {};
  if (parameters.type) given.types = [parameters.type];
  if (parameters.tag) given.tags = [parameters.tag.replace(/^#/, "")];
  if (parameters.outcome) given.outcomes = [parameters.outcome];
  if (parameters.trust) given.trust = parameters.trust;
  if (parameters.when) given.time_filter = parameters.when;
  return given;
}

/** Shows the memories that match the query and the filters in the address. */
export async function listView(view) {
  const { parameters, source, overview, signal, announce, go } = view;
  const { q = "" } = parameters;
  const filters = filterBar(parameters, overview, go);
  const given = asked(parameters);
  if (q.trim()) {
    const found = await source.search({ query: q.trim(), ...given }, signal);
    announce(count(found.matches.length, "result"));
    return [heading(`Results for “${q.trim()}”`), filters, notice(found.notice), results(found)];
  }
  const { body, total } = await pagedList({
    ...view,
    size: PAGE,
    field: "memories",
    read: (offset, limit) => source.list({ ...given, limit, offset }, signal),
    draw: (memories) => [memories.length ? rows(memories) : nothing(given)],
  });
  const about = count(total, "memory", "memories");
  announce(about);
  return [heading("Memories", about), filters, body];
}

function nothing(given) {
  return Object.keys(given).length
    ? empty("No memory passes these filters", "Clear one of them to see more.")
    : empty("No memories yet", "`mind add TEXT` stores the first one.");
}

function results(found) {
  if (!found.matches.length) {
    return empty("Nothing found", "Other words may help: search also matches by meaning.");
  }
  const items = found.matches.map(({ memory, passage, words, weak }) => {
    const repeats = passage.trim() === memory.title.trim();
    return row(memory, { passage: repeats ? memory.about : passage, words, weak });
  });
  return h("ul", { class: "rows results" }, items);
}

function heading(title, about = "") {
  return h("h1", {}, title, about && h("small", {}, about));
}

function filterBar(parameters, overview, go) {
  const change = (name) => (event) =>
    go(viewLink("", { ...parameters, [name]: event.target.value.trim() }));
  const types = Object.entries(overview.types).map(([type, number]) => [
    type,
    `${type} (${number.toLocaleString("en")})`,
  ]);
  const tags = h(
    "datalist",
    { id: "tags" },
    Object.keys(overview.tags).map((tag) => h("option", { value: tag })),
  );
  const set = ["type", "tag", "outcome", "trust", "when"].some((name) => parameters[name]);
  return h(
    "form",
    { class: "filters", "aria-label": "Filters", submit: (event) => event.preventDefault() },
    chooser("Type", parameters.type, [["", "Any type"], ...types], change("type")),
    input("Tag", parameters.tag, "Any tag", change("tag"), "tags"),
    chooser(
      "Outcome",
      parameters.outcome,
      [["", "Any outcome"], ...OUTCOMES.map((word) => [word, word.toLowerCase()])],
      change("outcome"),
    ),
    overview.isReport
      ? null
      : chooser(
          "Trust",
          parameters.trust,
          [["", "Any trust"], ["trusted", "trusted"], ["untrusted", "untrusted"]],
          change("trust"),
        ),
    input("Time", parameters.when, overview.isReport ? "2026-11" : "last week", change("when")),
    tags,
    set && h("a", { class: "clear", href: viewLink("", { q: parameters.q }) }, "Clear"),
  );
}

function chooser(label, value, options, change) {
  const select = h(
    "select",
    { change, "aria-label": label, "data-key": `filter-${label}` },
    options.map(([word, text]) => h("option", { value: word, selected: word === value }, text)),
  );
  return h("label", { class: value ? "filter set" : "filter" }, select);
}

function input(label, value, placeholder, change, list) {
  const field = h("input", {
    type: "text",
    value: value ?? "",
    placeholder: label === "Tag" ? placeholder : `${label}: ${placeholder}`,
    "aria-label": label,
    "data-key": `filter-${label}`,
    list,
    change,
    autocomplete: "off",
    spellcheck: "false",
  });
  return h("label", { class: value ? "filter set" : "filter" }, field);
}
