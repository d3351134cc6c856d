// Elements of the page. All text of memories passes through here: it becomes text nodes, never markup.

const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

const OUTWARD = /^(?:https?:\/\/|mailto:)/i;

/** The beginning of the addresses of views: in a report, which is one file, they come after `#`. */
export const ROOT = globalThis.document?.querySelector(".brand a")?.getAttribute("href");

const TREE_TAGS = new Set(
  ("p h2 h3 h4 h5 h6 em strong s code pre blockquote ul ol li hr br a span " +
    "table thead tbody tr th td").split(" "),
);

/** Returns text without control characters and those that change the direction of other text. */
export function visible(text) {
  return String(text).replace(HIDDEN, "");
}

/** Returns an element; functions listen to events, `false`, null and undefined are left out. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "href" && !value.startsWith(ROOT) && !OUTWARD.test(value)) continue;
    else element.setAttribute(name, value === true ? "" : visible(value));
  }
  element.append(...children.flat(Infinity).filter(isShown).map(asNode));
  return element;
}

/** Returns a button. */
export function button(text, click, attributes = {}) {
  return h("button", { type: "button", click, ...attributes }, text);
}

function isShown(child) {
  return child !== false && child !== null && child !== undefined && child !== "";
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(visible(child));
}

/**
 * Returns the elements of a Markdown tree, as `markdown.py` makes it. `titles` has the titles of
 * linked memories by id.
 */
export function prose(nodes, titles = new Map()) {
  return nodes.map((node) => {
    if (typeof node === "string") return document.createTextNode(visible(node));
    const [tag, attributes, children] = node;
    const element = document.createElement(TREE_TAGS.has(tag) ? tag : "span");
    if (attributes.memory) element.setAttribute("href", memoryLink(attributes.memory));
    if (OUTWARD.test(attributes.href ?? "")) {
      element.setAttribute("href", attributes.href);
      element.setAttribute("title", visible(attributes.href));
      element.setAttribute("rel", "noopener noreferrer");
      element.setAttribute("target", "_blank");
    }
    if (attributes.title) element.setAttribute("title", visible(attributes.title));
    if (attributes.align) element.dataset.align = attributes.align;
    if (attributes.start) element.setAttribute("start", attributes.start);
    if (tag === "pre" || tag === "table") element.tabIndex = 0;
    const title = titles.get(attributes.memory);
    element.append(...(title ? [visible(title)] : prose(children, titles)));
    return element;
  });
}

const FOCUSABLE = "a[href], button, input, select, summary, [tabindex]";

/**
 * Replaces the content of an element by a newer state of it: opened details stay open, what the user sees
 * does not move, and the focus stays, or moves to what is nearest if its place is missing.
 */
export function replaceContent(element, nodes) {
  const open = new Set([...element.querySelectorAll("details[open]")].map(nameOf));
  const focused = element.contains(document.activeElement) ? document.activeElement : element;
  const [name, holder] = [nameOf(focused), focused.closest("[data-key]")];
  const before = holdersIn(element);
  const seen = window.scrollY ? before.find((part) => part.getBoundingClientRect().bottom > 0) : null;
  const top = seen?.getBoundingClientRect().top;
  element.replaceChildren(...nodes.filter(Boolean));
  for (const details of element.querySelectorAll("details")) details.open ||= open.has(nameOf(details));
  const holders = holdersIn(element);
  const same = (part) => part && holders.find((other) => other.dataset.key === part.dataset.key);
  if (same(seen)) window.scrollBy(0, same(seen).getBoundingClientRect().top - top);
  if (focused === element) return;
  const near = same(holder) ?? holders[Math.min(before.indexOf(holder), holders.length - 1)];
  const again = [...element.querySelectorAll(FOCUSABLE)].find((other) => nameOf(other) === name);
  const inside = near?.matches(FOCUSABLE) ? near : near?.querySelector(FOCUSABLE);
  (again ?? inside ?? element.closest("main"))?.focus({ preventScroll: true });
}

function holdersIn(element) {
  return [...element.querySelectorAll("[data-key]")];
}

/** Returns what identifies a part of the page when it was drawn again. */
function nameOf(part) {
  const key = part.closest("[data-key]")?.dataset.key;
  const text = part.getAttribute("href") ?? part.querySelector("summary")?.textContent ?? part.textContent;
  return JSON.stringify([part.tagName, key, part.dataset.key ? "" : text]);
}

/** Returns the address of a memory's page. */
export function memoryLink(id) {
  return viewLink(`memory/${encodeURIComponent(id)}`);
}

/** Returns the address of the graph around a memory. */
export function graphLink(id, parameters) {
  return viewLink(`graph/${encodeURIComponent(id)}`, parameters);
}

/** Returns the address of a view with its parameters; empty ones are left out. */
export function viewLink(name, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value);
  const query = new URLSearchParams(given).toString();
  return `${ROOT}${name}${query ? `?${query}` : ""}`;
}
