// The page as a whole: addresses and their views, search as you type, keys, live updates.

import { ROOT, button, h, replaceContent, viewLink } from "./dom.js";
import { described } from "./errors.js";
import { useZone } from "./format.js";
import { decisionsView } from "./decisions.js";
import { graphView } from "./graph.js";
import { listView } from "./list.js";
import { memoryView } from "./memory.js";
import { pitfallsView } from "./pitfalls.js";
import { reviewView } from "./review.js";
import { timelineView } from "./timeline.js";

const VIEWS = {
  "": listView,
  memory: memoryView,
  timeline: timelineView,
  decisions: decisionsView,
  graph: graphView,
  pitfalls: pitfallsView,
  review: reviewView,
};

const TYPING_MS = 140;
const QUIET_MS = 250;
const MESSAGE_MS = 8000;
const MOST_MESSAGES = 3;

/** Starts the page with a source of answers, the server or the data of a report, and more views. */
export function start(source, views = {}) {
  new Page(source, { ...VIEWS, ...views }).start();
}

class Page {
  #loading = new AbortController();
  #shown = new AbortController();
  #overview = null;
  #timers = new Map();
  #place = null;
  #state = { of: null };

  constructor(source, views) {
    this.source = source;
    this.views = views;
    this.main = document.getElementById("main");
    this.search = document.getElementById("search");
    this.status = document.getElementById("status");
    this.state = document.getElementById("state");
    this.messages = document.getElementById("messages");
  }

  start() {
    window.addEventListener("popstate", () => this.show());
    document.addEventListener("click", (event) => this.#follow(event));
    document.addEventListener("keydown", (event) => this.#key(event));
    document.getElementById("skip").addEventListener("click", (event) => {
      event.preventDefault();
      this.main.focus();
    });
    this.search.addEventListener("input", () => this.#later("typing", TYPING_MS, () => this.#typed()));
    this.search.form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#typed();
    });
    if (this.source.isLive) {
      const changed = () => this.#later("changed", QUIET_MS, () => this.refresh());
      this.source.listen(changed, (state) => this.#setState(state));
    }
    this.show();
  }

  /** Shows the view of the address; an answer that comes after the next one is dropped. */
  async show({ keep = false, unasked = false } = {}) {
    if (this.#loading !== this.#shown) this.#loading.abort(); // What is shown may stay.
    const loading = (this.#loading = new AbortController());
    const { signal } = loading;
    // Views of the server had addresses such as `#/graph` before.
    if (location.hash.startsWith("#/") && ROOT === "/") history.replaceState(null, "", location.hash.replace(/^#\/+/, "/"));
    const { name, argument, parameters } = address();
    const before = this.#place;
    this.#place = `${name} ${argument}`;
    const same = keep || before === this.#place;
    if (this.#state.of !== here()) this.#state = { of: here() };
    if (document.activeElement !== this.search) this.search.value = name ? "" : parameters.q ?? "";
    this.#mark(name);
    this.main.setAttribute("aria-busy", "true");
    let nodes;
    try {
      if (!this.#overview || keep) this.#take(await this.source.overview(signal));
      const view = Object.hasOwn(this.views, name) ? this.views[name] : listView;
      nodes = await view({
        argument,
        parameters,
        source: this.source,
        overview: this.#overview,
        state: this.#state,
        signal,
        announce: (text) => this.#announce(text),
        message: (text, undo) => this.#message(text, undo),
        go: (link) => this.#go(link),
        reload: () => this.show({ keep: true }),
      });
    } catch (error) {
      if (signal.aborted) return;
      // What is shown stays if the user did not ask, unless it is missing now.
      nodes = unasked && error.status !== 404 ? null : [failure(error)];
    }
    if (signal.aborted) return;
    this.main.removeAttribute("aria-busy");
    if (!nodes || (unasked && this.#isBusy())) {
      this.#setState("newer");
      return;
    }
    this.#shown.abort();
    this.#shown = loading;
    if (same) replaceContent(this.main, nodes);
    else {
      this.main.replaceChildren(...nodes.filter(Boolean));
      window.scrollTo(0, 0);
    }
    const title = this.main.querySelector("h1")?.firstChild?.textContent ?? "";
    document.title = [title, this.#overview?.project, "mind"].filter(Boolean).join(" · ");
    if (!same && before !== null && document.activeElement !== this.search) {
      this.main.focus({ preventScroll: true });
    }
  }

  /** Reads the view again after a change of files, unless that would disturb the reader. */
  refresh() {
    if (this.#isBusy()) this.#setState("newer");
    else this.show({ keep: true, unasked: true });
  }

  /** Returns whether the user types, selects or reviews a text, or looks at the graph. */
  #isBusy() {
    const focused = document.activeElement;
    const types = this.main.contains(focused) && focused.matches("input, textarea");
    const selection = getSelection();
    const selects = !selection.isCollapsed && this.main.contains(selection.anchorNode);
    return types || selects || this.main.querySelector(".quoted, .compared") || address().name === "graph";
  }

  #take(overview) {
    this.#overview = overview;
    useZone(overview.zone);
    document.getElementById("project").textContent = overview.project;
    const sessions = document.getElementById("sessions-link");
    if (sessions) sessions.hidden = !overview.sessions;
  }

  #typed() {
    const { name, parameters } = address();
    const kept = name === "" ? parameters : {};
    const link = viewLink("", { ...kept, q: this.search.value.trim() });
    if (link === here()) return;
    history.replaceState(null, "", link);
    this.show();
  }

  #go(link) {
    const keep = link === here();
    if (!keep) history.pushState(null, "", link);
    this.show({ keep });
  }

  /** Follows a link to a view, unless another tab or window is to show it. */
  #follow(event) {
    const link = event.target.closest("a")?.getAttribute("href");
    const elsewhere = event.ctrlKey || event.metaKey || event.shiftKey || event.altKey;
    if (!link?.startsWith(ROOT) || elsewhere) return;
    event.preventDefault();
    this.#go(link);
  }

  #mark(name) {
    for (const link of document.querySelectorAll("#views a")) {
      const here = link.getAttribute("href") === viewLink(name);
      if (here) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "/" && !typing) {
      event.preventDefault();
      this.search.focus();
      this.search.select();
    } else if (event.key === "Escape") {
      this.#escape(event);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const hasOwn = event.target.matches?.("select, input[type=text], pre, table");
      if (!hasOwn && this.#step(event.key === "ArrowDown" ? 1 : -1)) event.preventDefault();
    }
  }

  /** Leaves the search or the memory. */
  #escape(event) {
    if (event.target === this.search && this.search.value) {
      this.search.value = "";
      this.#typed();
    } else if (event.target.matches?.("input, select")) {
      event.target.blur();
      this.main.focus();
    } else if (["memory", "sessions"].includes(address().name) && address().argument && history.length > 1) {
      history.back();
    }
  }

  /** Moves the focus to the next or the previous row; from the search to the first. */
  #step(by) {
    const rows = [...this.main.querySelectorAll(".row, .card[tabindex], .card > .row-head > a")].filter(
      (row) => row.offsetParent !== null,
    );
    const focused = document.activeElement;
    const item = focused.closest(".row, .card");
    const here = rows.findIndex((row) => item?.contains(row));
    if (here < 0) {
      // A text above the rows is to be read first.
      const isAbove = focused === this.search || !this.main.querySelector("article");
      const follows = rows[0]?.compareDocumentPosition(focused) & Node.DOCUMENT_POSITION_PRECEDING;
      if (by < 0 || !isAbove || !follows) return false;
    }
    const next = here + by < 0 ? this.search : rows[here + by];
    next?.focus();
    return Boolean(next);
  }

  #later(name, delay, work) {
    clearTimeout(this.#timers.get(name));
    this.#timers.set(name, setTimeout(work, delay));
  }

  #announce(text) {
    this.status.textContent = text;
  }

  #setState(state) {
    const texts = {
      live: "",
      newer: "Something changed.",
      lost: "The viewer has stopped: run `mind web` again.",
      blind: "Changes can’t be watched here: reload to see them.",
    };
    const before = this.state.dataset.state;
    this.state.dataset.state = state;
    const reload = button("Show it", () => this.show({ keep: true }));
    this.state.replaceChildren(...(texts[state] ? [texts[state]] : []), ...(state === "newer" ? [reload] : []));
    this.state.hidden = !texts[state];
    if (state === "live" && before === "lost") this.refresh();
    if (state === "newer") reload.addEventListener("click", () => this.#setState("live"));
  }

  /** Shows a message below the others, for some seconds; longer if the user is at its button. */
  #message(text, undo) {
    const remove = () => (shown.matches(":hover, :focus-within") ? setTimeout(remove, MESSAGE_MS) : shown.remove());
    const click = () => {
      if (!shown.isConnected) return; // The second of two clicks.
      shown.remove();
      undo();
    };
    const shown = h("p", {}, text, undo && button("Undo", click));
    this.messages.append(shown);
    if (this.messages.children.length > MOST_MESSAGES) this.messages.firstChild.remove();
    setTimeout(remove, MESSAGE_MS);
  }
}

/** Returns the address as links to it have it. */
function here() {
  return ROOT === "/" ? location.pathname + location.search : location.hash || ROOT;
}

/** Returns the parts of the address: `/memory/ID?name=value`. */
function address() {
  const [path, query = ""] = here().slice(ROOT.length).split("?");
  const [name, ...rest] = path.split("/");
  let argument = rest.join("/");
  try {
    argument = decodeURIComponent(argument);
  } catch {
    // A percent sign of a hand-made address stays as it is.
  }
  return { name, argument, parameters: Object.fromEntries(new URLSearchParams(query)) };
}

function failure(error) {
  const [text, hint] = described(error);
  return h("div", { class: "empty", role: "alert" }, h("h1", {}, text), hint && h("p", {}, hint));
}
