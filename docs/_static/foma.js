// FOMA on two-dimensional points, to try: the same arithmetic as regaug.functional.foma.
// tests/browser/test_foma.py compares the two.
"use strict";

const regaugFoma = (() => {
  // Turn the columns of a matrix until they are orthogonal (one-sided Jacobi): a = (a V) V'. Returns
  // the directions V as columns, widest first, and the lengths of the columns of a V.
  function decompose(a) {
    const width = a[0].length;
    const columns = transpose(a);
    const turned = columns.map((_, i) => columns.map((_, j) => (i === j ? 1 : 0)));
    for (let sweep = 0; sweep < 60; sweep++) {
      let largest = 0;
      for (let p = 0; p < width; p++) {
        for (let q = p + 1; q < width; q++) {
          const pp = dot(columns[p], columns[p]);
          const qq = dot(columns[q], columns[q]);
          const pq = dot(columns[p], columns[q]);
          if (Math.abs(pq) <= 1e-16 * Math.sqrt(pp * qq)) continue;
          largest = Math.max(largest, Math.abs(pq) / Math.sqrt(pp * qq));
          const zeta = (qq - pp) / (2 * pq);
          const tangent = (zeta < 0 ? -1 : 1) / (Math.abs(zeta) + Math.hypot(1, zeta));
          const cosine = 1 / Math.hypot(1, tangent);
          for (const rows of [columns, turned]) rotate(rows, p, q, cosine, cosine * tangent);
        }
      }
      if (largest < 1e-15) break;
    }
    const lengths = columns.map((column) => Math.sqrt(dot(column, column)));
    const order = lengths.map((_, i) => i).sort((i, j) => lengths[j] - lengths[i]);
    return { values: order.map((i) => lengths[i]), directions: order.map((i) => turned[i]) };
  }

  function rotate(rows, p, q, cosine, sine) {
    const old = rows[p];
    rows[p] = old.map((value, i) => cosine * value - sine * rows[q][i]);
    rows[q] = old.map((value, i) => sine * value + cosine * rows[q][i]);
  }

  const dot = (u, v) => u.reduce((sum, value, i) => sum + value * v[i], 0);
  const transpose = (a) => a[0].map((_, j) => a.map((row) => row[j]));
  const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;

  // How many of the largest values make up at most a share of the sum of all.
  function rankAtShare(values, rho) {
    const sums = [];
    values.reduce((sum, value, i) => (sums[i] = sum + value), 0);
    return sums.filter((sum) => sum <= rho * sums[sums.length - 1]).length;
  }

  // Multiply what rows have beyond their k widest directions by lam. Rows are [inputs..., target].
  function foma(rows, { lam, k = null, rho = 0.9, center = false }) {
    const middle = transpose(rows).map((column) => (center ? mean(column) : 0));
    const a = rows.map((row) => row.map((value, j) => value - middle[j]));
    const { values, directions } = decompose(a);
    const count = Math.min(rows.length, rows[0].length);
    const found = values.slice(0, count);
    const cut = Math.min(k === null ? rankAtShare(found, rho) : k, count);
    const made = a.map((row) => {
      const along = directions.map((direction, i) => (i < cut ? 1 : lam) * dot(row, direction));
      return row.map(
        (_, j) => middle[j] + along.reduce((sum, value, i) => sum + value * directions[i][j], 0),
      );
    });
    return { rows: made, k: cut, values: found, directions, middle };
  }

  // The positions of the samples whose targets are nearest to that of one of them.
  function nearestBatch(targets, anchor, size) {
    const order = targets.map((_, i) => i).sort((i, j) => targets[i] - targets[j]);
    const place = order.indexOf(anchor);
    let [first, last] = [place, place];
    while (last - first + 1 < size) {
      const before = first > 0 ? targets[anchor] - targets[order[first - 1]] : Infinity;
      const after = last + 1 < order.length ? targets[order[last + 1]] - targets[anchor] : Infinity;
      if (before <= after) first--;
      else last++;
    }
    return order.slice(first, last + 1);
  }

  // Numbers from 0 to 1 that are the same for everybody (mulberry32).
  function uniforms(seed) {
    let state = seed >>> 0;
    return () => {
      state = (state + 0x6d2b79f5) >>> 0;
      let t = Math.imul(state ^ (state >>> 15), state | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
    };
  }

  function normal(draw) {
    return Math.sqrt(-2 * Math.log(1 - draw())) * Math.cos(2 * Math.PI * draw());
  }

  // One draw from Beta(alpha, alpha), by the rule of Johnk.
  function drawBeta(alpha, draw) {
    for (let tries = 0; tries < 1e5; tries++) {
      const [u, v] = [draw() ** (1 / alpha), draw() ** (1 / alpha)];
      if (u + v > 0 && u + v <= 1) return u / (u + v);
    }
    return 0.5;
  }

  return { decompose, rankAtShare, foma, nearestBatch, uniforms, normal, drawBeta, mean };
})();

// The figure on the page.
const regaugFomaFigure = (() => {
  const SPACE = "http://www.w3.org/2000/svg";
  const [WIDTH, HEIGHT, REACH_X, REACH_Y] = [640, 400, 3.6, 2.25];
  const [POINTS, BATCH] = [72, 18];
  const CLOUDS = {
    sine: (t, draw) => [3 * t, Math.sin(3 * t) + 0.12 * regaugFoma.normal(draw)],
    line: (t, draw) => [3 * t, 1.5 * t + 0.3 * regaugFoma.normal(draw)],
    circle: (t, draw) => [
      1.8 * Math.cos(Math.PI * t) + 0.08 * regaugFoma.normal(draw),
      1.8 * Math.sin(Math.PI * t) + 0.08 * regaugFoma.normal(draw),
    ],
  };

  const across = (x) => (WIDTH / 2) * (1 + x / REACH_X);
  const down = (y) => (HEIGHT / 2) * (1 - y / REACH_Y);

  function add(parent, name, attributes) {
    const made = document.createElementNS(SPACE, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    parent.appendChild(made);
    return made;
  }

  function makeCloud(name) {
    const draw = regaugFoma.uniforms(7);
    return Array.from({ length: POINTS }, () => CLOUDS[name](2 * draw() - 1, draw));
  }

  function chooseBatch(cloud, way, seed) {
    const draw = regaugFoma.uniforms(1000 + seed);
    if (way === "nearest") {
      const anchor = Math.floor(draw() * cloud.length);
      return regaugFoma.nearestBatch(cloud.map((row) => row[1]), anchor, BATCH);
    }
    const keys = cloud.map((_, i) => [draw(), i]).sort((a, b) => a[0] - b[0]);
    return keys.slice(0, BATCH).map(([, i]) => i);
  }

  function drawDots(layer, rows, kind, radius) {
    for (const [x, y] of rows) {
      add(layer, "circle", { class: kind, cx: across(x), cy: down(y), r: radius });
    }
  }

  // What is kept: lines along the directions before the cut.
  function drawKept(layer, result) {
    for (let i = 0; i < result.k; i++) {
      const [[x, y], [dx, dy]] = [result.middle, result.directions[i]];
      const ends = { x1: across(x - 9 * dx), y1: down(y - 9 * dy), x2: across(x + 9 * dx) };
      add(layer, "line", { class: "kept", ...ends, y2: down(y + 9 * dy) });
    }
  }

  function show(layer, cloud, batch, result) {
    layer.replaceChildren();
    add(layer, "line", { class: "axis", x1: 0, y1: down(0), x2: WIDTH, y2: down(0) });
    add(layer, "line", { class: "axis", x1: across(0), y1: 0, x2: across(0), y2: HEIGHT });
    drawKept(layer, result);
    drawDots(layer, cloud, "cloud", 3);
    batch.forEach((place, i) => {
      const [[x, y], [newX, newY]] = [cloud[place], result.rows[i]];
      const ends = { x1: across(x), y1: down(y), x2: across(newX), y2: down(newY) };
      add(layer, "line", { class: "step", ...ends });
    });
    drawDots(layer, batch.map((place) => cloud[place]), "before", 5);
    drawDots(layer, result.rows, "after", 4.5);
  }

  function describe(cloud, batch, result, lam, way) {
    const steps = batch.map((place, i) =>
      Math.hypot(result.rows[i][0] - cloud[place][0], result.rows[i][1] - cloud[place][1]),
    );
    const old = result.values.map((value) => value.toFixed(2)).join(" and ");
    const made = result.values.map((value, i) => (i < result.k ? value : lam * value).toFixed(2));
    const chosen = way === "nearest" ? "with near targets" : "drawn at random";
    const directions = result.k === 1 ? "1 of 2 directions stays" : `${result.k} of 2 directions stay`;
    return (
      `A batch of ${batch.length} samples ${chosen}: ${directions}. Singular values ${old} become ` +
      `${made.join(" and ")}. Samples move by ${regaugFoma.mean(steps).toFixed(2)} on average.`
    );
  }

  function mount(root) {
    const part = (name) => root.querySelector(`[name="${name}"]`);
    const layer = root.querySelector("svg g");
    const state = { seed: 1, draws: 0 };

    function update() {
      const number = (name) => Number(part(name).value);
      const byShare = part("cut").value === "rho";
      const [cloud, way] = [makeCloud(part("cloud").value), part("batch").value];
      const batch = chooseBatch(cloud, way, state.seed);
      const lam = number("lam");
      const cut = byShare ? { rho: number("rho") } : { k: number("k") };
      const rows = batch.map((place) => cloud[place]);
      const result = regaugFoma.foma(rows, { lam, ...cut, center: part("center").checked });
      show(layer, cloud, batch, result);
      root.querySelector("[data-row=rho]").hidden = !byShare;
      root.querySelector("[data-row=k]").hidden = byShare;
      for (const own of root.querySelectorAll("output[for]")) {
        own.textContent = own.dataset.digits
          ? number(own.dataset.of).toFixed(Number(own.dataset.digits))
          : part(own.dataset.of).value;
      }
      root.querySelector(".said").textContent = describe(cloud, batch, result, lam, way);
    }

    root.addEventListener("input", update);
    part("another").addEventListener("click", () => {
      state.seed += 1;
      update();
    });
    part("draw").addEventListener("click", () => {
      state.draws += 1;
      const draw = regaugFoma.uniforms(500 + state.draws);
      part("lam").value = regaugFoma.drawBeta(Number(part("alpha").value), draw);
      update();
    });
    root.hidden = false;
    update();
  }

  document.addEventListener("DOMContentLoaded", () => {
    const root = document.getElementById("foma-figure");
    if (root) mount(root);
  });
  return { mount };
})();
