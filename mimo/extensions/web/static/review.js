// The items that need a decision of the user, and the decisions.

import { h, memoryLink } from "./dom.js";
import { sentence } from "./errors.js";
import { count, empty, time } from "./format.js";

const KINDS = {
  unreadable: "Files that can’t be read",
  versions: "Versions that a merge left",
  decisions: "Several current decisions",
  contradiction: "Contradictions",
  untrusted: "Not approved on this machine",
  outdated: "Ingested files that changed",
  stale: "Memories that cite changed files",
  double: "Near-duplicates",
};

const SLOW = "double";

const UNTRUSTED =
  "Another author’s texts: no agent gets them unasked, and a search labels them untrusted. " +
  "Approve a text only if you agree with it.";

const BY_CHOICE = ["versions", "decisions", "contradiction", "double"];

/** Shows the review queue. Near-duplicates are only looked for on request: that takes long. */
export async function reviewView({ source, state, signal, announce, reload, message }) {
  const quick = Object.keys(KINDS).filter((kind) => kind !== SLOW);
  const review = await source.review(quick, signal);
  const total = count(review.total, "item");
  announce(total);
  let isDeciding = false;
  // One after the other, each on items that are shown after the one before.
  const decide = async (decision, done) => {
    if (isDeciding) return;
    isDeciding = true;
    state.compares = decision.kind === SLOW;
    try {
      const { undo } = await source.decide(decision);
      message(done, undo && (() => decide({ action: "undo", id: undo }, "It is back.")));
    } catch (error) {
      message(sentence(error));
    }
    await reload();
    isDeciding = false;
  };
  const cut =
    review.items.length < review.total &&
    h("p", { class: "notice" }, `The most urgent ${review.items.length} are shown.`);
  return [
    h("h1", {}, "Review", h("small", {}, total)),
    cut,
    review.total ? null : empty("Nothing to review", "Every memory is approved and current."),
    ...sections(review, source, decide),
    duplicates(source, state, signal, decide),
  ];
}

function sections(review, source, decide) {
  const kinds = Object.keys(KINDS).filter((kind) => review.items.some((item) => item.kind === kind));
  return kinds.map((kind) =>
    h(
      "section",
      {},
      h("h2", {}, KINDS[kind], h("small", {}, String(review.counts[kind] ?? ""))),
      kind === "untrusted" && h("p", { class: "advice" }, UNTRUSTED),
      h(
        "ul",
        { class: "cards" },
        review.items.filter((item) => item.kind === kind).map((item) => card(item, source, decide)),
      ),
    ),
  );
}

/** Returns a button that looks for near-duplicates, or those that are left after a decision on one. */
function duplicates(source, state, signal, decide) {
  const area = h("div", { class: "more" });
  const look = async () => {
    area.replaceChildren(h("p", { class: "muted", role: "status" }, "Comparing the newest memories…"));
    try {
      const review = await source.review([SLOW], signal);
      const none = h("p", { class: "muted" }, "There are no near-duplicates.");
      area.classList.add("compared");
      area.replaceChildren(...(review.total ? sections(review, source, decide) : [none]));
    } catch (error) {
      if (!signal.aborted) area.replaceChildren(failed(error), button);
    }
  };
  const button = h("button", { type: "button", click: look }, "Look for near-duplicates");
  area.append(button);
  if (state.compares) look();
  state.compares = false;
  return area;
}

function failed(error) {
  return h("p", { class: "notice bad" }, sentence(error));
}

function card(item, source, decide) {
  const place = item.line ? `${item.file}:${item.line}` : item.file;
  return h(
    "li",
    { class: "card", "data-key": `${item.kind} ${item.id ?? item.file} ${item.field ?? item.against ?? ""}` },
    h(
      "p",
      { class: "row-head" },
      item.id
        ? h("a", { class: "row-title", href: memoryLink(item.id), dir: "auto" }, item.title ?? item.id)
        : h("strong", { class: "row-title" }, item.file),
      item.trust === "untrusted" &&
        item.kind !== "untrusted" &&
        h("span", { class: "label warn" }, "untrusted"),
    ),
    item.kind !== "untrusted" && h("p", { class: "muted" }, item.why),
    BY_CHOICE.includes(item.kind) ? choices(item, decide) : null,
    item.id ? actions(item, source, decide) : null,
    h("p", { class: "row-about" }, h("code", {}, place)),
    terminal(item),
  );
}

function choices(item, decide) {
  const { id, kind, field, against, seen } = item;
  const take = (number) => () =>
    decide({ action: "take", id, kind, field, against, take: number, seen }, "Resolved.");
  const list = item.choices.map((choice) =>
    h(
      "li",
      {},
      choice.id
        ? h(
            "p",
            {},
            h("a", { href: memoryLink(choice.id), dir: "auto" }, choice.title ?? choice.id),
            " ",
            choice.created_at && time(choice.created_at),
            choice.by && ` by ${choice.by}`,
          )
        : null,
      h("blockquote", { class: "version", dir: "auto" }, choice.text || "(nothing)"),
      !choice.obstacle &&
        h("button", { type: "button", click: take(String(choice.number)) }, "Keep this one"),
    ),
  );
  const both = item.actions.some((action) => action.endsWith("--take both"));
  return [
    h("ol", { class: "choices" }, list),
    both && h("p", {}, h("button", { type: "button", click: take("both") }, "Keep both")),
  ];
}

function actions(item, source, decide) {
  const common = { id: item.id, kind: item.kind };
  const hide = h(
    "button",
    {
      type: "button",
      click: () => decide({ action: "hide", ...common, seen: item.seen }, "Hidden until it changes."),
    },
    "Hide",
  );
  if (item.kind === "untrusted") return untrusted(item, source, decide, hide);
  return item.kind === "versions" ? null : h("p", { class: "actions" }, hide);
}

/** Returns the actions on an unapproved memory: its text is shown before it can be approved. */
function untrusted(item, source, decide, hide) {
  const area = h("div", {});
  const read = h("button", { type: "button", class: "read" }, "Read it");
  const bar = h("p", { class: "actions" }, read, hide);
  read.addEventListener("click", async () => {
    area.replaceChildren(h("p", { class: "quoted muted" }, "Reading…"));
    let page;
    try {
      page = await source.page(item.id);
    } catch (error) {
      area.replaceChildren(failed(error));
      return;
    }
    const common = { id: item.id, kind: item.kind, seen: page.seen };
    const approve = h(
      "button",
      {
        type: "button",
        class: "primary",
        click: () => decide({ action: "approve", ...common }, "Approved."),
      },
      "Approve",
    );
    const remove = h(
      "button",
      {
        type: "button",
        class: "danger",
        click: () => decide({ action: "remove", ...common }, "Removed."),
      },
      "Reject and remove",
    );
    const text = h("pre", { class: "quoted", tabindex: "0", dir: "auto" }, page.written.trim());
    area.replaceChildren(...[text, header(page)].filter(Boolean));
    bar.replaceChildren(approve, remove, hide);
    text.focus({ preventScroll: true }); // On the text, not on a button: it is to be read first.
  });
  return h("div", {}, area, bar);
}

/** Returns what the header of a file holds beside the text: an approval covers it too. */
function header(page) {
  const { memory, extra, links } = page;
  const fields = { topic: memory.topic, outcome: memory.outcome };
  for (const name of ["importance", "confidence", "status", "category", "source"]) fields[name] = page[name];
  const words = [
    ...Object.entries(fields).filter(([, value]) => value != null).map(([name, value]) => `${name}: ${value}`),
    ...memory.tags.map((tag) => `#${tag}`),
    ...links.filter((link) => !link.incoming).map((link) => `${link.type} ${link.id}`),
    ...Object.entries(extra).map(([name, value]) => `${name}: ${JSON.stringify(value)}`),
  ];
  return words.length ? h("p", { class: "row-about quoted-header" }, words.map((word) => h("span", {}, word))) : null;
}

function terminal(item) {
  if (!item.actions.length) return null;
  return h(
    "details",
    { class: "terminal" },
    h("summary", {}, "In the terminal"),
    h("ul", {}, item.actions.map((action) => h("li", {}, h("code", {}, action)))),
  );
}
