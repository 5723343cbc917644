// Three drawings as SVG, with colors as attributes so that a saved file looks the same.

const SVG = "http://www.w3.org/2000/svg";
const W = 560, H = 340, LEFT = 62, RIGHT = 28, TOP = 16, BOTTOM = 52;

function svgNode(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function palette() {
  const style = getComputedStyle(document.documentElement);
  const of = (name) => style.getPropertyValue(`--${name}`).trim();
  return { ink: of("ink"), soft: of("soft"), line: of("line"), accent: of("accent"), paper: of("paper"), second: of("second") };
}

const FONT = "system-ui, 'Segoe UI', Roboto, 'Liberation Sans', Arial, sans-serif";

// axes: {x: {label, low, high, ticks: [[value, text]]}, y: same}; curves: [{points, color, dash, width, name}].
function drawChart(svg, description, axes, curves) {
  const ink = palette();
  const px = (x) => LEFT + ((x - axes.x.low) / (axes.x.high - axes.x.low)) * (W - LEFT - RIGHT);
  const py = (y) => H - BOTTOM - ((y - axes.y.low) / (axes.y.high - axes.y.low)) * (H - TOP - BOTTOM);
  const nodes = [svgNode("title", {}, description.title), svgNode("desc", {}, description.text)];
  nodes.push(svgNode("rect", { x: 0, y: 0, width: W, height: H, fill: ink.paper }));
  for (const [value, text] of axes.x.ticks) {
    nodes.push(svgNode("line", { x1: px(value), x2: px(value), y1: TOP, y2: H - BOTTOM, stroke: ink.line }));
    nodes.push(svgNode("text", { x: px(value), y: H - BOTTOM + 18, fill: ink.soft, "font-size": 13, "text-anchor": "middle" }, text));
  }
  for (const [value, text] of axes.y.ticks) {
    nodes.push(svgNode("line", { x1: LEFT, x2: W - RIGHT, y1: py(value), y2: py(value), stroke: ink.line }));
    nodes.push(svgNode("text", { x: LEFT - 8, y: py(value) + 4, fill: ink.soft, "font-size": 13, "text-anchor": "end" }, text));
  }
  const middle = (TOP + H - BOTTOM) / 2;
  nodes.push(svgNode("text", { x: (LEFT + W - RIGHT) / 2, y: H - 10, fill: ink.ink, "font-size": 14, "text-anchor": "middle" }, axes.x.label));
  nodes.push(svgNode("text", { x: 16, y: middle, fill: ink.ink, "font-size": 14, "text-anchor": "middle", transform: `rotate(-90 16 ${middle})` }, axes.y.label));
  for (const curve of curves) {
    const path = curve.points.map(([x, y], i) => `${i ? "L" : "M"}${px(x).toFixed(1)} ${py(Math.min(y, axes.y.high)).toFixed(1)}`).join("");
    nodes.push(svgNode("path", {
      d: path, fill: "none", stroke: ink[curve.color], "stroke-width": curve.width, "stroke-dasharray": curve.dash, "data-name": curve.name,
    }));
  }
  svg.setAttribute("font-family", FONT);
  svg.replaceChildren(...nodes);
}

// Round ticks from 0 to at least the largest value.
function ticksTo(largest) {
  const raw = Math.max(largest, 1e-9) / 5, unit = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((m) => m * unit).find((s) => s >= raw);
  const count = Math.ceil(Math.max(largest, 1e-9) / step);
  const places = Math.max(0, -Math.floor(Math.log10(step)));
  return { high: count * step, ticks: Array.from({ length: count + 1 }, (_, i) => [i * step, (i * step).toFixed(places)]) };
}

const POWERS = Array.from({ length: 27 }, (_, i) => -15 + i / 2);

function epsilonChart(svg, rho, before, changed) {
  const curve = (of, loss) => POWERS.map((p) => [p, of(loss, -p * Math.LN10)]);
  const tight = curve(tightEpsilon, rho), slide = curve(slideEpsilon, rho), was = curve(tightEpsilon, before);
  const y = ticksTo(Math.max(slide[0][1], changed ? was[0][1] : 0));
  const axes = {
    x: { label: "delta", low: -15, high: -2, ticks: [-15, -12, -10, -8, -6, -4, -2].map((p) => [p, `1e${p}`]) },
    y: { label: "epsilon", low: 0, high: y.high, ticks: y.ticks },
  };
  const curves = [
    { name: "slide", points: slide, color: "soft", dash: "2 4", width: 2 },
    { name: "tight", points: tight, color: "accent", dash: "none", width: 3 },
  ];
  if (changed) curves.push({ name: "production", points: was, color: "second", dash: "8 5", width: 2.5 });
  const text = `Tight epsilon falls from ${roundedUp(tight[0][1], 2)} at delta 1e-15 to ${roundedUp(tight.at(-1)[1], 2)} at delta 1e-2.`;
  drawChart(svg, { title: "Epsilon by delta", text }, axes, curves);
}

const ODDS_POWERS = Array.from({ length: 46 }, (_, i) => -10 + i / 5);

// How far odds about one record move, by the chance over the release that they move further; flat under pure DP.
function oddsChart(svg, gaussian, loss, before, changed) {
  const curve = (of) => ODDS_POWERS.map((p) => [p, gaussian ? (of > 0 ? oddsEpsilon(of, -p * Math.LN10) : 0) : of]);
  const now = curve(loss), was = curve(before);
  const y = ticksTo(Math.max(now[0][1], changed ? was[0][1] : 0));
  const axes = {
    x: { label: "delta", low: -10, high: -1, ticks: [-10, -8, -6, -4, -2, -1].map((p) => [p, `1e${p}`]) },
    y: { label: "epsilon of the odds", low: 0, high: y.high, ticks: y.ticks },
  };
  const curves = [{ name: "odds", points: now, color: "accent", dash: "none", width: 3 }];
  if (changed) curves.push({ name: "production", points: was, color: "second", dash: "8 5", width: 2.5 });
  const text = `With probability at least 1 - delta odds about one record move by at most e to the power of ${roundedUp(now[0][1], 2)} at delta 1e-10 and ${roundedUp(now.at(-1)[1], 2)} at delta 0.1.`;
  drawChart(svg, { title: "How far an attacker's odds move, by delta", text }, axes, curves);
}

const ALPHAS = [0.0005, 0.002, 0.005, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.14, 0.2, 0.27, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.93, 0.98];

const powerCurves = new Map();

// Kept, as the configuration's own curve stands beside that of every edit.
function powerCurve(sheet, loss, refined = false, alphas = ALPHAS) {
  const key = `${sheet.law} ${loss} ${refined} ${alphas.length}`;
  if (powerCurves.size > 500) powerCurves.clear();
  if (!powerCurves.has(key)) powerCurves.set(key, alphas.map((alpha) => [alpha, sheet.law === "gaussian" ? zcdpPower(loss, alpha, refined) : purePower(loss, alpha)]));
  return powerCurves.get(key);
}

function powerChart(svg, sheet, loss, base, before, changed) {
  const most = powerCurve(sheet, loss);
  const tenths = [0, 0.2, 0.4, 0.6, 0.8, 1].map((v) => [v, `${Math.round(100 * v)}%`]);
  const axes = {
    x: { label: "false alarms", low: 0, high: 1, ticks: tenths },
    y: { label: "records found out, at most", low: 0, high: 1, ticks: tenths },
  };
  const curves = [
    { name: "guess", points: [[0, 0], [1, 1]], color: "soft", dash: "1 5", width: 2 },
    { name: "most", points: [[0, 0], ...most, [1, 1]], color: "accent", dash: "none", width: 3 },
  ];
  if (sheet.law === "gaussian" && loss > 0) {
    const points = ALPHAS.map((alpha) => [alpha, gaussianPower(loss, alpha)]);
    curves.push({ name: "gaussian", points: [[0, 0], ...points, [1, 1]], color: "soft", dash: "2 4", width: 2 });
  }
  if (changed) curves.push({ name: "production", points: [[0, 0], ...powerCurve(base, before), [1, 1]], color: "second", dash: "8 5", width: 2.5 });
  const at = most[ALPHAS.indexOf(0.05)][1];
  const text = `With 5% false alarms, no attacker finds out more than ${roundedUp(100 * at, 1)}%.`;
  drawChart(svg, { title: "Power of the best attack by level", text }, axes, curves);
}
