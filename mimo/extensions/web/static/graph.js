// The graph of linked memories, drawn on a canvas: zoom, move, filter by type, focus on one.

import { button, graphLink, h, memoryLink, viewLink, visible } from "./dom.js";
import { count, empty, labels, time, typeMark } from "./format.js";
import { place } from "./layout.js";

const FONT = "12px system-ui, sans-serif";
const LENGTHS = [34, 24, 16, 10, 6]; // Of labels; the shorter ones are for small graphs.
const SMALL = 60; // In a graph with fewer nodes, each has its name.
const ROUNDS = 12; // In which names are sought a place, those without one first in the next.
const NAME = [70, 24]; // The room for a short name, with a gap.
const HEAD = 20; // The length of an arrow, with the radius of its node.
const [EDGE, SIDE] = [36, 56];
const BAR = [160, 60]; // The buttons in the corner.
const DEPTHS = [1, 2, 3, 5];

/** Shows all linked memories, or those around the one in the address. */
export async function graphView({ argument, parameters, source, overview, signal, announce, go }) {
  const depth = Number(parameters.depth) || 2;
  const graph = await source.graph(argument, depth, signal);
  const total = count(graph.nodes.length, "linked memory", "linked memories");
  announce(total);
  const title = h("h1", {}, "Graph", h("small", {}, `${total}, ${count(graph.links.length, "link")}`));
  const focus = argument ? focusBar(argument, depth, graph, go) : null;
  if (!graph.links.length) {
    const advice = "Links are made with `mind link`, by `links:` in a header, or by [[ID]] in a text.";
    return [title, focus, empty("No memory is linked with another", advice)];
  }
  const which = argument ? "The nearest" : "The newest";
  const cut = graph.cut
    ? h(
        "p",
        { class: "notice" },
        `${which} ${graph.nodes.length.toLocaleString("en")} linked memories are drawn, of ` +
          `${overview.total.toLocaleString("en")} memories. Open a memory and show it in the graph to ` +
          "see what is around it.",
      )
    : null;
  const drawing = new Drawing(graph, { signal, announce, go });
  return [title, focus, cut, drawing.element];
}

function focusBar(argument, depth, graph, go) {
  const start = graph.nodes.find((node) => graph.start.includes(node.id));
  const change = (event) => go(graphLink(argument, { depth: event.target.value }));
  return h(
    "p",
    { class: "focus-bar" },
    "Around ",
    h("a", { href: memoryLink(argument), dir: "auto" }, start?.title ?? argument),
    h(
      "label",
      {},
      " up to ",
      h(
        "select",
        { change, "data-key": "depth" },
        DEPTHS.map((number) =>
          h("option", { value: String(number), selected: number === depth }, count(number, "link")),
        ),
      ),
    ),
    h("a", { href: viewLink("graph") }, "Show all"),
  );
}

/** The canvas with its controls. */
class Drawing {
  #scale = 1;
  #left = 0;
  #top = 0;
  #chosen = null;
  #pointed = null;
  #hidden = new Set();
  #awaited = false;
  #pointers = new Map();
  #moved = false;
  #isQuiet = false;

  constructor(graph, { signal, announce, go }) {
    Object.assign(this, { graph, signal, announce, go });
    const numbers = new Map(graph.nodes.map((node, number) => [node.id, number]));
    this.nodes = graph.nodes.map((node) => ({ ...node, x: 0, y: 0, near: new Set() }));
    this.links = graph.links
      .map((link) => ({ ...link, a: numbers.get(link.source), b: numbers.get(link.target) }))
      .filter((link) => link.a !== undefined && link.b !== undefined && link.a !== link.b);
    for (const { a, b } of this.links) {
      this.nodes[a].near.add(b);
      this.nodes[b].near.add(a);
    }
    for (const node of this.nodes) node.radius = Math.min(11, 4 + 1.3 * Math.sqrt(node.near.size));
    this.order = this.nodes.map((_, number) => number);
    this.order.sort((a, b) => this.nodes[b].near.size - this.nodes[a].near.size || a - b);
    this.canvas = h("canvas", {
      tabindex: "0",
      role: "application",
      "aria-label":
        "Graph of memories. Arrow keys choose a neighbour, Enter opens it, plus and minus zoom, " +
        "0 shows everything.",
      "data-key": "canvas",
    });
    this.panel = h("div", { class: "graph-panel", hidden: true });
    this.element = h(
      "div",
      { class: "graph" },
      this.#typeBar(),
      h("div", { class: "graph-stage" }, this.canvas, this.#zoomBar(), this.panel),
      this.#asList(),
    );
    this.#listen();
    this.#place(numbers.get(graph.start[0]));
  }

  #typeBar() {
    const numbers = new Map();
    for (const node of this.nodes) numbers.set(node.type, (numbers.get(node.type) ?? 0) + 1);
    const types = [...numbers].sort((a, b) => b[1] - a[1]).map(([type, number]) => {
      const change = (event) => {
        if (event.target.checked) this.#hidden.delete(type);
        else this.#hidden.add(type);
        this.#draw();
      };
      const box = h("input", { type: "checkbox", checked: true, change });
      return h("label", {}, box, typeMark(type), h("span", { class: "muted" }, String(number)));
    });
    return h("div", { class: "graph-types", role: "group", "aria-label": "Types" }, types);
  }

  #zoomBar() {
    const named = (text, name, click) => button(text, click, { "aria-label": name, title: name });
    return h(
      "div",
      { class: "graph-zoom", role: "group", "aria-label": "Zoom" },
      named("+", "Zoom in", () => this.#zoom(1.4)),
      named("−", "Zoom out", () => this.#zoom(1 / 1.4)),
      named("Fit", "Show everything", () => this.#fit()),
    );
  }

  /** Returns the same as text, for readers of the page who don't see the drawing. */
  #asList() {
    const items = this.order.slice(0, 200).map((number) => {
      const node = this.nodes[number];
      return h(
        "li",
        {},
        h("a", { href: memoryLink(node.id), dir: "auto" }, node.title),
        h("span", { class: "muted" }, ` ${node.type}, ${count(node.near.size, "link")}`),
      );
    });
    return h(
      "details",
      { class: "graph-list" },
      h("summary", {}, "As a list, the most linked first"),
      h("ul", {}, items),
    );
  }

  /** Computes the places in slices, then shows everything, or the start. */
  #place(start) {
    const steps = place(this.nodes, this.links.map(({ a, b }) => [a, b]));
    const advance = () => {
      if (this.signal.aborted) return;
      if (!steps.next().done) {
        setTimeout(advance);
        return;
      }
      this.isPlaced = true;
      if (this.nodes.length < SMALL) this.#spread();
      this.element.dataset.placed = "";
      this.#fit();
      if (start !== undefined) this.#choose(start, { quietly: true });
    };
    setTimeout(advance);
  }

  /** Fills the canvas, and moves nodes apart whose names would cover each other. */
  #spread() {
    const { nodes } = this;
    const sizes = this.#inner();
    ["x", "y"].forEach((name, axis) => {
      const places = nodes.map((node) => node[name]);
      const least = Math.min(...places);
      const factor = Math.min(sizes[axis] / (Math.max(...places) - least || 1), 2.2);
      for (const node of nodes) node[name] = (node[name] - least) * factor;
    });
    for (let step = 0; step < 60; step += 1) {
      nodes.forEach((a, number) => {
        for (const b of nodes.slice(number + 1)) {
          const [dx, dy] = [b.x - a.x, b.y - a.y];
          const [wide, high] = [NAME[0] - Math.abs(dx), NAME[1] - Math.abs(dy)];
          if (wide <= 0 || high <= 0) continue;
          const [x, y] = [(Math.sign(dx) || 1) * Math.min(wide, high) * 0.2, (Math.sign(dy) || 1) * high * 0.3];
          [a.x, a.y, b.x, b.y] = [a.x - x, a.y - y, b.x + x, b.y + y];
        }
      });
      for (const node of nodes) {
        node.x = Math.min(Math.max(node.x, 0), sizes[0]);
        node.y = Math.min(Math.max(node.y, 0), sizes[1]);
      }
    }
  }

  #listen() {
    const { canvas, signal } = this;
    const on = (name, handle, options = {}) =>
      canvas.addEventListener(name, handle, { signal, ...options });
    on("wheel", (event) => this.#wheel(event), { passive: false });
    on("pointerdown", (event) => this.#press(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#release(event));
    on("pointerleave", () => this.#point(null));
    on("pointercancel", (event) => this.#pointers.delete(event.pointerId));
    on("dblclick", (event) => this.#open(this.#at(event)));
    on("keydown", (event) => this.#key(event));
    const sizes = new ResizeObserver(() => this.#draw());
    sizes.observe(canvas);
    signal.addEventListener("abort", () => sizes.disconnect());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw(), {
      signal,
    });
  }

  #wheel(event) {
    event.preventDefault();
    this.#zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
  }

  #press(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, event);
    this.#moved = false;
  }

  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      this.#point(this.#at(event));
      return;
    }
    const [x, y] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (Math.abs(x) + Math.abs(y) > 3) this.#moved = true;
    if (this.#pointers.size === 2) {
      const [first, second] = [...this.#pointers.values()];
      const other = first.pointerId === event.pointerId ? second : first;
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      this.#zoom(apart(event) / (apart(before) || 1), event.offsetX, event.offsetY);
    } else {
      this.#left += x;
      this.#top += y;
      this.#draw();
    }
    this.#pointers.set(event.pointerId, event);
  }

  /** Lights up the node under the pointer, or none. */
  #point(pointed) {
    if (pointed === this.#pointed) return;
    this.#pointed = pointed;
    this.canvas.classList.toggle("pointing", pointed !== null);
    this.#draw();
  }

  #release(event) {
    this.#pointers.delete(event.pointerId);
    if (!this.#moved) this.#choose(this.#at(event));
  }

  #key(event) {
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (directions[event.key]) this.#step(...directions[event.key]);
    else if (event.key === "+" || event.key === "=") this.#zoom(1.4);
    else if (event.key === "-") this.#zoom(1 / 1.4);
    else if (event.key === "0") this.#fit();
    else if (event.key === "Enter") this.#open(this.#chosen);
    else if (event.key === "Escape" && this.#chosen !== null) this.#choose(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Chooses the nearest node in a direction. */
  #step(x, y) {
    if (this.#chosen === null) {
      this.#choose(this.order.find((number) => this.#isShown(number)) ?? null);
      return;
    }
    const from = this.nodes[this.#chosen];
    let [best, least] = [null, Infinity];
    this.nodes.forEach((node, number) => {
      const [dx, dy] = [node.x - from.x, node.y - from.y];
      const ahead = dx * x + dy * y;
      if (number === this.#chosen || ahead <= 0 || !this.#isShown(number)) return;
      const cost = ahead + 2.5 * Math.abs(dx * y + dy * x);
      if (cost < least) [best, least] = [number, cost];
    });
    if (best !== null) this.#choose(best);
  }

  #isShown(number) {
    return !this.#hidden.has(this.nodes[number].type);
  }

  /** Returns the number of the node under a pointer, or null. */
  #at(event) {
    const x = (event.offsetX - this.#left) / this.#scale;
    const y = (event.offsetY - this.#top) / this.#scale;
    let [best, least] = [null, Infinity];
    this.nodes.forEach((node, number) => {
      const apart = Math.hypot(node.x - x, node.y - y) - node.radius;
      if (apart < 8 / this.#scale && apart < least && this.#isShown(number)) {
        [best, least] = [number, apart];
      }
    });
    return best;
  }

  #open(number) {
    if (number !== null) this.go(memoryLink(this.nodes[number].id));
  }

  #choose(number, { quietly = false } = {}) {
    this.#chosen = number;
    this.#isQuiet = quietly;
    this.panel.hidden = number === null;
    if (number !== null) {
      const node = this.nodes[number];
      this.panel.replaceChildren(
        h("a", { class: "row-title", href: memoryLink(node.id), dir: "auto" }, node.title),
        h("span", { class: "row-about" }, typeMark(node.type), time(node.created_at), labels(node)),
        h(
          "span",
          { class: "row-about" },
          h("span", {}, count(node.near.size, "link")),
          h("a", { href: graphLink(node.id) }, "Focus"),
        ),
      );
      if (!quietly) this.announce(`${node.title}, ${count(node.near.size, "link")}`);
      this.#reveal(node);
    }
    this.#draw();
  }

  /** Moves the drawing if a node is outside of the canvas. */
  #reveal(node) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const x = node.x * this.#scale + this.#left;
    const y = node.y * this.#scale + this.#top;
    if (x < 20 || y < 20 || x > width - 20 || y > height - 20) {
      this.#left += width / 2 - x;
      this.#top += height / 2 - y;
    }
  }

  #zoom(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    const scale = Math.min(4, Math.max(0.03, this.#scale * factor));
    this.#left = x - ((x - this.#left) * scale) / this.#scale;
    this.#top = y - ((y - this.#top) * scale) / this.#scale;
    this.#scale = scale;
    this.#draw();
  }

  #fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width) return;
    const xs = this.nodes.map((node) => node.x);
    const ys = this.nodes.map((node) => node.y);
    const [left, top] = [Math.min(...xs), Math.min(...ys)];
    const [wide, high] = [Math.max(...xs) - left || 1, Math.max(...ys) - top || 1];
    const inner = this.#inner();
    this.#scale = Math.min(inner[0] / wide, inner[1] / high, 1.4);
    this.#left = (width - wide * this.#scale) / 2 - left * this.#scale;
    this.#top = (height + BAR[1] - EDGE - high * this.#scale) / 2 - top * this.#scale;
    this.#draw();
  }

  /** Returns the width and the height of the canvas without its edges. */
  #inner() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    return [Math.max(width - 2 * SIDE, 100), Math.max(height - EDGE - BAR[1], 100)];
  }

  #draw() {
    if (this.#awaited || !this.isPlaced) return;
    this.#awaited = true;
    requestAnimationFrame(() => {
      this.#awaited = false;
      if (!this.signal.aborted) this.#paint();
    });
  }

  #paint() {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(canvas);
    this.colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const centre = this.#pointed ?? (this.#isQuiet ? null : this.#chosen);
    const near = centre === null ? null : new Set([centre, ...this.nodes[centre].near]);
    this.#paintLinks(pen, centre);
    this.#paintNodes(pen, near);
    this.#paintLabels(pen, near, width, height);
  }

  #screen(node) {
    return [node.x * this.#scale + this.#left, node.y * this.#scale + this.#top];
  }

  #radius(node) {
    return Math.max(2, node.radius * Math.min(1, this.#scale ** 0.6));
  }

  #paintLinks(pen, centre) {
    for (const { a, b, type } of this.links) {
      if (!this.#isShown(a) || !this.#isShown(b)) continue;
      const isNear = centre === a || centre === b;
      const [x1, y1] = this.#screen(this.nodes[a]);
      const [x2, y2] = this.#screen(this.nodes[b]);
      pen.globalAlpha = centre === null || isNear ? 1 : 0.25;
      pen.strokeStyle = this.colour(isNear ? "accent" : "graph-line");
      pen.lineWidth = isNear ? 1.6 : 1;
      pen.setLineDash(type === "supersedes" ? [4, 3] : []);
      pen.beginPath();
      pen.moveTo(x1, y1);
      pen.lineTo(x2, y2);
      pen.stroke();
      if (isNear || this.#scale > 0.75) this.#arrow(pen, x1, y1, x2, y2, this.#radius(this.nodes[b]));
    }
    pen.setLineDash([]);
  }

  #arrow(pen, x1, y1, x2, y2, radius) {
    const angle = Math.atan2(y2 - y1, x2 - x1);
    const [x, y] = [x2 - Math.cos(angle) * (radius + 1), y2 - Math.sin(angle) * (radius + 1)];
    pen.setLineDash([]);
    pen.beginPath();
    for (const turn of [-0.42, 0.42]) {
      pen.moveTo(x, y);
      pen.lineTo(x - 7 * Math.cos(angle + turn), y - 7 * Math.sin(angle + turn));
    }
    pen.stroke();
  }

  #paintNodes(pen, near) {
    this.nodes.forEach((node, number) => {
      if (!this.#isShown(number)) return;
      const [x, y] = this.#screen(node);
      const colour = this.colour(`type-${node.type}`) || this.colour("muted");
      pen.globalAlpha = !near || near.has(number) ? 1 : 0.3;
      pen.beginPath();
      pen.arc(x, y, this.#radius(node), 0, 2 * Math.PI);
      pen.fillStyle = node.superseded_by ? this.colour("ground") : colour;
      pen.strokeStyle = node.outcome === "FAILED" ? this.colour("bad") : colour;
      pen.lineWidth = node.outcome === "FAILED" ? 2.5 : 1.5;
      pen.fill();
      pen.stroke();
      if (number === this.#chosen) {
        pen.beginPath();
        pen.arc(x, y, this.#radius(node) + 5, 0, 2 * Math.PI);
        pen.strokeStyle = this.colour("accent");
        pen.lineWidth = 2.5;
        pen.stroke();
      }
    });
    pen.globalAlpha = 1;
  }

  /** Writes titles, each only where it covers no other, no node and no link. */
  #paintLabels(pen, near, width, height) {
    pen.font = FONT;
    pen.textBaseline = "middle";
    const labels = this.#labels(pen, near, width, height);
    for (const { dot: { number }, text, box } of labels) {
      const [x, y] = [box[0] + 3, (box[1] + box[3]) / 2];
      pen.globalAlpha = !near || near.has(number) ? 1 : 0.35;
      pen.lineWidth = 3;
      pen.strokeStyle = this.colour("ground");
      pen.strokeText(text, x, y);
      pen.fillStyle = this.colour(this.nodes[number].superseded_by ? "muted" : "ink");
      pen.fillText(text, x, y);
    }
    pen.globalAlpha = 1;
    this.canvas.dataset.labels = JSON.stringify(labels.map(({ box }) => box.map(Math.round)));
  }

  /** Returns titles with their boxes, the important ones first; in a small graph, that of each node. */
  #labels(pen, near, width, height) {
    const dots = this.order.filter((number) => this.#isShown(number)).map((number) => {
      const [x, y] = this.#screen(this.nodes[number]);
      const radius = this.#radius(this.nodes[number]);
      return { number, x, y, radius, box: [x - radius, y - radius, x + radius, y + radius] };
    });
    const isSmall = dots.length < SMALL;
    const lines = this.links
      .filter(({ a, b }) => this.#isShown(a) && this.#isShown(b))
      .map(({ a, b }) => [...this.#screen(this.nodes[a]), ...this.#screen(this.nodes[b])]);
    const heads = lines.map(([x1, y1, x2, y2]) => {
      const part = Math.min(1, HEAD / (Math.hypot(x2 - x1, y2 - y1) || 1));
      return [x2 + (x1 - x2) * part, y2 + (y1 - y2) * part, x2, y2];
    });
    const seen = dots.filter(({ x, y }) => x >= 0 && y >= 0 && x <= width && y <= height);
    let order = [...seen.filter((dot) => near?.has(dot.number)), ...seen.filter((dot) => !near?.has(dot.number))];
    const loose = new Set(); // Nodes whose name may lie on a line, but on no arrow.
    const isFree = (box, own) =>
      box[0] >= 0 &&
      box[1] >= 0 &&
      box[2] <= width &&
      box[3] <= height &&
      !overlap([width - BAR[0], 0, width, BAR[1]], box) &&
      // In a large graph, what the user looks at covers what is behind it.
      ((near?.has(own.number) && !isSmall) ||
        (!dots.some((dot) => dot !== own && overlap(dot.box, box)) &&
          (loose.has(own) || !lines.some((line) => crosses(line, box))) &&
          !heads.some((line) => crosses(line, box, 3))));
    const rooms = new Map();
    const room = (dot, length) => {
      const key = `${dot.number} ${length} ${loose.has(dot)}`;
      if (!rooms.has(key)) {
        const text = shortened(visible(this.nodes[dot.number].title), length);
        const boxes = around(dot, pen.measureText(text).width, width, isSmall);
        rooms.set(key, { text, boxes: boxes.filter((box) => isFree(box, dot)) });
      }
      return rooms.get(key);
    };
    const label = (dot, length, labels) => {
      const { text, boxes } = room(dot, length);
      const box = boxes.find((some) => !labels.some((other) => other.dot !== dot && overlap(other.box, some)));
      return box && { dot, text, box };
    };
    const shortest = isSmall ? LENGTHS.at(-1) : Math.min(LENGTHS[0], Math.max(14, Math.floor(width / 16)));
    let best = [];
    for (let round = 0; round < (isSmall ? ROUNDS : 1) && (!round || best.length < order.length); round += 1) {
      const labels = [];
      const missing = [];
      for (const dot of order) {
        const found = label(dot, shortest, labels);
        if (found) labels.push(found);
        else missing.push(dot);
      }
      if (labels.length > best.length) best = labels;
      if (round >= ROUNDS / 2) missing.forEach((dot) => loose.add(dot));
      order = [...missing, ...order.filter((dot) => !missing.includes(dot))];
    }
    // Now that each has a place, names grow where there is room.
    for (const [place, { dot }] of isSmall ? best.entries() : []) {
      const length = LENGTHS.find((some) => label(dot, some, best));
      if (length) best[place] = label(dot, length, best);
    }
    return best;
  }
}

/** Returns the boxes in which a node's title may be: beside it, above and below it, and aslant. */
function around({ x, y, radius }, wide, width, isSmall) {
  const [w, gap] = [wide + 6, radius + 2];
  const centre = Math.min(Math.max(x - w / 2, 0), width - w);
  const corners = [[x + gap, y - 8], [x - gap - w, y - 8], [centre, y + gap], [centre, y - gap - 16]];
  for (const far of isSmall ? [0, 5, 10, 16, 24] : []) {
    const sides = [y + gap + far, y - gap - 16 - far];
    for (let part = 0; part <= 8; part += 1) corners.push(...sides.map((top) => [x - (w * part) / 8, top]));
    for (const top of [y - 14, y - 2]) corners.push([x + gap + far, top], [x - gap - w - far, top]);
  }
  return corners.map(([left, top]) => [left, top, left + w, top + 16]);
}

/** Returns whether a line leads through a box, or nearer. */
function crosses([x1, y1, x2, y2], [left, top, right, bottom], near = 0) {
  const [x, y, wide, high] = [(left + right) / 2, (top + bottom) / 2, (right - left) / 2 + near, (bottom - top) / 2 + near];
  if (Math.abs(x1 + x2 - 2 * x) >= Math.abs(x2 - x1) + 2 * wide) return false;
  if (Math.abs(y1 + y2 - 2 * y) >= Math.abs(y2 - y1) + 2 * high) return false;
  const [dx, dy] = [x2 - x1, y2 - y1];
  return Math.abs(dx * (y - y1) - dy * (x - x1)) < wide * Math.abs(dy) + high * Math.abs(dx); // No side parts them.
}

function overlap(a, b) {
  return a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];
}

function shortened(text, longest) {
  return text.length > longest ? `${text.slice(0, longest - 1).trimEnd()}…` : text;
}
