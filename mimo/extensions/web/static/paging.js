// Lists that are read in pages: each click on "Show more" adds one.

import { button, h, replaceContent } from "./dom.js";
import { sentence } from "./errors.js";

const MOST_AT_ONCE = 1000;

/**
 * Returns an element with the first pages of a list, and the number of all its items.
 *
 * `read` takes an offset and a limit, and resolves to an answer that has items in a field, and their
 * total; `draw` returns the nodes of items. If the view is read again, `state` keeps the number of items, so that the list has the same length.
 */
export async function pagedList({ size, field, read, draw, state, signal, message }) {
  const body = h("div", {});
  let { items, total } = await readFirst(read, field, Math.max(size, state.length ?? 0));
  let isReading = false;

  const show = () => {
    const left = total - items.length;
    const text = isReading ? "Reading…" : `Show more (${left.toLocaleString("en")} left)`;
    const more = left > 0 && button(text, grow, { class: "more", "data-key": "more" });
    replaceContent(body, [...draw(items), more]);
  };

  const grow = async () => {
    if (isReading) return;
    isReading = true;
    const [shown, rows] = [items.length, body.querySelectorAll(".row").length];
    state.length = shown + size; // Already now: the view may be read again before the answer comes.
    show();
    try {
      const next = await read(shown, size);
      // Another total means that items have come or gone, so that the offset has another meaning.
      if (next.total === total) items = [...items, ...next[field]];
      else ({ items, total } = await readFirst(read, field, shown + size));
    } catch (error) {
      if (signal.aborted) return; // The view was read again, with the new length.
      state.length = shown;
      message(sentence(error));
    }
    isReading = false;
    show();
    if (items.length > shown) body.querySelectorAll(".row")[rows]?.focus();
  };

  show();
  return { body, total };
}

/** Returns the first items of a list, and their total. */
async function readFirst(read, field, length) {
  let [items, total] = [[], 1];
  while (items.length < Math.min(length, total)) {
    const page = await read(items.length, Math.min(length - items.length, MOST_AT_ONCE));
    total = page[field].length ? page.total : items.length;
    items = [...items, ...page[field]];
  }
  return { items, total };
}
