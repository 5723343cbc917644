// Exact composition of discrete Gaussians, as censafe.privacy.loss.loss_law and its proof have it: a bracket of epsilon, and the variance
// that could be spared. Every step yields often, so that it runs between edits and never holds one up.

const REACH = 14, MASS_ERROR = 1e-8, POINTS = 1 << 17, SEARCH_POINTS = 1 << 14, PARTS = 1000;
const WIDEST = 1e5, MOST_RHO = 1e4, LEAST_RHO = 1e-9;

function mills(a) {
  if (a < 10) return (erfc(a / Math.SQRT2) / 2) * Math.exp((a * a) / 2) * Math.sqrt(2 * Math.PI);
  let term = 1, total = 1;
  for (let n = 1; n < 25; n += 1) {
    term *= -(2 * n - 1) / (a * a);
    total += term;
  }
  return total / a;
}

function gaussianDelta(mu, epsilon) {
  const upper = epsilon / mu + mu / 2, lower = epsilon / mu - mu / 2;
  const density = Math.exp((-lower * lower) / 2) / Math.sqrt(2 * Math.PI);
  const gain = erfc(lower / Math.SQRT2) / 2, loss = density * mills(upper);
  return gain - loss + 2e-14 * (gain + loss);
}

function gaussianEpsilon(rho, delta) {
  const mu = Math.sqrt(2 * rho);
  if (rho === 0 || gaussianDelta(mu, 0) <= delta) return 0;
  let low = 0, high = 1;
  while (gaussianDelta(mu, high) > delta) { low = high; high *= 2; }
  for (let i = 0; i < 100; i += 1) {
    const middle = (low + high) / 2;
    if (gaussianDelta(mu, middle) > delta) low = middle; else high = middle;
  }
  return high;
}

// Cells of one law and step in one entry; a law is {sigma2, cells, step}.
function gatherLaws(laws) {
  const found = new Map();
  for (const law of laws) {
    const key = `${law.sigma2} ${law.step}`;
    found.set(key, { ...law, cells: law.cells + (found.has(key) ? found.get(key).cells : 0) });
  }
  return [...found.values()];
}

const lossOfLaws = (laws) => laws.reduce((total, law) => total + (law.cells * law.step * law.step) / (2 * law.sigma2), 0);
const canCompose = (laws) => laws.every((law) => law.sigma2 <= WIDEST * WIDEST) && lossOfLaws(laws) < MOST_RHO && lossOfLaws(laws) > LEAST_RHO;

const tables = new Map();
function fourierTables(size) {
  if (!tables.has(size)) {
    const cos = new Float64Array(size / 2), sin = new Float64Array(size / 2), places = new Uint32Array(size);
    for (let i = 0; i < size / 2; i += 1) {
      cos[i] = Math.cos((2 * Math.PI * i) / size);
      sin[i] = -Math.sin((2 * Math.PI * i) / size);
    }
    for (let i = 1; i < size; i += 1) places[i] = (places[i >> 1] >> 1) | (i & 1 ? size >> 1 : 0);
    tables.set(size, { cos, sin, places });
  }
  return tables.get(size);
}

// Discrete Fourier transform in place; the inverse, without its factor, where the parts are given the other way round.
function* fourier(re, im) {
  const size = re.length, { cos, sin, places } = fourierTables(size);
  for (let i = 0; i < size; i += 1) {
    const j = places[i];
    if (j > i) { [re[i], re[j]] = [re[j], re[i]]; [im[i], im[j]] = [im[j], im[i]]; }
  }
  for (let half = 1, work = 0; half < size; half *= 2) {
    const stride = size / (2 * half);
    for (let start = 0; start < size; start += 2 * half) {
      for (let k = 0, t = 0; k < half; k += 1, t += stride) {
        const a = start + k, b = a + half, x = re[b] * cos[t] - im[b] * sin[t], y = re[b] * sin[t] + im[b] * cos[t];
        re[b] = re[a] - x; im[b] = im[a] - y;
        re[a] += x; im[a] += y;
      }
    }
    work += size;
    if (work >= 1 << 18) { work = 0; yield; }
  }
}

// Sum of the noises of all cells under the tilt: its first value, its law, and the log of the mean of exp(tilt loss).
function* tiltedSum({ sigma2, cells, step }, tilt) {
  const sigma = Math.sqrt(sigma2), center = tilt * step, middle = Math.round(center), reach = Math.ceil(REACH * sigma) + 1;
  const one = new Float64Array(2 * reach + 1);
  let total = 0, untilted = 0;
  for (let i = 0; i < one.length; i += 1) {
    one[i] = Math.exp(-((middle - reach + i - center) ** 2) / (2 * sigma2));
    total += one[i];
    untilted += Math.exp(-((i - reach) ** 2) / (2 * sigma2));
  }
  const logOne = (center * center) / (2 * sigma2) + Math.log(total / untilted), offset = (tilt * cells * step * step) / (2 * sigma2);
  for (let i = 0; i < one.length; i += 1) one[i] /= total;
  if (cells === 1) return { first: middle - reach, mass: one, logSum: logOne + offset };
  const wide = Math.ceil(REACH * sigma * Math.sqrt(cells)) + cells + 2;
  const size = 2 ** (Math.floor(Math.log2(2 * wide)) + 1);
  const re = new Float64Array(size), im = new Float64Array(size);
  for (let i = 0; i < one.length; i += 1) re[modulo(i - reach, size)] += one[i];
  yield* fourier(re, im);
  for (let i = 0; i < size; i += 1) {
    const x = re[i], y = im[i];
    for (let n = 1; n < cells; n += 1) [re[i], im[i]] = [re[i] * x - im[i] * y, re[i] * y + im[i] * x];
  }
  yield* fourier(im, re);
  const mass = new Float64Array(2 * wide + 1);
  let sumOf = 0;
  for (let i = 0; i < mass.length; i += 1) {
    mass[i] = Math.max(re[modulo(i - wide, size)] / size, 0);
    sumOf += mass[i];
  }
  for (let i = 0; i < mass.length; i += 1) mass[i] /= sumOf;
  return { first: cells * middle - wide, mass, logSum: cells * logOne + offset };
}

const modulo = (a, size) => ((a % size) + size) % size;

// Put one law on the circle of lattice points, from below in ``re`` and from above in ``im``; logs of the sums and means in lattice points.
function onLattice({ first, mass, logSum }, { sigma2, cells, step: move }, tilt, step, re, im) {
  const place = (i) => (move * (first + i + (cells * move) / 2)) / sigma2;
  const start = Math.floor(place(0) / step), width = Math.floor(place(mass.length - 1) / step) - start + 2;
  const lower = new Float64Array(width), upper = new Float64Array(width);
  for (let i = 0; i < mass.length; i += 1) {
    const loss = place(i), cell = Math.floor(loss / step), gap = cell * step - loss;
    const low = mass[i] * Math.exp(tilt * gap), moved = Math.min(1, Math.max(0, Math.expm1(gap) / Math.expm1(-step)));
    lower[cell - start] += low;
    upper[cell - start] += low * (1 - moved);
    upper[cell - start + 1] += low * moved * Math.exp(tilt * step);
  }
  return [[lower, re], [upper, im]].map(([weights, circle]) => {
    const total = weights.reduce((a, b) => a + b, 0);
    let mean = 0;
    circle.fill(0);
    weights.forEach((weight, i) => {
      circle[modulo(start + i, circle.length)] += weight / total;
      mean += (weight / total) * (start + i);
    });
    return { mean, logSum: logSum + Math.log(total) };
  });
}

// The composed laws from below and from above, as sums over their upper tails.
function* composedTotals(laws, points, step, tilt) {
  const half = points / 2 + 1, spectra = [0, 1].map(() => [new Float64Array(half).fill(1), new Float64Array(half)]);
  const means = [0, 0], logs = [0, 0], re = new Float64Array(points), im = new Float64Array(points);
  for (const law of laws) {
    onLattice(yield* tiltedSum(law, tilt), law, tilt, step, re, im).forEach((way, i) => { means[i] += way.mean; logs[i] += way.logSum; });
    yield* fourier(re, im);
    for (let k = 0; k < half; k += 1) {
      const j = (points - k) % points, a = (re[k] + re[j]) / 2, b = (im[k] - im[j]) / 2, c = (im[k] + im[j]) / 2, d = (re[j] - re[k]) / 2;
      times2(spectra[0], k, a, b);
      times2(spectra[1], k, c, d);
    }
    yield;
  }
  for (let k = 0; k < half; k += 1) {
    const [[lr, li], [ur, ui]] = spectra, j = (points - k) % points;
    re[k] = lr[k] - ui[k]; im[k] = li[k] + ur[k];
    re[j] = lr[k] + ui[k]; im[j] = ur[k] - li[k];
  }
  yield* fourier(im, re);
  return [re, im].map((circle, i) => upperTails(circle, Math.round(means[i]), logs[i], step, tilt));
}

function times2([re, im], k, a, b) {
  const x = re[k], y = im[k];
  re[k] = x * a - y * b;
  im[k] = x * b + y * a;
}

function upperTails(circle, mean, logSum, step, tilt) {
  const points = circle.length, first = mean - points / 2, center = mean * step;
  const tails = new Float64Array(points), shrunk = new Float64Array(points);
  let tail = 0, less = 0;
  for (let i = points - 1; i >= 0; i -= 1) {
    const gap = (first + i) * step - center, back = (Math.max(circle[modulo(first + i, points)], 0) / points) * Math.exp(-tilt * gap);
    tail += back;
    less += back * Math.exp(-gap);
    tails[i] = tail;
    shrunk[i] = less;
  }
  return { first, step, tails, shrunk, tilt, center, logScale: logSum - tilt * center };
}

function deltaAt(total, epsilon, error) {
  let place = Math.max(0, Math.floor(epsilon / total.step) - total.first);
  while (place > 0 && (total.first + place - 1) * total.step > epsilon) place -= 1;
  while (place < total.tails.length && (total.first + place) * total.step <= epsilon) place += 1;
  if (place >= total.tails.length) return 0;
  const gap = epsilon - total.center;
  const inside = total.tails[place] - Math.exp(Math.min(gap, 700)) * total.shrunk[place];
  return Math.exp(total.logScale) * (inside + error * Math.exp(Math.min(-total.tilt * gap, 700)));
}

const HALVINGS = 80;

function smallestEpsilon(total, delta) {
  if (deltaAt(total, 0, MASS_ERROR) <= delta) return 0;
  let low = 0, high = (total.first + total.tails.length - 1) * total.step;
  for (let i = 0; i < HALVINGS; i += 1) {
    const middle = (low + high) / 2;
    if (deltaAt(total, middle, MASS_ERROR) <= delta) high = middle; else low = middle;
  }
  return high;
}

function largestEpsilon(total, delta, most) {
  let width = total.step;
  while (width < most && deltaAt(total, most - width, -MASS_ERROR) <= delta) width *= 2;
  if (width >= most) return 0;
  let low = most - width, high = most;
  for (let i = 0; i < HALVINGS; i += 1) {
    const middle = (low + high) / 2;
    if (deltaAt(total, middle, -MASS_ERROR) > delta) low = middle; else high = middle;
  }
  return low;
}

function* bracketBy(laws, rho, delta, guess, points) {
  const tilt = Math.max(0, (guess - rho) / (2 * rho)), step = (2 * REACH * Math.sqrt(2 * rho)) / points;
  const [lower, upper] = yield* composedTotals(laws, points, step, tilt);
  const above = smallestEpsilon(upper, delta);
  return { lower: Math.min(above, largestEpsilon(lower, delta, above)), upper: above };
}

// Epsilon at delta of all answers together is in [lower, upper].
function* composedEpsilon(given, delta, points = POINTS) {
  const laws = gatherLaws(given), rho = lossOfLaws(laws), guess = Math.max(gaussianEpsilon(rho, delta), 1e-6);
  const found = yield* bracketBy(laws, rho, delta, guess, points);
  if (Math.abs(found.upper - guess) <= 0.1 * Math.sqrt(2 * rho)) return found;
  return yield* bracketBy(laws, rho, delta, Math.max(found.upper, 1e-6), points);
}

// Share of all variances that may be saved so that this epsilon still holds at delta, in thousandths, rounded down.
function* spareVariance(given, delta, epsilon) {
  const laws = gatherLaws(given), rho = lossOfLaws(laws);
  function* holds(parts) {
    const less = laws.map((law) => ({ ...law, sigma2: law.sigma2 * (1 - parts / PARTS) }));
    return (yield* composedEpsilon(less, delta, SEARCH_POINTS)).upper <= epsilon;
  }
  if (!(yield* holds(0))) return 0;
  let low = 0, high = PARTS;
  while (high - low > 1) {
    const middle = nextParts(rho, delta, epsilon, low, high);
    if (yield* holds(middle)) low = middle; else high = middle;
  }
  return low / PARTS;
}

// Where continuous Gaussians would be, when that is inside; near its lower end, or the middle, otherwise.
function nextParts(rho, delta, epsilon, low, high) {
  if (high - low < PARTS) return high === PARTS ? Math.min(low + 8, (low + high) >> 1) : (low + high) >> 1;
  let most = 1;
  while (gaussianEpsilon(rho * most, delta) < epsilon) most *= 2;
  let least = most / 2;
  for (let i = 0; i < 14; i += 1) {
    const middle = (least + most) / 2;
    if (gaussianEpsilon(rho * middle, delta) <= epsilon) least = middle; else most = middle;
  }
  return Math.min(Math.max(Math.trunc(PARTS * (1 - 1 / most)), low + 1), high - 1);
}
