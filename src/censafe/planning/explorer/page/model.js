// The state of one configuration, what follows from it, and the text of it in the link.

const rationals = new Map();
function read(text) {
  if (!rationals.has(text)) rationals.set(text, parseRational(text));
  return rationals.get(text);
}

function freshState(sheet) {
  return {
    sheet,
    budgets: new Map(sheet.rows.map((row) => [row.id, read(row.budget)])),
    off: new Set(sheet.rows.filter((row) => !row.derived && read(row.budget).n === 0n).map((row) => row.id)),
    settings: new Map(sheet.settings.map((setting) => [setting.key, read(setting.value)])),
    confidence: read(sheet.confidence),
    delta: read("1e-10"),
    relation: 0,
    keep: "budgets",
  };
}

const copyState = (state) => ({
  ...state, budgets: new Map(state.budgets), off: new Set(state.off), settings: new Map(state.settings),
});

// A configuration and what it is with other words; both know the configuration, with which edits are compared.
function unfold(base) {
  const all = [base, ...base.variants];
  for (const each of all) Object.assign(each, { base, choices: base.choices, toml: base.toml });
  return all;
}

// The configuration as it is shipped; this state never changes.
const shippedStates = new Map();
function shippedState({ base }) {
  if (!shippedStates.has(base)) shippedStates.set(base, freshState(base));
  return shippedStates.get(base);
}

// Another word of the configuration: other laws, bounds and relations, with the budgets, or where asked the margins, as they are.
function withWord(state, key, word) {
  const chosen = { ...state.sheet.chosen, [key]: word }, { base } = state.sheet;
  const sheet = [base, ...base.variants].find((each) => base.choices.every((choice) => each.chosen[choice.key] === chosen[choice.key]));
  let next = { ...copyState(state), sheet, relation: 0 };
  if (state.keep !== "margins") return next;
  for (const row of measuredRows(sheet)) {
    const now = readRow(state, rowOf(state.sheet, row.id));
    if (now && now.margin > 0) next = withMargin(next, row, parseDecimal(now.margin.toPrecision(15)));
  }
  return next;
}

const measuredRows = (sheet) => sheet.rows.filter((row) => !row.derived);
const rowOf = (sheet, id) => sheet.rows.find((row) => row.id === id);

function boundOf(state, row) {
  const { setting, coefficients, values } = row.bound;
  if (!setting) return read(coefficients[0]);
  const x = state.settings.get(setting);
  if (values.length) return read(values[Number(x.n) - 1]);
  return sum(coefficients.map((text, power) => times(read(text), rational(x.n ** BigInt(power)))));
}

function shareOf(state, share) {
  const fixed = read(share.constant);
  return share.setting ? add(fixed, times(read(share.factor), state.settings.get(share.setting))) : fixed;
}

const isOn = (state, row) => !state.off.has(row.derived ? row.derived.row : row.id);
const spent = (state, row) => (row.derived || !isOn(state, row) ? ZERO : state.budgets.get(row.id));

// Everything that the page shows about a row; null where nothing is measured.
function readRow(state, shown) {
  const row = state.sheet.rows.includes(shown) ? shown : rowOf(state.sheet, shown.id);
  const source = row.derived ? rowOf(state.sheet, row.derived.row) : row;
  const budget = state.budgets.get(source.id);
  if (!isOn(state, row) || budget.n === 0n) return null;
  const terms = row.derived ? row.derived.terms : 1;
  const one = lawParameter(state.sheet.law, boundOf(state, source), times(budget, shareOf(state, source.share)));
  const gaussian = state.sheet.law === "gaussian";
  const smooth = terms === 1 || (gaussian && !below(one, rational(4n)));
  const parameter = gaussian ? times(one, rational(BigInt(terms))) : one;
  return {
    parameter,
    margin: terms === 1 || gaussian ? paperMargin(state.sheet.law, parameter, state.confidence) : null,
    exact: smooth ? exactMargin(state.sheet.law, parameter, state.confidence) : null,
    extras: source.extras.map((extra) => extraMargin(state, source, extra)),
    published: source.suppression && !row.derived ? publishedFrom(state, parameter, source) : null,
  };
}

function extraMargin(state, row, extra) {
  const share = shareOf(state, extra.share);
  const parameter = lawParameter(state.sheet.law, boundOf(state, row), times(state.budgets.get(row.id), share));
  return { label: extra.label, margin: paperMargin(state.sheet.law, parameter, state.confidence) };
}

function publishedFrom(state, parameter, row) {
  const level = subtract(times(TWO, read(row.suppression)), ONE);
  return exactMargin(state.sheet.law, parameter, level) + 1;
}

const totalOf = (state, rows = state.sheet.rows) => sum(rows.map((row) => spent(state, row)));
const factorOf = (state) => read(state.sheet.relations[state.relation].factor);

// What keeps the state from being run, in words; a configuration with these is not written.
function obstaclesOf(state) {
  const { sheet } = state;
  if (totalOf(state).n === 0n) return ["Nothing is measured; switch on a table or a level."];
  if (!sheet.shares) return [];
  const found = [];
  const at = (histogram, level) => totalOf(state, sheet.rows.filter((row) => row.shares[0] === histogram && row.shares[1] === level)).n !== 0n;
  const levels = [...new Set(sheet.rows.map((row) => row.shares[1]))];
  const on = Object.keys(sheet.shares.losses).filter((histogram) => levels.some((level) => at(histogram, level)));
  for (const own of sheet.shares.together) {
    const off = own.filter((histogram) => !on.includes(histogram));
    if (off.length && off.length < own.length) {
      found.push(`${own.join(" and ")} are estimated together; ${off.join(", ")} measures nothing: measure all of them, or none.`);
    }
  }
  for (const level of levels) {
    const without = on.filter((histogram) => !at(histogram, level));
    if (without.length && without.length < on.length) {
      found.push(`${without.join(", ")} measures nothing at ${level}, where ${on.filter((each) => !without.includes(each)).join(", ")} does: `
        + "give it a query there, or switch the whole level off.");
    }
  }
  return found;
}

// Edits. Each takes a state and returns another, or a message that says what is wrong.
const EXAMPLES = "Give a number above 0, such as 20, 0.5 or 45/2.";
const BIGGEST = 30;

// What is wrong with a text that should be a number above 0; empty where nothing is.
function problemOf(text) {
  const value = parseRational(text);
  if (text.trim() === "") return `Nothing is given. ${EXAMPLES}`;
  if (!value) return `“${text.trim()}” is not a number. ${text.includes(",") ? "Write a decimal point and no commas. " : ""}${EXAMPLES}`;
  if (value.n <= 0n) return `“${text.trim()}” is not above 0. ${EXAMPLES}`;
  const size = exponentOf(value);
  if (size > BIGGEST || size < -BIGGEST) return `“${text.trim()}” is out of reach. Give a number from 1e-${BIGGEST} to 1e${BIGGEST}.`;
  return "";
}

function withBudget(state, row, budget) {
  const next = copyState(state);
  next.budgets.set(row.id, budget);
  next.off.delete(row.id);
  return next;
}

function withMargin(state, row, margin) {
  const share = shareOf(state, row.share);
  const loss = lossForMargin(state.sheet.law, boundOf(state, row), share, margin, state.confidence);
  return withBudget(state, row, loss);
}

// All rows that are on, times one factor.
function withTotal(state, rows, total) {
  const before = totalOf(state, rows);
  const next = copyState(state);
  const factor = over(total, before);
  for (const row of rows) if (isOn(state, row) && !row.derived) next.budgets.set(row.id, times(state.budgets.get(row.id), factor));
  return next;
}

// Rows that are switched on without a budget get the smallest of their section, or of all.
function withSwitched(state, rows, on) {
  const next = copyState(state);
  for (const row of rows.filter((each) => !each.derived)) {
    if (!on) next.off.add(row.id);
    else {
      next.off.delete(row.id);
      if (next.budgets.get(row.id).n === 0n) next.budgets.set(row.id, smallestBudget(state, row.section));
    }
  }
  return next;
}

function smallestBudget(state, section) {
  const known = measuredRows(state.sheet).filter((row) => state.budgets.get(row.id).n > 0n);
  const near = known.filter((row) => row.section === section);
  const all = (near.length ? near : known).map((row) => state.budgets.get(row.id));
  return all.length ? all.reduce((a, b) => (below(a, b) ? a : b)) : rational(1n, 1000n);
}

// A changed setting changes the margins, or, where those are kept, the budgets.
function withSetting(state, setting, value) {
  const next = copyState(state);
  next.settings.set(setting.key, value);
  if (state.keep === "margins") {
    for (const row of measuredRows(state.sheet)) {
      const noise = (s) => over(boundOf(s, row), shareOf(s, row.share));
      next.budgets.set(row.id, times(state.budgets.get(row.id), over(noise(next), noise(state))));
    }
  }
  return next;
}

function settingProblem(setting, text) {
  const value = parseRational(text);
  const low = read(String(setting.low)), high = read(String(setting.high));
  if (setting.kind === "integer") {
    if (value && value.d === 1n && !below(value, low) && !below(high, value)) return "";
    return `“${text.trim()}” is not a whole number from ${setting.low} to ${setting.high}.`;
  }
  if (value && below(low, value) && below(value, high)) return "";
  return `“${text.trim()}” is not a number above ${setting.low} and below ${setting.high}.`;
}

// The link: only what differs from the configuration.
function stateText(state) {
  const first = shippedState(state.sheet), parts = [state.sheet.key];
  const put = (key, value) => parts.push(`${encodeURIComponent(key)}=${encodeURIComponent(value)}`);
  for (const [key, value] of state.settings) if (!same(value, first.settings.get(key))) put(`set ${key}`, exactText(value));
  for (const row of measuredRows(state.sheet)) {
    const budget = state.budgets.get(row.id);
    if (!same(budget, first.budgets.get(row.id))) put(row.id, exactText(budget));
    if (state.off.has(row.id) !== first.off.has(row.id)) put(`${state.off.has(row.id) ? "off" : "on"} ${row.id}`, "");
  }
  if (!same(state.confidence, first.confidence)) put("confidence", exactText(state.confidence));
  if (!same(state.delta, first.delta)) put("delta", exactText(state.delta));
  if (state.relation) put("relation", state.sheet.relations[state.relation].name);
  if (state.keep !== "budgets") put("keep", state.keep);
  return parts.join("&");
}

// A state from a link; what cannot be read is left as in the configuration and counted.
function readState(sheets, text) {
  const [key, ...parts] = text.split("&");
  const sheet = sheets.find((each) => each.key === key);
  if (!sheet) return null;
  const state = freshState(sheet);
  let ignored = 0;
  for (const part of parts) if (!applyPart(state, part)) ignored += 1;
  return { state, ignored };
}

function applyPart(state, part) {
  let key, text;
  try {
    [key, text] = part.split("=").map(decodeURIComponent);
  } catch {
    return false;
  }
  const number = parseRational(text || "");
  const [verb, ...rest] = key.split(" "), name = rest.join(" ");
  const positive = number && number.n > 0n && Math.abs(exponentOf(number)) <= BIGGEST;
  if (state.budgets.has(key) && !rowOf(state.sheet, key).derived && positive) return Boolean(state.budgets.set(key, number));
  if (verb === "off" && state.budgets.has(name)) return Boolean(state.off.add(name));
  if (verb === "on" && state.budgets.has(name)) return state.off.delete(name) || true;
  const setting = state.sheet.settings.find((each) => `set ${each.key}` === key);
  if (setting && !settingProblem(setting, text)) return Boolean(state.settings.set(setting.key, number));
  if (key === "confidence" && number && exactText(number) in Z) return Boolean(state.confidence = number);
  if (key === "delta" && positive && below(number, ONE)) return Boolean(state.delta = number);
  if (key === "keep" && text === "margins") return Boolean(state.keep = text);
  const relation = state.sheet.relations.findIndex((each) => each.name === text);
  if (key !== "relation" || relation < 0) return false;
  state.relation = relation;
  return true;
}

const isChanged = (state, first, row) =>
  state.off.has(row.id) !== first.off.has(row.id)
  || (!state.off.has(row.id) && !same(state.budgets.get(row.id), first.budgets.get(row.id)));
