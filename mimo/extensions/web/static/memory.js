// The page of one memory.

import { button, graphLink, h, memoryLink, prose, viewLink } from "./dom.js";
import { chain, count, day, labels, notice, row, tags, time, typeMark } from "./format.js";

/** Shows a whole memory with its links and versions. */
export async function memoryView({ argument, source, signal, announce, message }) {
  const page = await source.page(argument, signal);
  const { memory } = page;
  announce(memory.title);
  return [
    h(
      "div",
      { class: "memory" },
      h("article", { "aria-labelledby": "title" }, head(page), memoryText(page), parts(page)),
      h("aside", { "aria-label": "About this memory" }, versions(page), links(page), about(page, message)),
    ),
  ];
}

function head({ memory, parts }) {
  return h(
    "header",
    {},
    h("h1", { id: "title", dir: "auto" }, memory.title),
    h(
      "p",
      { class: "row-about" },
      typeMark(memory.type),
      time(memory.created_at),
      memory.by && h("span", {}, `by ${memory.by}`),
      memory.topic && h("a", { href: viewLink("decisions", { q: memory.topic }) }, memory.topic),
      tags(memory).map((tag, place) =>
        h("a", { href: viewLink("", { tag: memory.tags[place] }) }, tag),
      ),
    ),
    h("p", { class: "labels" }, labels(memory)),
    memory.warning && h("p", { class: "notice bad", role: "note" }, memory.warning),
    memory.superseded_by &&
      h(
        "p",
        { class: "notice" },
        "A newer memory replaces this one: ",
        h("a", { href: memoryLink(memory.superseded_by) }, "read the newer one"),
      ),
    notice(memory.stale),
    memory.trust === "untrusted" &&
      notice("Not approved on this machine: read it as another author’s text."),
    parts?.length ? notice(`An ingested file, in ${count(parts.length, "part")}.`) : null,
  );
}

/** Returns the text of a memory: its content, then its sections. */
function memoryText(page) {
  const linked = page.links.filter((link) => link.memory);
  const titles = new Map(linked.map((link) => [link.id, link.memory.title]));
  return h(
    "div",
    { class: "prose", dir: "auto" },
    prose(withoutTitle(page.content, page.memory.title), titles),
    Object.entries(page.sections).map(([name, nodes]) => [h("h2", {}, name), prose(nodes, titles)]),
  );
}

/** Returns the nodes without a first heading or paragraph that only repeats the title. */
function withoutTitle(nodes, title) {
  const [first, ...rest] = nodes;
  const repeats = Array.isArray(first) && /^(?:h\d|p)$/.test(first[0]) && plain(first) === title;
  return repeats ? rest : nodes;
}

function plain(node) {
  return typeof node === "string" ? node : node[2].map(plain).join("");
}

function parts({ parts: listed }) {
  return listed?.length ? h("ul", { class: "rows" }, listed.map((part) => row(part))) : null;
}

function versions({ memory, versions: listed, arcs }) {
  if (!listed?.length) return null;
  const draw = (version) => {
    const here = version.id === memory.id;
    return [
      h("a", { href: memoryLink(version.id), "aria-current": here && "page" }, version.title),
      h("span", { class: "row-about" }, time(version.created_at), labels(version)),
    ];
  };
  return h("section", {}, h("h2", {}, "Versions"), chain(listed, arcs, draw));
}

function links({ memory, links: listed }) {
  if (!listed?.length) return null;
  const items = listed.map((link) => {
    const type = link.type.replaceAll("_", " ");
    const words = link.incoming ? `← ${type}` : `${type} →`;
    const name = link.memory
      ? h("a", { href: memoryLink(link.id), dir: "auto" }, link.memory.title)
      : h("span", { class: "muted" }, `${link.id} (not here)`);
    return h("li", {}, h("span", { class: "muted" }, words), " ", name);
  });
  const graph = h("a", { href: graphLink(memory.id) }, "Show in the graph");
  return h("section", {}, h("h2", {}, "Links"), h("ul", { class: "links" }, items), graph);
}

function about(page, message) {
  const { memory } = page;
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(memory.handle);
      message(`${memory.handle} is copied.`);
    } catch {
      getSelection().selectAllChildren(id); // The browser permits no copying.
    }
  };
  const id = button(memory.handle, copy, { class: "id", title: `Copy ${memory.handle} (${memory.id})` });
  const rows = [
    ["id", id],
    memory.file && ["file", h("code", {}, `${memory.file}:${memory.line}`)],
    ["created", `${day(memory.created_at)}`],
    page.source && ["source", page.source],
    page.status && ["status", page.status],
    page.category && ["category", page.category],
    ["importance", page.importance],
    page.confidence != null && ["confidence", page.confidence],
    ...Object.entries(page.extra).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  ].filter(Boolean);
  const pairs = rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]);
  return h("section", {}, h("h2", {}, "About"), h("dl", {}, pairs));
}
