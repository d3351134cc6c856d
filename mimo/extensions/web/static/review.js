// The items that need a decision of the user, and the decisions.

import { button, h, memoryLink } from "./dom.js";
import { sentence } from "./errors.js";
import { count, empty, label, time } from "./format.js";

const KINDS = {
  unreadable: "Files that can’t be read",
  versions: "Versions that a merge left",
  decisions: "Several current decisions",
  contradiction: "Contradictions",
  untrusted: "Not approved on this machine",
  outdated: "Ingested files that changed",
  stale: "Memories that cite changed files",
  double: "Near-duplicates",
  proposal: "Proposed from earlier sessions",
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
  state.texts ??= new Map(); // What the user has read stays open if the list is drawn again.
  // One after the other, each on items that are shown after the one before.
  const decide = (decision, done) =>
    (state.deciding ??= carryOut(decision, done).finally(() => (state.deciding = null)));
  const carryOut = async (decision, done) => {
    state.compares = decision.kind === SLOW;
    state.texts.delete(decision.id);
    try {
      const { undo } = await source.decide(decision);
      message(done, undo && (() => takeBack(undo)));
    } catch (error) {
      message(sentence(error));
    }
    await reload();
  };
  const takeBack = async (id) => {
    while (state.deciding) await state.deciding; // Its button is gone: the click counts.
    decide({ action: "undo", id }, "It is back.");
  };
  const view = { source, state, signal, decide, reload };
  const cut =
    review.items.length < review.total &&
    h("p", { class: "notice" }, `The most urgent ${review.items.length} are shown.`);
  return [
    h("h1", {}, "Review", h("small", {}, total)),
    cut,
    review.total ? null : empty("Nothing to review", "Every memory is approved and current."),
    ...sections(review, view),
    duplicates(view),
  ];
}

function sections(review, view) {
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
        review.items.filter((item) => item.kind === kind).map((item) => card(item, view)),
      ),
    ),
  );
}

/** Returns a button that looks for near-duplicates, or those that are left after a decision on one. */
function duplicates(view) {
  const { source, state, signal } = view;
  const area = h("div", { class: "more" });
  const look = async () => {
    area.replaceChildren(h("p", { class: "muted", role: "status" }, "Comparing the newest memories…"));
    try {
      const review = await source.review([SLOW], signal);
      const none = h("p", { class: "muted" }, "There are no near-duplicates.");
      area.classList.add("compared");
      area.replaceChildren(...(review.total ? sections(review, view) : [none]));
    } catch (error) {
      if (!signal.aborted) area.replaceChildren(failed(error), start);
    }
  };
  const start = button("Look for near-duplicates", look);
  area.append(start);
  if (state.compares) look();
  state.compares = false;
  return area;
}

function failed(error) {
  return h("p", { class: "notice bad" }, sentence(error));
}

function card(item, view) {
  const place = item.line ? `${item.file}:${item.line}` : item.file;
  return h(
    "li",
    { class: "card", "data-key": `${item.kind} ${item.id ?? item.file} ${item.field ?? item.against ?? ""}` },
    h(
      "p",
      { class: "row-head" },
      item.id && item.kind !== "proposal"
        ? h("a", { class: "row-title", href: memoryLink(item.id), dir: "auto" }, item.title ?? item.id)
        : h("strong", { class: "row-title" }, item.kind === "proposal" ? item.type : item.file),
      item.trust === "untrusted" &&
        item.kind !== "untrusted" &&
        label("untrusted", "warn"),
    ),
    item.kind !== "untrusted" && h("p", { class: "muted" }, item.why),
    BY_CHOICE.includes(item.kind) ? choices(item, view.decide) : null,
    item.id ? actions(item, view) : null,
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
        button("Keep this one", take(String(choice.number))),
    ),
  );
  const both = item.actions.some((action) => action.endsWith("--take both"));
  return [
    h("ol", { class: "choices" }, list),
    both && h("p", {}, button("Keep both", take("both"))),
  ];
}

function actions(item, view) {
  const { decide } = view;
  const common = { id: item.id, kind: item.kind };
  const hide = button("Hide", () =>
    decide({ action: "hide", ...common, seen: item.seen }, "Hidden until it changes."),
  );
  if (item.kind === "untrusted") return untrusted(item, view, hide);
  if (item.kind === "proposal") return proposal(item, { ...common, seen: item.seen }, decide);
  return item.kind === "versions" ? null : h("p", { class: "actions" }, hide);
}

/** Returns the actions on a proposal, whose text the user may change first. */
function proposal(item, common, decide) {
  const text = h("textarea", { class: "proposed", rows: "3", dir: "auto", "aria-label": "Text" }, item.title);
  const act = (action, done) => () => decide({ action, ...common, text: text.value.trim() }, done);
  return h(
    "div",
    {},
    text,
    h(
      "p",
      { class: "actions" },
      button("Accept", act("accept", "Saved as a memory."), { class: "primary" }),
      button("Reject", act("reject", "Rejected.")),
      button("Never again", act("never", "Never proposed again.")),
    ),
  );
}

/** Returns the actions on an unapproved memory: its text is shown before it can be approved. */
function untrusted(item, { source, state, decide, reload }, hide) {
  const area = h("div", {});
  const read = async () => {
    area.replaceChildren(h("p", { class: "quoted muted" }, "Reading…"));
    let page;
    try {
      page = await source.page(item.id);
    } catch (error) {
      area.replaceChildren(failed(error));
      return;
    }
    state.texts.set(item.id, { of: item.seen, page });
    if (!area.isConnected) reload();
    else draw(page).focus({ preventScroll: true }); // On the text, not on a button: it is to be read first.
  };
  const draw = (page) => {
    const common = { id: item.id, kind: item.kind, seen: page.seen };
    const approve = () => decide({ action: "approve", ...common }, "Approved.");
    const remove = () => decide({ action: "remove", ...common }, "Removed.");
    const text = h("pre", { class: "quoted", tabindex: "0", dir: "auto" }, page.written.trim());
    area.replaceChildren(...[text, header(page)].filter(Boolean));
    bar.replaceChildren(
      button("Approve", approve, { class: "primary" }),
      button("Reject and remove", remove, { class: "danger" }),
      hide,
    );
    return text;
  };
  const bar = h("p", { class: "actions" }, button("Read it", read, { class: "read" }), hide);
  const known = state.texts.get(item.id);
  if (known?.of === item.seen) draw(known.page);
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
