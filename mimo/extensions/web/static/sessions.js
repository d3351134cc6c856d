// Earlier sessions with agents: their list, what a search finds in them, and one as a transcript.

import { h, viewLink } from "./dom.js";
import { count, day, empty, label, notice, time, under } from "./format.js";

const MOST = 100;
const MOST_TURNS = 1000; // A browser needs a second to draw these.
const SPEAKERS = { user: "You", agent: "Agent" };

/** Shows one session if the address names it, else those that match, or the latest. */
export async function sessionsView(view) {
  return view.argument ? transcript(view) : list(view);
}

async function list({ parameters, source, signal, announce, go }) {
  const query = (parameters.q ?? "").trim();
  const given = { limit: MOST, all_projects: Boolean(parameters.all), ...(query && { query }) };
  const answer = await source.sessions(given, signal);
  const { sessions, total } = answer;
  const about = query ? count(sessions.length, "result") : count(total, "session");
  announce(about);
  const none = query
    ? empty("No session matches", "Other words may help: search also matches by meaning.")
    : empty("No sessions yet", "`mind sessions index` reads what agents’ clients keep on this machine.");
  const more = !query && total > sessions.length;
  return [
    h("h1", {}, query ? `Sessions about “${query}”` : "Sessions", h("small", {}, about)),
    searchForm(parameters, go),
    notice(answer.notice),
    sessions.length ? h("ul", { class: "rows" }, sessions.map(row)) : none,
    more && notice(`The latest ${MOST} are shown: search for an earlier one.`),
  ];
}

function searchForm(parameters, go) {
  const query = h("input", {
    type: "text",
    value: parameters.q ?? "",
    placeholder: "What was said",
    "aria-label": "Search sessions",
    "data-key": "sessions-query",
    autocomplete: "off",
    spellcheck: "false",
  });
  const all = h("input", { type: "checkbox", checked: Boolean(parameters.all), "data-key": "sessions-all" });
  const send = () => go(viewLink("sessions", { q: query.value.trim(), all: all.checked && "1" }));
  all.addEventListener("change", send);
  const submit = (event) => {
    event.preventDefault();
    send();
  };
  return h(
    "form",
    { class: "filters", "aria-label": "Search sessions", submit },
    h("label", { class: parameters.q ? "filter set" : "filter" }, query),
    h("button", { type: "submit" }, "Search"),
    h("label", {}, all, " All projects"),
  );
}

function row(session) {
  const [place] = session.best ?? [];
  const link = viewLink(`sessions/${encodeURIComponent(session.id)}`, { turn: place?.turn });
  return h(
    "li",
    {},
    h(
      "a",
      { class: "row", href: link, "data-key": session.id },
      h(
        "span",
        { class: "row-head" },
        h("span", { class: "row-title", dir: "auto" }, session.title),
        session.weak && label("weak match"),
      ),
      !place?.text.startsWith(session.title) && under(place?.text),
      place?.answer && under(`Agent: ${place.answer}`),
      facts(session),
    ),
  );
}

function facts(session) {
  return h(
    "span",
    { class: "row-about" },
    h("span", {}, session.client),
    time(session.date),
    h("span", {}, count(session.prompts, "prompt")),
    session.branch && h("span", {}, session.branch),
    session.project && h("span", {}, session.project),
    h("code", {}, session.id),
  );
}

async function transcript({ argument, parameters, source, signal, announce }) {
  const around = Number(parameters.turn) || undefined;
  const page = await source.session({ session: argument, ...(around && { around }) }, signal);
  const { session, total } = page;
  const start = around ? 0 : Number(parameters.after) || 0;
  const end = start + MOST_TURNS;
  const turns = page.turns.slice(start, end);
  announce(session.title);
  const part = (after) => viewLink(`sessions/${encodeURIComponent(session.id)}`, { after });
  const isPart = turns.length < total;
  return [
    h("h1", { dir: "auto" }, session.title),
    facts(session),
    notice("What was said in an earlier session: quotations, not approved, and not instructions."),
    page.copied && notice(`${count(page.copied, "turn")} before these are in ${page.parent ?? "another session"}, too.`),
    isPart && h("p", { class: "muted" }, `${turns.length.toLocaleString("en")} of ${count(total, "turn")}. `, around && h("a", { href: part() }, "Show all")),
    h("ol", { class: "turns" }, turns.map((turn) => said(turn, turn.n === around))),
    end < page.turns.length && h("p", {}, h("a", { href: part(end) }, "Later turns")),
  ];
}

/** Returns a turn; a call of a tool is one line, with its error. */
function said(turn, isAsked) {
  const key = { "data-key": `turn-${turn.n}`, "aria-current": isAsked && "true" };
  const number = h("span", { class: "muted" }, `#${turn.n}`);
  if (turn.role === "tool") {
    return h(
      "li",
      { class: "turn tool", ...key },
      h("p", {}, number, " ", h("code", { dir: "auto" }, turn.content)),
      turn.error && h("p", { class: "notice bad" }, turn.error),
    );
  }
  return h(
    "li",
    { class: `turn ${turn.role}`, ...key },
    h("p", { class: "row-about" }, number, h("strong", {}, SPEAKERS[turn.role] ?? turn.role), turn.at && h("span", {}, day(turn.at))),
    h("div", { class: "words", dir: "auto" }, turn.content),
  );
}
