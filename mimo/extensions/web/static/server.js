// The answers of `mind web`, which runs on this machine.

import { Failure } from "./errors.js";

const ENTRY = "#in=";
const HEADER = "x-mind-token";
const KEPT = "mind-token";
const PAUSE = 2000;
const MOST_NODES = 1000; // A screen has no room for more.

/**
 * Returns the token of the viewer, which the printed address has after `#`, or the kept one.
 *
 * It leaves the address at once. It is kept for this origin, so that reloading and new tabs work, when
 * the server accepts it: any site can open an address with another one.
 */
function arrivedToken() {
  if (!location.hash.startsWith(ENTRY)) return localStorage.getItem(KEPT) ?? "";
  const token = location.hash.slice(ENTRY.length);
  history.replaceState(null, "", "/");
  return token;
}

/** Asks the server. */
export class Server {
  isLive = true;
  #own = { [HEADER]: arrivedToken() };

  constructor() {
    // The address of a later run, opened in the same tab.
    window.addEventListener("hashchange", () => location.hash.startsWith(ENTRY) && location.reload());
  }

  overview(signal) {
    return this.#ask("overview", {}, signal);
  }
  list(given, signal) {
    return this.#ask("list", given, signal);
  }
  search(given, signal) {
    return this.#ask("search", given, signal);
  }
  page(id, signal) {
    return this.#ask("page", { id }, signal);
  }
  chains(given, signal) {
    return this.#ask("chains", given, signal);
  }
  graph(id, depth, signal) {
    return this.#ask("graph", { limit: MOST_NODES, ...(id && { id, depth }) }, signal);
  }
  pitfalls(signal) {
    return this.#ask("pitfalls", {}, signal);
  }
  review(kinds, signal) {
    return this.#ask("review", { kinds, limit: 100 }, signal);
  }

  /** Lists earlier sessions, or finds those that match a query. */
  sessions({ query, ...given }, signal) {
    return query ? this.#ask("sessions_search", { query, ...given }, signal) : this.#ask("sessions", given, signal);
  }
  session(given, signal) {
    return this.#ask("session", given, signal);
  }

  /** Carries out a decision of the review. */
  async decide(decision) {
    return this.#json("/api/decide", {
      method: "POST",
      headers: { ...this.#own, "content-type": "application/json" },
      body: JSON.stringify(decision),
    });
  }

  /** Calls `changed` when files change, and `state` when the connection comes and goes. */
  async listen(changed, state) {
    const heard = {
      ready: () => state("live"),
      changed,
      blind: () => state("blind"),
    };
    for (;;) {
      let response = null;
      try {
        response = await fetch("/api/events", { headers: this.#own });
        if (response.ok) await this.#hear(response.body, heard);
      } catch {
        // The server has stopped.
      }
      state(response?.status === 503 ? "blind" : "lost");
      if (response?.status === 401) return;
      await new Promise((resume) => setTimeout(resume, PAUSE));
    }
  }

  /** Calls the function for each event of a stream. */
  async #hear(stream, heard) {
    let text = "";
    for await (const part of parts(stream.pipeThrough(new TextDecoderStream()))) {
      const events = (text + part).split("\n\n");
      text = events.pop();
      for (const event of events) heard[/^event: (\w+)/.exec(event)?.[1]]?.();
    }
  }

  async #ask(name, given, signal) {
    const args = encodeURIComponent(JSON.stringify(given));
    return this.#json(`/api/${name}?args=${args}`, { signal, headers: this.#own });
  }

  /** Returns the JSON of an answer; raises a `Failure` for an error, and if there is no answer. */
  async #json(url, options) {
    let [response, text] = [null, ""];
    try {
      response = await fetch(url, options);
      text = await response.text();
    } catch (error) {
      if (options.signal?.aborted) throw error;
      throw new Failure("The viewer does not answer", "It may have stopped: run `mind web` again.");
    }
    if (response.ok) {
      localStorage.setItem(KEPT, this.#own[HEADER]);
      return JSON.parse(text);
    }
    let error = {};
    try {
      error = JSON.parse(text).error;
    } catch {
      error = { message: text.trim() };
    }
    throw new Failure(error.message ?? "no answer", error.details?.hint, response.status);
  }
}

/** Yields the parts of a stream; not every browser can iterate over one. */
async function* parts(stream) {
  const reader = stream.getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    yield value;
  }
}
