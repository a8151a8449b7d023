"use strict";
(() => {
  const data = JSON.parse(document.getElementById("process").textContent);
  const css = getComputedStyle(document.documentElement), colour = (name) => css.getPropertyValue(name).trim();
  const ink = colour("--ink"), quiet = colour("--quiet"), mine = colour("--mine"), theirs = colour("--theirs"), paper = colour("--paper");
  const at = (id) => document.getElementById(id);
  const hours = (h) => h === null ? "–" : h < 1 / 60 ? `${Math.round(h * 3600)} s` : h < 1 ? `${Math.round(h * 60)} min` : h < 48 ? `${h.toFixed(1)} h` : `${(h / 24).toFixed(1)} d`;

  // The arcs of one path are counted from it; those of all paths come from the query, of which no path is left out.
  const arcsOf = (variant) => {
    if (variant === "") return data.arcs;
    const [steps, cases] = data.variants[variant], waits = new Map(data.arcs.map(([a, b, , wait]) => [`${a}>${b}`, wait])), counts = new Map();
    [null, ...steps].forEach((a, place) => { const key = [a, steps[place] ?? null]; counts.set(String(key), [key, (counts.get(String(key))?.[1] ?? 0) + cases]); });
    return [...counts.values()].map(([[a, b], times]) => [a, b, times, waits.get(`${a}>${b}`) ?? null]);
  };
  const chosen = () => {
    const all = arcsOf(at("variant").value), steps = new Map();
    for (const [, b, times] of all) if (b !== null) steps.set(b, (steps.get(b) ?? 0) + times);
    const order = [...steps.keys()].sort((a, b) => steps.get(b) - steps.get(a) || a - b);
    const kept = new Set(order.slice(0, Math.max(1, Math.round(order.length * at("activities").value / 100))));
    const among = all.filter(([a, b]) => (a === null || kept.has(a)) && (b === null || kept.has(b))).sort((x, y) => y[2] - x[2]);
    // The strongest arc into and out of each activity always stays, so that no activity hangs in the air.
    const strongest = new Set();
    for (const side of [0, 1]) { const seen = new Set(); for (const arc of among) if (arc[0] !== arc[1] && !seen.has(arc[side])) { seen.add(arc[side]); strongest.add(arc); } }
    const most = Math.round(among.length * at("paths").value / 100);
    return {steps, kept, arcs: among.filter((arc, place) => place < most || strongest.has(arc)), of: among.length};
  };
  const name = (number, end) => number === null ? end : `a${number}`;
  const cy = cytoscape({container: at("map"), minZoom: 0.1, maxZoom: 3, style: [
    {selector: "node", style: {shape: "round-rectangle", width: 150, height: 46, label: "data(label)", "text-wrap": "wrap", "text-max-width": 140, "font-size": 11,
      "text-valign": "center", "background-color": mine, "background-opacity": "data(weight)", "border-width": 1, "border-color": mine, color: ink}},
    {selector: "node[?end]", style: {shape: "ellipse", width: 56, height: 34, "background-color": paper, "background-opacity": 1, "border-color": quiet, "border-width": 2}},
    {selector: "edge", style: {width: "data(width)", label: "data(label)", "font-size": 10, color: ink, "text-background-color": paper, "text-background-opacity": 0.85,
      "curve-style": "bezier", "target-arrow-shape": "triangle", "line-color": theirs, "target-arrow-color": theirs}},
    {selector: "edge:loop", style: {"control-point-step-size": 110, "loop-direction": "90deg", "loop-sweep": "-40deg"}},
    {selector: "edge[weights]", style: {"curve-style": "round-segments", "segment-weights": "data(weights)", "segment-distances": "data(distances)", "edge-distances": "node-position"}},
  ]});
  // The bends of an arc as Cytoscape takes them: how far along the line between both activities, and how far beside it.
  const bends = (from, to, points) => {
    const [dx, dy] = [to.x - from.x, to.y - from.y], length = Math.hypot(dx, dy), inner = points.slice(1, -1);
    if (!length || !inner.length) return {};
    const along = inner.map((p) => ((p.x - from.x) * dx + (p.y - from.y) * dy) / length ** 2), beside = inner.map((p) => ((p.y - from.y) * dx - (p.x - from.x) * dy) / length);
    return {weights: along.map((w) => w.toFixed(4)).join(" "), distances: beside.map((d) => d.toFixed(1)).join(" ")};
  };
  const draw = () => {
    const {steps, kept, arcs, of} = chosen(), isWait = at("on-arcs").value === "wait";
    const most = Math.max(...steps.values(), 1), longest = Math.max(...arcs.map((arc) => (isWait ? arc[3] ?? 0 : arc[2])), 1e-9);
    const nodes = [...kept].map((n) => ({id: `a${n}`, label: `${data.activities[n][0]}\n${steps.get(n).toLocaleString("en")}`, weight: 0.08 + 0.5 * steps.get(n) / most, end: false}));
    for (const [end, side] of [["begin", 0], ["end", 1]]) if (arcs.some((arc) => arc[side] === null)) nodes.push({id: end, label: end, weight: 1, end: true});
    const edges = arcs.map(([a, b, times, wait]) => ({source: name(a, "begin"), target: name(b, "end"), width: 1 + 7 * (isWait ? wait ?? 0 : times) / longest,
      label: isWait ? (a === null || b === null ? "" : hours(wait)) : times.toLocaleString("en")}));
    const graph = new dagre.graphlib.Graph({multigraph: true}).setGraph({rankdir: "TB", nodesep: 30, ranksep: 56}).setDefaultEdgeLabel(() => ({}));
    nodes.forEach((node) => graph.setNode(node.id, {width: node.end ? 56 : 150, height: node.end ? 34 : 46}));
    edges.forEach((edge, place) => graph.setEdge(edge.source, edge.target, {width: 8 * edge.label.length, height: 14, labelpos: "c"}, String(place)));
    dagre.layout(graph);
    edges.forEach((edge, place) => Object.assign(edge, bends(graph.node(edge.source), graph.node(edge.target), graph.edge(edge.source, edge.target, String(place)).points)));
    cy.elements().remove();
    cy.add([...nodes.map((node) => ({group: "nodes", data: node, position: {x: graph.node(node.id).x, y: graph.node(node.id).y}})), ...edges.map((edge) => ({group: "edges", data: edge}))]);
    cy.fit(undefined, 20);
    for (const id of ["activities", "paths"]) document.querySelector(`output[for=${id}]`).textContent = `${at(id).value} %`;
    const variant = at("variant").value, cases = variant === "" ? data.cases : data.variants[variant][1];
    at("told").textContent = `${cases.toLocaleString("en")} cases; ${kept.size} of ${steps.size} activities and ${arcs.length} of ${of} arcs between them are drawn.`;
  };
  data.variants.forEach(([steps, cases, lead], place) => {
    const option = document.createElement("option"), path = steps.map((n) => data.activities[n][0]).join(" → ");
    option.value = place;
    option.textContent = `path ${place + 1}: ${cases.toLocaleString("en")} cases (${(100 * cases / data.cases).toFixed(1)} %), ${hours(lead)}: ${path.length > 90 ? path.slice(0, 90) + "…" : path}`;
    at("variant").append(option);
  });
  const steps = data.activities.length;
  if (steps > 40) at("activities").value = Math.max(1, Math.round(4000 / steps));
  for (const id of ["activities", "paths", "on-arcs", "variant"]) at(id).addEventListener("input", draw);
  draw();

  Chart.defaults.color = quiet; Chart.defaults.borderColor = colour("--line"); Chart.defaults.animation = false; Chart.defaults.maintainAspectRatio = false;
  const day = (seconds) => new Date(1000 * seconds).toISOString().slice(0, 10);
  new Chart(at("weeks"), {type: "bar", data: {labels: data.weeks.map(([week]) => day(week)), datasets: [
    {label: "cases that began in the week", data: data.weeks.map((row) => row[1]), backgroundColor: mine},
    {label: "cases that ended in it", data: data.weeks.map((row) => row[2]), backgroundColor: theirs}]},
    options: {scales: {y: {title: {display: true, text: "cases"}}, x: {title: {display: true, text: "week from"}}}}});
  const dots = new Chart(at("dots"), {type: "scatter", data: {datasets: [{label: "", data: [], backgroundColor: mine, radius: 2}]},
    options: {scales: {x: {type: "linear", title: {display: true, text: "start"}, ticks: {callback: day}}, y: {title: {display: true, text: "lead time in hours"}}}}});
  const dot = () => {
    const variant = at("variant").value, own = data.dots.filter((row) => variant === "" || row[2] === Number(variant) + 1);
    dots.data.datasets[0] = {...dots.data.datasets[0], label: `${own.length.toLocaleString("en")} cases, each a dot`, data: own.map(([x, y]) => ({x, y}))};
    dots.update();
  };
  at("variant").addEventListener("input", dot);
  dot();
})();
