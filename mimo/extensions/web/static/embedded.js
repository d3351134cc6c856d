// The answers of `mind report`: the same as of the server, from the data in the file itself.

import { Failure } from "./errors.js";

const SUPERSEDES = "supersedes";
const MOST_NODES = 1000;
const PASSAGE = 300;
const MOST_MATCHES = 50;

const LEFT_OUT = "The report may leave it out; `mind show` shows it in the project.";

/** Answers from the data of a report. */
export class Embedded {
  isLive = false;

  constructor(data) {
    this.data = data;
    this.pages = data.pages;
    this.byName = new Map();
    for (const page of this.pages) {
      const { id, handle } = page.memory;
      if (!this.byName.has(handle)) this.byName.set(handle, page);
      this.byName.set(id, page);
    }
    this.arcs = this.pages.flatMap(({ memory, links }) =>
      links
        .filter((link) => this.byName.has(link.id) && link.id !== memory.id)
        .map((link) => ({ source: memory.id, target: link.id, type: link.type })),
    );
  }

  async overview() {
    const months = {};
    const types = {};
    const tags = {};
    for (const { memory } of this.pages) {
      const month = memory.created_at.slice(0, 7);
      months[month] = (months[month] ?? 0) + 1;
      types[memory.type] = (types[memory.type] ?? 0) + 1;
      for (const tag of tagsOf(memory)) tags[tag] = (tags[tag] ?? 0) + 1;
    }
    const sorted = (numbers) => Object.fromEntries(Object.entries(numbers).sort());
    return {
      project: this.data.project,
      total: this.pages.length,
      types: sorted(types),
      tags: sorted(tags),
      months: sorted(months),
      isReport: true,
    };
  }

  async list({ limit, offset, ...filters }) {
    const memories = this.#passing(filters).map((page) => page.memory);
    return { memories: memories.slice(offset, offset + limit), total: memories.length, offset };
  }

  async search({ query, ...filters }) {
    const asked = wordsOf(query.toLowerCase());
    const content = asked.filter((word) => !this.data.stop.includes(word));
    const terms = content.length ? content : asked.length ? asked : [query.toLowerCase()];
    const scored = this.#passing(filters)
      .map((page) => [page, this.#score(page, terms)])
      .filter(([, score]) => score > 0)
      .sort((a, b) => b[1] - a[1]);
    const matches = scored.slice(0, MOST_MATCHES).map(([{ memory, ...page }]) => {
      const passage = passageOf(this.#text(page), terms);
      const shown = wordsOf(`${memory.title} ${memory.about ?? ""} ${passage}`);
      const words = shown.filter((word) => terms.some((term) => word.toLowerCase().includes(term)));
      return { memory, passage, words: [...new Set(words)] };
    });
    return { query, matches, notice: null };
  }

  async page(id) {
    const page = this.byName.get(id) ?? this.pages.find((other) => other.memory.title === id);
    if (!page) throw new Failure(`Memory not found: ${id}`, LEFT_OUT);
    const own = page.memory.id;
    const incoming = this.arcs
      .filter((arc) => arc.target === own)
      .map((arc) => ({
        id: arc.source,
        type: arc.type,
        incoming: true,
        memory: this.byName.get(arc.source).memory,
      }));
    const outgoing = page.links.map((link) => ({
      ...link,
      incoming: false,
      memory: this.byName.get(link.id)?.memory,
    }));
    const chain = this.#reached(own, 5, (arc) => arc.type === SUPERSEDES);
    const versions = this.pages.map(({ memory }) => memory).filter(({ id: some }) => chain.has(some));
    const shown = versions.length > 1 ? versions : [];
    return { ...page, links: [...outgoing, ...incoming], versions: shown, arcs: this.arcs };
  }

  async chains({ text, limit, offset }) {
    const words = text.toLowerCase();
    const chains = this.data.chains
      .map(({ topic, ids }) => ({ topic, versions: ids.map((id) => this.byName.get(id).memory) }))
      .filter(({ topic, versions }) =>
        versions.some(({ title }) => `${topic} ${title}`.toLowerCase().includes(words)),
      );
    const some = chains.slice(offset, offset + limit).map((chain) => {
      const ids = new Set(chain.versions.map(({ id }) => id));
      const links = this.arcs.filter((arc) => ids.has(arc.source) && ids.has(arc.target));
      return { ...chain, links };
    });
    return { chains: some, total: chains.length, offset };
  }

  async graph(id, depth) {
    const start = id ? this.byName.get(id)?.memory.id : null;
    if (id && !start) throw new Failure(`Memory not found: ${id}`, LEFT_OUT);
    const linked = start
      ? this.#reached(start, depth, () => true)
      : new Set(this.arcs.flatMap((arc) => [arc.source, arc.target]));
    const every = this.pages.map(({ memory }) => memory).filter((memory) => linked.has(memory.id));
    const nodes = every.slice(0, MOST_NODES);
    const drawn = new Set(nodes.map((node) => node.id));
    return {
      start: start ? [start] : [],
      nodes,
      links: this.arcs.filter((arc) => drawn.has(arc.source) && drawn.has(arc.target)),
      cut: every.length > nodes.length,
    };
  }

  async pitfalls() {
    return { pitfalls: this.data.pitfalls, problems: [] };
  }

  #passing({ types, tags, outcomes, trust, time_filter: when }) {
    return this.pages.filter(
      ({ memory }) =>
        (!types || types.includes(memory.type)) &&
        (!tags || tags.every((tag) => tagsOf(memory).has(tag.toLowerCase()))) &&
        (!outcomes || outcomes.includes(memory.outcome)) &&
        (!trust || memory.trust === trust) &&
        (!when || memory.created_at.startsWith(when)),
    );
  }

  /** Returns the ids within some links of a memory. */
  #reached(start, depth, follows) {
    const ids = new Set([start]);
    let edge = [start];
    for (let step = 0; step < depth && edge.length; step += 1) {
      const last = new Set(edge);
      edge = [];
      for (const arc of this.arcs.filter(follows)) {
        for (const [here, there] of [[arc.source, arc.target], [arc.target, arc.source]]) {
          if (last.has(here) && !ids.has(there)) {
            ids.add(there);
            edge.push(there);
          }
        }
      }
    }
    return ids;
  }

  /** Returns the number of words of a query in a memory; in a title they count more. */
  #score({ memory, ...page }, terms) {
    const head = `${memory.title} ${memory.topic ?? ""} ${memory.tags.join(" ")}`.toLowerCase();
    const text = this.#text({ memory, ...page }).toLowerCase();
    let score = 0;
    for (const term of terms) {
      if (head.includes(term)) score += 4;
      else if (text.includes(term)) score += 1;
      else score -= 1;
    }
    return score - (memory.superseded_by ? 0.5 : 0);
  }

  #text(page) {
    return [...page.content, ...Object.values(page.sections).flat()].map(plain).join("\n");
  }
}

/** Returns the tags of a memory as the server compares them: upper and lower case are the same. */
function tagsOf(memory) {
  return new Set(memory.tags.map((tag) => tag.toLowerCase()));
}

function plain(node) {
  if (typeof node === "string") return node;
  const text = node[2].map(plain).join("");
  return /^(?:p|h\d|li|tr|pre|blockquote)$/.test(node[0]) ? `${text}\n` : text;
}

function wordsOf(text) {
  return text.match(/[\p{L}\p{N}]+/gu) ?? [];
}

function passageOf(text, terms) {
  const lines = text.split("\n").filter((line) => line.trim());
  const line = lines.find((some) => terms.some((term) => some.toLowerCase().includes(term)));
  return (line ?? lines[0] ?? "").slice(0, PASSAGE);
}
