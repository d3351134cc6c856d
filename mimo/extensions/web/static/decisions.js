// Decisions by topic, each with the versions that replaced one another.

import { h, memoryLink, viewLink } from "./dom.js";
import { chain, count, empty, label, labels, time, under } from "./format.js";
import { pagedList } from "./paging.js";

const PAGE = 40;

/** Shows the topics, the most recently decided first. */
export async function decisionsView(view) {
  const { parameters, source, signal, announce, go } = view;
  const { q = "" } = parameters;
  const { body, total } = await pagedList({
    ...view,
    size: PAGE,
    field: "chains",
    read: (offset, limit) => source.chains({ text: q, limit, offset }, signal),
    draw: (chains) => (chains.length ? chains.map(card) : [nothing(q)]),
  });
  const about = count(total, "topic");
  announce(about);
  const field = h("input", {
    type: "search",
    value: q,
    placeholder: "Topic or title",
    "aria-label": "Filter topics",
    "data-key": "filter-topic",
    change: (event) => go(viewLink("decisions", { q: event.target.value.trim() })),
  });
  const form = h(
    "form",
    { class: "filters", "aria-label": "Filters", submit: (event) => event.preventDefault() },
    h("label", { class: "filter" }, field),
  );
  return [h("h1", {}, "Decisions", h("small", {}, about)), form, body];
}

function nothing(q) {
  return q
    ? empty("No decision on such a topic")
    : empty("No decisions yet", "`mind save decision TOPIC TEXT` stores one.");
}

function card({ topic, versions, links }) {
  const current = versions.filter((version) => !version.superseded_by);
  const draw = (version, replaced, below) => {
    const others = links.filter((link) => link.source === version.id && link.type !== "supersedes");
    const names = replaced.map((old) => (old === below ? "the one below" : `“${old.title}”`));
    return h("a", { class: "row", href: memoryLink(version.id), "data-key": version.id }, [
      h(
        "span",
        { class: "row-head" },
        h("span", { class: "row-title", dir: "auto" }, version.title),
        labels(version),
      ),
      under(version.about),
      h(
        "span",
        { class: "row-about" },
        time(version.created_at),
        version.by && h("span", {}, `by ${version.by}`),
        names.length > 0 && h("span", {}, `replaces ${names.join(", ")}`),
        others.map((link) => h("span", {}, link.type.replaceAll("_", " "))),
      ),
    ]);
  };
  return h(
    "section",
    { class: "topic-card" },
    h(
      "h2",
      {},
      h("span", { dir: "auto" }, topic),
      versions.length > 1 && h("small", {}, count(versions.length, "version")),
      current.length > 1 && label(`${current.length} are current`, "warn"),
    ),
    chain(versions, links, draw),
  );
}
