// Noise laws, margins of error and what a loss means; the formulas of censafe.privacy, in double precision where they are not exact.

const Z = { "9/10": parseRational("1.645"), "19/20": parseRational("1.96") };
const SIX = 6;

function erfc(x) {
  if (x < 0) return 2 - erfc(-x);
  if (x > 27) return 0;
  if (x < 2.2) {
    let term = x, total = x;
    for (let n = 1; Math.abs(term) > 1e-18 * Math.abs(total); n += 1) {
      term *= (2 * x * x) / (2 * n + 1);
      total += term;
    }
    return 1 - (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * total;
  }
  let f = x;
  for (let k = 160; k > 0; k -= 1) f = x + k / 2 / f;
  return Math.exp(-x * x) / (Math.sqrt(Math.PI) * f);
}

const upperTail = (x) => erfc(x / Math.SQRT2) / 2;

function upperQuantile(alpha) {
  let low = -40, high = 40;
  for (let i = 0; i < 70; i += 1) {
    const middle = (low + high) / 2;
    if (upperTail(middle) > alpha) low = middle; else high = middle;
  }
  return (low + high) / 2;
}

// sigma2 of a discrete Gaussian with rho, or the scale of a two-sided geometric law with epsilon.
const lawParameter = (kind, bound, loss) => (kind === "gaussian" ? over(bound, times(TWO, loss)) : over(bound, loss));

// The papers' rule: z sigma; for geometric noise the real m with 2 q^(m+1) / (1+q) = 1 - level.
function paperMargin(kind, parameter, level) {
  if (kind === "gaussian") return toNumber(Z[exactText(level)]) * Math.sqrt(toNumber(parameter));
  return geometricMargin(toNumber(parameter), toNumber(level));
}

function geometricMargin(scale, level) {
  const log = Math.log(2 / (1 - level)) - (1 / scale > 700 ? 1 / scale : Math.log1p(Math.exp(1 / scale)));
  return Math.max(0, scale * log);
}

// The loss that a margin costs, rounded up to six significant digits, so that no margin is missed.
function lossForMargin(kind, bound, share, margin, level) {
  return roundDigits(over(exactLossForMargin(kind, bound, margin, level), share), SIX, true);
}

function exactLossForMargin(kind, bound, margin, level) {
  if (kind === "gaussian") {
    const z = Z[exactText(level)];
    return over(times(bound, times(z, z)), times(TWO, times(margin, margin)));
  }
  const wanted = toNumber(margin), p = toNumber(level);
  let low = 0, high = 1;
  while (geometricMargin(high, p) < wanted) high *= 2;
  for (let i = 0; i < 200; i += 1) {
    const middle = (low + high) / 2;
    if (geometricMargin(middle, p) > wanted) high = middle; else low = middle;
  }
  return over(bound, parseDecimal(low.toPrecision(16)));
}

const LARGEST_SUMMED = 1e7;
const margins = new Map();

// Smallest whole margin that covers the level under the discrete law.
function exactMargin(kind, parameter, level) {
  const key = `${kind} ${exactText(parameter)} ${exactText(level)}`;
  if (!margins.has(key)) {
    if (margins.size > 20000) margins.clear();
    const find = kind === "gaussian" ? gaussianQuantile : geometricQuantile;
    margins.set(key, find(toNumber(parameter), toNumber(level)));
  }
  return margins.get(key);
}

function gaussianQuantile(sigma2, level) {
  if (sigma2 > LARGEST_SUMMED) return midpointQuantile(sigma2, level);
  let total = Math.sqrt(2 * Math.PI * sigma2);
  if (sigma2 < 4) {
    total = 1;
    for (let k = 1; k < 60; k += 1) total += 2 * Math.exp((-k * k) / (2 * sigma2));
  }
  const needed = level * total;
  let mass = 1, k = 0;
  while (mass < needed * (1 - 1e-14)) {
    k += 1;
    const weight = 2 * Math.exp((-k * k) / (2 * sigma2));
    if (weight === 0) return Number.NaN;
    mass += weight;
  }
  return k;
}

function midpointQuantile(sigma2, level) {
  const sigma = Math.sqrt(sigma2);
  const covered = (m) => {
    const x = (m + 0.5) / sigma;
    return 1 - 2 * upperTail(x) + (x * Math.exp((-x * x) / 2)) / (Math.sqrt(2 * Math.PI) * 12 * sigma2);
  };
  let low = -1, high = Math.ceil(10 * sigma);
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (covered(middle) < level) low = middle; else high = middle;
  }
  return high;
}

function geometricQuantile(scale, level) {
  const q = Math.exp(-1 / scale);
  const tail = (m) => (2 * q ** (m + 1)) / (1 + q);
  let m = Math.max(0, Math.floor(scale * Math.log(2 / ((1 - level) * (1 + q)))) - 2);
  while (tail(m) > (1 - level) * (1 + 1e-12)) m += 1;
  return m;
}

// rho at delta -> epsilon. L is ln(1 / delta).
const slideEpsilon = (rho, L) => rho + 2 * Math.sqrt(rho * L);

// With probability at least 1 - delta over the release no odds about one record move by more than e to this, either way.
const oddsEpsilon = (rho, L) => slideEpsilon(rho, L + Math.log1p(Math.exp(-slideEpsilon(rho, L))));

function prefactorEpsilon(rho, L) {
  return rho === 0 ? 0 : rho + 2 * Math.sqrt(rho * Math.max(0, Math.log(Math.sqrt(Math.PI * rho)) + L));
}

const GOLDEN = (Math.sqrt(5) - 1) / 2;

function tightEpsilon(rho, L) {
  if (rho === 0) return 0;
  const at = (log) => {
    const above = Math.exp(log), alpha = above + 1;
    return alpha * rho + (L - above * Math.log1p(1 / above) - Math.log(alpha)) / above;
  };
  const scale = Math.log(Math.sqrt((L + 1) / rho));
  let low = Math.min(Math.log(1e-8), scale - 10), high = Math.max(Math.log(1e5), scale + 10);
  let a = high - GOLDEN * (high - low), b = low + GOLDEN * (high - low), at_a = at(a), at_b = at(b);
  for (let i = 0; i < 90; i += 1) {
    if (at_a <= at_b) {
      high = b; b = a; at_b = at_a; a = high - GOLDEN * (high - low); at_a = at(a);
    } else {
      low = a; a = b; at_a = at_b; b = low + GOLDEN * (high - low); at_b = at(b);
    }
  }
  return Math.max(0, Math.min(at_a, at_b));
}

// Largest power of any test at a level: of every zCDP mechanism, and of one Gaussian answer.
const ORDERS = Array.from({ length: 61 }, (_, i) => 1 + 10 ** (-4 + (7 * i) / 60));
const gaussianPower = (rho, alpha) => upperTail(upperQuantile(alpha) - Math.sqrt(2 * rho));

function purePower(epsilon, alpha) {
  return Math.min(1, 1 - Math.exp(-epsilon) * (1 - alpha), alpha * Math.exp(Math.min(epsilon, 700)));
}

function logMoment(p, q, order) {
  const yes = order * Math.log(p) + (1 - order) * Math.log(q);
  const no = order * Math.log1p(-p) + (1 - order) * Math.log1p(-q);
  return Math.max(yes, no) + Math.log1p(Math.exp(-Math.abs(yes - no)));
}

// The orders that rule out a power stay nearly the same, so that the last one is tried first.
function zcdpPower(rho, alpha, refined = false) {
  if (rho === 0) return alpha;
  const [power, worst] = searchPower(rho, alpha, ORDERS, refined ? 50 : 22);
  if (!refined || worst < 0) return power;
  const first = Math.max(0, worst - 1) / 60, last = Math.min(60, worst + 1) / 60;
  const near = Array.from({ length: 241 }, (_, i) => 1 + 10 ** (-4 + 7 * (first + ((last - first) * i) / 240)));
  return Math.min(power, searchPower(rho, alpha, near, 50)[0]);
}

function searchPower(rho, alpha, orders, steps) {
  let low = alpha, high = 1, worst = -1;
  const broken = (p, i) => {
    const bound = rho * orders[i] * (orders[i] - 1);
    return logMoment(p, alpha, orders[i]) > bound || logMoment(alpha, p, orders[i]) > bound;
  };
  for (let step = 0; step < steps; step += 1) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    let found = worst >= 0 && broken(middle, worst) ? worst : -1;
    for (let i = 0; found < 0 && i < orders.length; i += 1) if (broken(middle, i)) found = i;
    if (found >= 0) { high = middle; worst = found; } else low = middle;
  }
  return [high, worst];
}
