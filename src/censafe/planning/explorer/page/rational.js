// Exact numbers: a rational is {n, d}, two BigInt without common divisor, d above 0.

function rational(n, d = 1n) {
  if (d < 0n) { n = -n; d = -d; }
  let a = n < 0n ? -n : n, b = d;
  while (b) [a, b] = [b, a % b];
  return a > 1n ? { n: n / a, d: d / a } : { n, d };
}

const ZERO = rational(0n), ONE = rational(1n), TWO = rational(2n);
const add = (a, b) => rational(a.n * b.d + b.n * a.d, a.d * b.d);
const subtract = (a, b) => rational(a.n * b.d - b.n * a.d, a.d * b.d);
const times = (a, b) => rational(a.n * b.n, a.d * b.d);
const over = (a, b) => rational(a.n * b.d, a.d * b.n);
const same = (a, b) => a.n === b.n && a.d === b.d;
const below = (a, b) => a.n * b.d < b.n * a.d;
const sum = (values) => values.reduce(add, ZERO);

// The nearest number, for drawing and for quantiles; digits beyond 60 bits of the quotient are dropped.
function toNumber(a) {
  const bits = (x) => (x < 0n ? -x : x).toString(2).length;
  const shift = bits(a.d) - bits(a.n) + 60;
  const q = shift >= 0 ? (a.n << BigInt(shift)) / a.d : a.n / (a.d << BigInt(-shift));
  return Number(q) * 2 ** -shift;
}

const NUMBER = /^([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?\d{1,3}))?$/;

function parseDecimal(text) {
  const found = NUMBER.exec(text.trim());
  if (!found || !(found[2] || found[3]) || text.length > 400) return null;
  const places = BigInt((found[3] || "").length) - BigInt(found[4] || 0);
  const digits = BigInt((found[1] === "-" ? "-" : "") + (found[2] || "") + (found[3] || ""));
  return places >= 0n ? rational(digits, 10n ** places) : rational(digits * 10n ** -places);
}

// A decimal such as 0.5 or 1e-10, or a fraction such as 45/2; null for anything else.
function parseRational(text) {
  const parts = text.split("/");
  if (parts.length > 2) return null;
  const [top, bottom] = parts.map(parseDecimal);
  if (!top) return null;
  if (parts.length === 1) return top;
  return bottom && bottom.n !== 0n ? over(top, bottom) : null;
}

const exactText = (a) => (a.d === 1n ? `${a.n}` : `${a.n}/${a.d}`);

// Rounded to decimal places, halves to the even digit, as Python rounds fractions.
function roundTo(a, places) {
  const unit = 10n ** BigInt(places), top = (a.n < 0n ? -a.n : a.n) * unit;
  let q = top / a.d;
  const rest = 2n * (top % a.d);
  if (rest > a.d || (rest === a.d && q % 2n)) q += 1n;
  return rational(a.n < 0n ? -q : q, unit);
}

function fixedText(a, places) {
  const rounded = roundTo(a, places), negative = rounded.n < 0n;
  const units = (rounded.n < 0n ? -rounded.n : rounded.n) * (10n ** BigInt(places) / rounded.d);
  const digits = units.toString().padStart(places + 1, "0");
  const text = places ? `${digits.slice(0, -places)}.${digits.slice(-places)}` : digits;
  return negative ? `-${text}` : text;
}

// A plain decimal where there is one, otherwise numerator/denominator.
function decimalText(a) {
  let rest = a.d, places = 0;
  for (const prime of [2n, 5n]) {
    let power = 0;
    while (rest % prime === 0n) { rest /= prime; power += 1; }
    places = Math.max(places, power);
  }
  return rest === 1n ? fixedText(a, places) : exactText(a);
}

// Losses and error bounds are rounded up, coverage down, so that what is printed stays true; what is a decimal already stays as it is.
const roundedUp = (value, places) => (Math.ceil(Number((value * 10 ** places).toPrecision(15))) / 10 ** places).toFixed(places);
const roundedDown = (value, places) => (Math.floor(Number((value * 10 ** places).toPrecision(15))) / 10 ** places).toFixed(places);

// At most about ten digits, for reading.
function shortText(a) {
  const text = decimalText(a);
  if (!text.includes("/") && text.length <= 10) return text;
  const value = toNumber(a);
  if (Math.abs(value) >= 100) return fixedText(a, 2);
  const digits = value.toPrecision(6);
  return digits.includes("e") ? digits.replace(/\.?0+e/, "e") : digits.replace(/\.?0+$/, "");
}

// The same of a loss, rounded up.
function lossText(a) {
  const text = decimalText(a), value = toNumber(a);
  if (!text.includes("/") && text.length <= 10) return text;
  if (value >= 100) return roundedUp(value, 2);
  const power = exponentOf(a);
  const digits = Number(`${roundedUp(value * 10 ** -power, 5)}e${power}`).toPrecision(6);
  return digits.includes("e") ? digits.replace(/\.?0+e/, "e") : digits.replace(/\.?0+$/, "");
}

// floor(log10(a)) for a above 0, exactly.
function exponentOf(a) {
  let power = a.n.toString().length - a.d.toString().length;
  const ten = (e) => (e >= 0 ? rational(10n ** BigInt(e)) : rational(1n, 10n ** BigInt(-e)));
  while (below(a, ten(power))) power -= 1;
  while (!below(a, ten(power + 1))) power += 1;
  return power;
}

// Up (or down) to a number of significant digits.
function roundDigits(a, digits, up) {
  const power = digits - 1 - exponentOf(a);
  const unit = power >= 0 ? rational(10n ** BigInt(power)) : rational(1n, 10n ** BigInt(-power));
  const scaled = times(a, unit);
  const whole = scaled.n / scaled.d;
  return over(rational(up && whole * scaled.d !== scaled.n ? whole + 1n : whole), unit);
}
