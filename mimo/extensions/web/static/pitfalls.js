// Known pitfalls, the most severe first.

import { h } from "./dom.js";
import { count, empty, label } from "./format.js";

/** Shows every pitfall with its way around it. */
export async function pitfallsView({ source, signal, announce }) {
  const { pitfalls, problems = [] } = await source.pitfalls(signal);
  const total = count(pitfalls.length, "pitfall");
  announce(total);
  const list = pitfalls.length
    ? h("ul", { class: "cards" }, pitfalls.map(card))
    : empty("No pitfalls yet", "`mind pitfalls starter` adds a set of well-known ones.");
  const faults = problems.map((problem) => {
    const place = problem.line ? `${problem.file}:${problem.line}` : problem.file;
    return h("li", {}, h("code", {}, place), ` ${problem.reason}`);
  });
  return [
    h("h1", {}, "Pitfalls", h("small", {}, total)),
    faults.length
      ? h("details", { class: "notice" }, h("summary", {}, "Some can’t be used"), h("ul", {}, faults))
      : null,
    list,
  ];
}

function card(pitfall) {
  const isOld = pitfall.description.trim() === pitfall.title.trim();
  return h(
    "li",
    { class: "card", tabindex: "0", "data-key": pitfall.id },
    h(
      "p",
      { class: "row-head" },
      label(pitfall.severity, pitfall.severity),
      h("strong", { class: "row-title", dir: "auto" }, pitfall.title),
      pitfall.trust === "untrusted" && label("untrusted", "warn"),
    ),
    !isOld && h("p", { dir: "auto" }, pitfall.description),
    pitfall.workaround && h("p", { class: "workaround", dir: "auto" }, pitfall.workaround),
    h(
      "p",
      { class: "row-about" },
      h("span", {}, pitfall.source),
      pitfall.stack_tags.map((tag) => h("span", { class: "tag" }, `#${tag}`)),
      h("code", {}, `${pitfall.file}:${pitfall.line}`),
    ),
  );
}
