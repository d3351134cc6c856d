// The answers of `mind web`, which runs on this machine.

/** An error that the server reports, with its advice. */
export class Failure extends Error {
  constructor(message, hint, status) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

/** Asks the server. */
export class Server {
  isLive = true;
  #token = null;

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
    return this.#ask("graph", id ? { id, depth } : {}, signal);
  }
  pitfalls(signal) {
    return this.#ask("pitfalls", {}, signal);
  }
  review(kinds, signal) {
    return this.#ask("review", { kinds, limit: 100 }, signal);
  }

  /** Carries out a decision of the review. */
  async decide(decision) {
    this.#token ??= (await this.#json(await fetch("/api/session"))).token;
    const response = await fetch("/api/decide", {
      method: "POST",
      headers: { "content-type": "application/json", "x-mind-token": this.#token },
      body: JSON.stringify(decision),
    });
    return this.#json(response);
  }

  /** Calls `changed` when files change, and `state` when the connection comes and goes. */
  listen(changed, state) {
    const stream = new EventSource("/api/events");
    stream.addEventListener("ready", () => state("live"));
    stream.addEventListener("changed", changed);
    stream.addEventListener("blind", () => state("blind"));
    stream.addEventListener("error", () => state("lost"));
  }

  async #ask(name, given, signal) {
    const args = encodeURIComponent(JSON.stringify(given));
    return this.#json(await fetch(`/api/${name}?args=${args}`, { signal }));
  }

  async #json(response) {
    if (response.ok) return response.json();
    const text = await response.text();
    let error = {};
    try {
      error = JSON.parse(text).error;
    } catch {
      error = { message: text.trim() };
    }
    throw new Failure(error.message ?? "no answer", error.details?.hint, response.status);
  }
}
