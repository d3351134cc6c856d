// Places for the nodes of a graph: each connected group by forces, and the groups side by side.

const LENGTH = 60;
const MARGIN = 40;
const SLICE_MS = 12;

/**
 * Places nodes, whose `x` and `y` it sets; `links` has pairs of their numbers. A generator: it
 * yields when a slice of time is used up, so that the page can answer in between. The same graph
 * always gets the same places.
 */
export function* place(nodes, links) {
  const near = nodes.map(() => []);
  for (const [source, target] of links) {
    near[source].push(target);
    near[target].push(source);
  }
  const groups = connected(near).map((members) => ({ members }));
  let started = performance.now();
  for (const group of groups) {
    for (const _ of settle(group, near)) {
      if (performance.now() - started > SLICE_MS) {
        yield;
        started = performance.now();
      }
    }
  }
  pack(groups);
  for (const { members, xs, ys } of groups) {
    members.forEach((number, index) => {
      nodes[number].x = xs[index];
      nodes[number].y = ys[index];
    });
  }
}

/** Returns the connected groups, each from its node with the most links outwards; largest first. */
function connected(near) {
  const order = near.map((_, number) => number).sort((a, b) => near[b].length - near[a].length);
  const seen = new Set();
  const groups = [];
  for (const root of order) {
    if (seen.has(root)) continue;
    seen.add(root);
    const members = [root];
    for (const number of members) {
      for (const other of near[number]) {
        if (!seen.has(other)) {
          seen.add(other);
          members.push(other);
        }
      }
    }
    groups.push(members);
  }
  return groups.sort((a, b) => b.length - a.length);
}

/** Moves the nodes of a group until they rest: linked ones attract, all repel each other. */
function* settle(group, near) {
  const { members } = group;
  const size = members.length;
  const xs = (group.xs = new Float64Array(size));
  const ys = (group.ys = new Float64Array(size));
  const place = new Map(members.map((number, index) => [number, index]));
  const pairs = members.flatMap((number, index) =>
    near[number].map((other) => place.get(other)).filter((other) => other > index).map((other) => [index, other]),
  );
  for (let index = 0; index < size; index += 1) {
    // A sunflower's spiral: nodes near the root begin near the centre.
    const angle = index * 2.399963;
    const radius = LENGTH * 0.7 * Math.sqrt(index);
    xs[index] = radius * Math.cos(angle);
    ys[index] = radius * Math.sin(angle);
  }
  const steps = size < 3 ? 0 : size < 60 ? 260 : size < 300 ? 200 : 150;
  const dx = new Float64Array(size);
  const dy = new Float64Array(size);
  for (let step = 0; step < steps; step += 1) {
    const heat = LENGTH * 0.9 * (1 - step / steps) ** 1.5 + 0.3;
    repel(xs, ys, dx, dy);
    attract(pairs, xs, ys, dx, dy);
    for (let index = 0; index < size; index += 1) {
      const gravity = size > 200 ? 0.02 : 0.006;
      dx[index] -= xs[index] * gravity;
      dy[index] -= ys[index] * gravity;
      const length = Math.hypot(dx[index], dy[index]) || 1;
      const move = Math.min(length, heat) / length;
      xs[index] += dx[index] * move;
      ys[index] += dy[index] * move;
    }
    yield;
  }
}

function repel(xs, ys, dx, dy) {
  const size = xs.length;
  const strength = LENGTH * LENGTH * 0.9;
  dx.fill(0);
  dy.fill(0);
  for (let a = 0; a < size; a += 1) {
    for (let b = a + 1; b < size; b += 1) {
      const x = xs[a] - xs[b];
      const y = ys[a] - ys[b];
      const square = x * x + y * y || 0.01;
      const force = strength / square;
      dx[a] += x * force;
      dy[a] += y * force;
      dx[b] -= x * force;
      dy[b] -= y * force;
    }
  }
}

function attract(pairs, xs, ys, dx, dy) {
  for (const [a, b] of pairs) {
    const x = xs[a] - xs[b];
    const y = ys[a] - ys[b];
    const force = Math.hypot(x, y) / LENGTH;
    dx[a] -= x * force;
    dy[a] -= y * force;
    dx[b] += x * force;
    dy[b] += y * force;
  }
}

/** Moves groups into rows, the highest first; low ones stand below each other in a row. */
function pack(groups) {
  for (const group of groups) {
    const left = Math.min(...group.xs);
    const top = Math.min(...group.ys);
    group.width = Math.max(...group.xs) - left + 2 * MARGIN;
    group.height = Math.max(...group.ys) - top + 2 * MARGIN;
    shift(group, MARGIN - left, MARGIN - top);
  }
  const area = groups.reduce((sum, group) => sum + group.width * group.height, 0);
  const widest = Math.max(Math.sqrt(area * 2.2), ...groups.map((group) => group.width));
  groups.sort((a, b) => b.height - a.height || b.width - a.width);
  let row = { x: 0, y: 0, height: 0 };
  let column = { x: 0, width: 0, used: 0 };
  for (const group of groups) {
    if (column.used + group.height > row.height || group.width > column.width) {
      row.x += column.width;
      if (row.x > 0 && row.x + group.width > widest) row = { x: 0, y: row.y + row.height, height: 0 };
      row.height = Math.max(row.height, group.height);
      column = { x: row.x, width: group.width, used: 0 };
    }
    shift(group, column.x, row.y + column.used);
    column.used += group.height;
  }
}

function shift(group, x, y) {
  for (let index = 0; index < group.xs.length; index += 1) {
    group.xs[index] += x;
    group.ys[index] += y;
  }
}
