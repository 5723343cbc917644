// The page: built once for a configuration, then refreshed in place after every edit.

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) node.setAttribute(key, "");
    else if (value !== false && value !== null) node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

const byId = (id) => document.getElementById(id);
const symbolOf = (sheet) => sheet.symbol;
const marginText = (value) => (value === null ? "" : value >= 1e9 ? value.toExponential(3) : roundedUp(value, 2));
const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

// A budget with the digits of the paper where it prints this very number.
function budgetText(row, value) {
  if (row && row.places !== null && same(roundTo(value, row.places), value)) return fixedText(value, row.places);
  return shortText(value);
}

let fieldCount = 0;

// A text field that edits live; what cannot be read stays in the field, with a message, and changes nothing.
function makeField(app, { name, text, problem, apply, column, mode }) {
  fieldCount += 1;
  const id = `field-${fieldCount}`;
  const input = element("input", {
    type: "text", id, inputmode: mode || "decimal", autocomplete: "off", spellcheck: "false", "aria-label": name,
    "aria-describedby": `${id}-error`, "data-column": column || null,
  });
  const error = element("p", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
  const field = { input, error, text, session: null };
  const complain = (message) => {
    error.textContent = message;
    error.hidden = !message;
    input.setAttribute("aria-invalid", message ? "true" : "false");
  };
  const begin = (shown) => { field.session = { before: app.state, text: shown }; };
  field.clear = () => { complain(""); field.session = null; };
  field.refresh = () => {
    if (document.activeElement === input || input.getAttribute("aria-invalid") === "true") return;
    input.value = text(app.state);
  };
  input.addEventListener("focus", () => begin(input.value));
  input.addEventListener("input", () => {
    if (!field.session) begin(null);
    const wrong = problem(input.value);
    app.show(wrong ? field.session.before : apply(field.session.before, input.value));
    if (!wrong) complain("");
  });
  const finish = () => {
    if (!field.session) return;
    const { before, text: first } = field.session;
    field.session = null;
    if (input.value === first) return;
    const wrong = problem(input.value);
    if (wrong) {
      complain(`${wrong} It stays ${text(app.state)}.`);
      return;
    }
    complain("");
    app.commit(before);
  };
  input.addEventListener("change", finish);
  input.addEventListener("blur", () => { finish(); field.refresh(); });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      if (field.session) app.show(field.session.before);
      field.clear();
      input.value = text(app.state);
      begin(input.value);
    } else if (event.key === "Enter") {
      finish();
      if (input.getAttribute("aria-invalid") !== "true") input.value = text(app.state);
      begin(input.value);
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      const all = [...document.querySelectorAll(`[data-column="${column}"]`)].filter((each) => !each.disabled);
      const next = column && all[all.indexOf(input) + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) { event.preventDefault(); next.focus(); next.select(); }
    }
  });
  app.fields.push(field);
  return element("div", { class: "field" }, input, error);
}

const cell = (label, ...children) => element("td", { "data-label": label }, ...children);
const head = (...names) => element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name))));

// A row of the totals: name, rows that it sums, whether it is the whole.
function totalRow(app, name, rows, whole) {
  const { sheet } = app.state, symbol = symbolOf(sheet), first = shippedState(sheet);
  const field = makeField(app, {
    name: `${symbol} of ${name}`,
    text: (state) => lossText(totalOf(state, rows)),
    problem: (text) => problemOf(text)
      || (totalOf(app.state, rows).n === 0n ? "Nothing here is measured; switch something on first." : ""),
    apply: (state, text) => withTotal(state, rows, parseRational(text)),
    column: "total",
  });
  const outs = [...sheet.relations.slice(1).map(() => element("output")), element("output"), element("output"), element("output")];
  const labels = [...sheet.relations.slice(1).map((r) => `${symbol}, ${r.label}`), "epsilon, tight", "epsilon, as the Bureau states it", first.sheet.symbol === symbol ? "configuration" : `configuration: ${first.sheet.symbol}`];
  const shown = sheet.law === "gaussian" ? labels : labels.filter((label) => !label.startsWith("epsilon,"));
  const line = element("tr", { class: whole ? "whole" : null }, element("th", { scope: "row" }, name), cell(`${symbol}, ${sheet.relations[0].label}`, field));
  labels.forEach((label, i) => { if (shown.includes(label)) line.append(cell(label, outs[i])); });
  line.dataset.total = name;
  app.updates.push((state) => {
    const loss = totalOf(state, rows), L = deltaLog(state), extra = sheet.relations.length - 1;
    sheet.relations.slice(1).forEach((r, i) => { outs[i].textContent = lossText(times(loss, read(r.factor))); });
    const seen = toNumber(times(loss, factorOf(state)));
    outs[extra].textContent = roundedUp(tightEpsilon(seen, L), 4);
    outs[extra + 1].textContent = roundedUp(slideEpsilon(seen, L), 4);
    outs[extra + 2].textContent = lossText(totalOf(first, rows));
    line.classList.toggle("changed", !same(loss, totalOf(first, rows)));
    line.title = `exactly ${exactText(loss)}`;
  });
  return [line, shown];
}

const deltaLog = (state) => Math.log(toNumber(rational(state.delta.d))) - Math.log(toNumber(rational(state.delta.n)));

function buildTotals(app) {
  const { sheet } = app.state, symbol = symbolOf(sheet);
  const [whole, shown] = totalRow(app, "whole release", measuredRows(sheet), true);
  const body = element("tbody", {}, whole);
  for (const position of sheet.totals) {
    const { values } = sheet.facets[position];
    if (values.length < 2) continue;
    values.forEach((value, i) => body.append(totalRow(app, value, measuredRows(sheet).filter((row) => row.facets[position] === i))[0]));
  }
  byId("totals").replaceChildren(
    element("caption", {}, `Privacy loss of one ${sheet.unit} record. An edited total scales the budgets below it.`),
    head("part", `${symbol}, ${sheet.relations[0].label}`, ...shown), body,
  );
  byId("sheet-notes").replaceChildren(
    ...sheet.relations.map((r) => element("p", {}, `${r.label[0].toUpperCase()}${r.label.slice(1)}: ${r.text}.`)),
    ...sheet.notes.map((note) => element("p", {}, note)),
  );
}

function buildChoices(app) {
  const { sheet } = app.state;
  const confidence = element("select", { id: "confidence" }, ...[["9/10", "90%"], ["19/20", "95%"]].map(([value, text]) => element("option", { value }, text)));
  confidence.addEventListener("change", () => app.edit({ ...copyState(app.state), confidence: read(confidence.value) }));
  const relation = element("select", { id: "relation" }, ...sheet.relations.map((r, i) => element("option", { value: i }, r.label)));
  relation.addEventListener("change", () => app.edit({ ...copyState(app.state), relation: Number(relation.value) }));
  const delta = makeField(app, {
    name: "delta",
    text: (state) => deltaText(state.delta),
    problem: (text) => problemOf(text) || (below(parseRational(text), ONE) ? "" : `“${text.trim()}” is not below 1.`),
    apply: (state, text) => ({ ...copyState(state), delta: parseRational(text) }),
    mode: "text",
  });
  app.updates.push((state) => { confidence.value = exactText(state.confidence); relation.value = state.relation; });
  byId("choices").replaceChildren(
    element("label", {}, "Confidence of margins ", confidence),
    element("label", {}, "Epsilon and attacks for ", relation),
    sheet.law === "gaussian" ? element("div", { class: "labeled" }, element("span", {}, "delta "), delta) : "",
  );
}

function deltaText(delta) {
  const power = exponentOf(delta);
  return delta.n === 1n && same(delta, rational(1n, 10n ** BigInt(Math.max(0, -power)))) ? `1e${power}` : exactText(delta);
}

function buildSettings(app) {
  const { sheet } = app.state;
  const box = byId("settings");
  if (!sheet.settings.length && !sheet.choices.length) { box.replaceChildren(); return; }
  const words = sheet.choices.map((choice) => {
    const select = element("select", { id: `choice-${choice.key}` }, ...choice.values.map((value) => element("option", { value }, value)));
    select.value = sheet.chosen[choice.key];
    select.addEventListener("change", () => { app.edit(withWord(app.state, choice.key, select.value)); byId(`choice-${choice.key}`).focus(); });
    const own = sheet.base.chosen[choice.key], changed = own !== sheet.chosen[choice.key];
    return element("label", {}, `${choice.label} `, select, changed ? element("small", { class: "badge" }, `changed; configuration: ${own}`) : "");
  });
  const fields = sheet.settings.map((setting) => element("div", { class: "labeled", title: setting.help }, element("span", {}, `${setting.label} `), makeField(app, {
    name: setting.label,
    text: (state) => decimalText(state.settings.get(setting.key)),
    problem: (text) => settingProblem(setting, text),
    apply: (state, text) => withSetting(state, setting, parseRational(text)),
    column: "setting",
  })));
  const keep = element("select", { id: "keep" }, element("option", { value: "budgets" }, "keep the budgets"), element("option", { value: "margins" }, "keep the margins"));
  keep.addEventListener("change", () => app.edit({ ...copyState(app.state), keep: keep.value }));
  app.updates.push((state) => { keep.value = state.keep; });
  const helps = [...new Set(sheet.settings.map((setting) => setting.help))];
  box.replaceChildren(element("div", { class: "controls" }, ...words, ...fields, element("label", {}, "When one of these changes ", keep)), element("p", { class: "note" }, helps.join(" ")));
}

// A checkbox for each value of each way to sort the rows; half on is shown as such.
function buildSwitches(app) {
  const { sheet } = app.state;
  byId("switches").replaceChildren(...sheet.facets.filter((facet) => facet.values.length > 1).map((facet) => {
    const position = sheet.facets.indexOf(facet);
    const boxes = facet.values.map((value, i) => {
      const rows = sheet.rows.filter((row) => row.facets[position] === i && !row.derived);
      if (!rows.length) return null;
      const box = element("input", { type: "checkbox", "data-switch": value });
      box.addEventListener("change", () => app.edit(withSwitched(app.state, rows, box.checked)));
      app.updates.push((state) => {
        const on = rows.filter((row) => isOn(state, row)).length;
        box.checked = on === rows.length;
        box.indeterminate = on > 0 && on < rows.length;
      });
      return element("label", { class: "switch" }, box, ` ${value}`);
    });
    return element("fieldset", {}, element("legend", {}, facet.label), ...boxes.filter(Boolean));
  }));
}

const hasTargets = (sheet) => sheet.rows.some((row) => row.target);

function buildRows(app) {
  const { sheet } = app.state, symbol = symbolOf(sheet), first = shippedState(sheet);
  const narrow = matchMedia("(max-width: 62rem)").matches;
  const other = sheet.relations[1], parameter = sheet.law === "gaussian" ? "sigma2" : "scale";
  const names = ["part", `${symbol}, ${sheet.relations[0].label}`, ...(other ? [`${symbol}, ${other.label}`] : []), "margin of error", "exact margin", parameter, ...(hasTargets(sheet) ? ["target"] : []), `configuration: ${first.sheet.symbol}`, "configuration: margin"];
  const bodies = [...new Set(sheet.rows.map((row) => row.section))].map((section, i) => {
    const rows = sheet.rows.filter((row) => row.section === section);
    return buildGroup(app, section, rows, rows.map((row) => buildRow(app, row, names, first)), names.length, narrow && i > 0);
  });
  byId("rows").replaceChildren(element("caption", {}, `Margins count ${sheet.counted}.`), head(...names), ...bodies);
  byId("rows-note").textContent = "A margin is the papers' rule; the exact margin is the smallest whole number that covers the confidence under the noise law itself. "
    + "A budget that follows from a margin is rounded up to six digits, so that the margin is not missed. Arrow keys go up and down a column, Escape takes an edit back.";
}

// Rows under a heading that folds them away and says what they cost together.
function buildGroup(app, section, rows, lines, columns, folded) {
  const cost = element("span"), first = shippedState(app.state.sheet), { symbol } = app.state.sheet;
  const fold = element("button", { type: "button", class: "fold" }, section);
  const set = (open) => {
    fold.setAttribute("aria-expanded", open);
    for (const line of lines) line.hidden = !open;
  };
  fold.addEventListener("click", () => set(fold.getAttribute("aria-expanded") !== "true"));
  set(!folded);
  app.updates.push((state) => {
    const changed = rows.filter((row) => !row.derived && isChanged(state, first, row)).length;
    const measured = rows.some((row) => !row.derived);
    cost.textContent = measured ? ` ${symbol} ${lossText(totalOf(state, rows))}${changed ? `, ${changed} changed` : ""}` : "";
  });
  return element("tbody", {}, element("tr", { class: "group" }, element("th", { scope: "rowgroup", colspan: columns }, fold, cost)), ...lines);
}

function buildRow(app, row, names, first) {
  const { sheet } = app.state, symbol = symbolOf(sheet);
  const badge = element("small", { class: "badge" }), notes = element("small"), bounded = element("output"), exact = element("output"), noise = element("output"), margin = element("output");
  const check = element("input", { type: "checkbox", "aria-label": `Measure ${row.name}` });
  const title = element("th", { scope: "row" }, row.derived ? "" : check, ` ${row.label} `, badge, notes);
  const was = readRow(first, row), before = spent(first, row);
  const base = `${symbol} of ${row.name}`, moe = `margin of error of ${row.name}`;
  const loss = row.derived ? element("output", {}, "0") : makeField(app, {
    name: base, column: "loss",
    text: (state) => budgetText(row, state.budgets.get(row.id)),
    problem: (text) => problemOf(text) + (/^\s*0+\.?0*\s*$/.test(text) ? " To measure nothing, untick the row." : ""),
    apply: (state, text) => withBudget(state, row, parseRational(text)),
  });
  const wanted = row.derived ? margin : makeField(app, {
    name: moe, column: "margin",
    text: (state) => marginText(readRow(state, row)?.margin ?? null),
    problem: problemOf,
    apply: (state, text) => withMargin(state, row, parseRational(text)),
  });
  check.addEventListener("change", () => app.edit(withSwitched(app.state, [row], check.checked)));
  const values = [loss, ...(sheet.relations[1] ? [bounded] : []), wanted, exact, noise, ...(hasTargets(sheet) ? [row.target ? decimalText(read(row.target)) : ""] : []), budgetText(row, before), was ? marginText(was.margin) : "not measured"];
  const line = element("tr", { "data-row": row.id }, title, ...values.map((value, i) => cell(names[i + 1], value)));
  const inputs = line.querySelectorAll("input[type=text]");
  app.updates.push((state) => {
    const now = readRow(state, row), on = isOn(state, row), changed = !row.derived && isChanged(state, first, row);
    check.checked = on;
    inputs.forEach((input) => { input.disabled = !on; });
    if (sheet.relations[1]) bounded.textContent = budgetText(row, times(spent(state, row), read(sheet.relations[1].factor))).replace(/^0\.0+$/, "0");
    exact.textContent = now && now.exact !== null ? now.exact : "";
    noise.textContent = now ? shortText(now.parameter) : "";
    margin.textContent = now ? marginText(now.margin) : "";
    notes.textContent = now ? extraText(now) : "";
    line.classList.toggle("off", !on);
    line.classList.toggle("changed", changed);
    badge.textContent = changed ? (on ? "changed" : "switched off") : "";
    line.title = row.derived ? "" : `${symbol} exactly ${exactText(state.budgets.get(row.id))}`;
  });
  return line;
}

function extraText(now) {
  const parts = now.extras.map((extra) => `${extra.label} ±${marginText(extra.margin)}`);
  if (now.published !== null) parts.push(`totals published from ${now.published}`);
  return parts.join("; ");
}

// The paper's table from its targets, at the settings of the page.
function buildPaper(app) {
  const { paper } = app.state.sheet;
  byId("paper-section").hidden = !paper;
  if (!paper) { byId("paper").replaceChildren(); return; }
  byId("paper-title").textContent = paper.title;
  const cells = [];
  const lines = paper.lines.map((line) => {
    const made = paper.columns.map(() => element("td"));
    cells.push(made);
    return element("tr", {}, ...made);
  });
  byId("paper").replaceChildren(element("caption", {}, "Targets, and the losses that they ask for"), head(...paper.columns), element("tbody", {}, ...lines));
  app.updates.push((state) => paper.lines.forEach((line, i) => paperCells(state, line).forEach((text, j) => { cells[i][j].textContent = text; })));
}

function paperCells(state, line) {
  const { sheet } = state, level = read(sheet.confidence);
  const lead = line.cells.map((text) => (text.startsWith("=") ? decimalText(state.settings.get(text.slice(1))) : text));
  const losses = line.rows.map((id) => roundTo(exactLossForMargin(sheet.law, boundOf(state, rowOf(sheet, id)), read(line.target), level), line.places));
  const doubled = losses.map((loss) => times(loss, read(sheet.relations[1].factor)));
  const oneRow = losses.length === 1;
  return [...lead, decimalText(read(line.target)), ...losses.map((loss) => fixedText(loss, line.places)),
    ...doubled.map((loss) => (oneRow ? decimalText(loss) : fixedText(loss, line.places)))];
}

const LEVELS = [0.01, 0.05, 0.1];

function refreshMeaning(app) {
  const { state } = app, { sheet } = state, gaussian = sheet.law === "gaussian";
  const first = shippedState(sheet), factor = factorOf(state);
  const loss = toNumber(times(totalOf(state), factor)), before = toNumber(times(totalOf(first), factor));
  const changed = loss !== before || sheet !== first.sheet;
  byId("epsilon-figure").hidden = !gaussian;
  byId("gaussian-key").hidden = !gaussian;
  document.body.classList.toggle("edited", changed);
  if (gaussian) epsilonChart(byId("epsilon"), loss, before, changed && first.sheet.law === "gaussian");
  powerChart(byId("power"), sheet, loss, first.sheet, before, changed);
  oddsChart(byId("odds"), gaussian, loss, before, changed && first.sheet.law === sheet.law);
  const powers = powerCurve(sheet, loss, true, LEVELS), was = changed ? powerCurve(first.sheet, before, true, LEVELS) : powers;
  const percent = (value) => `${roundedUp(Math.min(100, 100 * value), 2)}%`;
  byId("powers").replaceChildren(
    element("caption", {}, `Chance to tell the true record of one ${sheet.unit} from another possible one, everything else being known to the attacker.`),
    head("false alarms", "found out, at most", ...(gaussian ? ["best test on one Gaussian answer"] : []), "configuration, at most"),
    element("tbody", {}, ...LEVELS.map((alpha, i) => element("tr", {}, element("th", { scope: "row" }, `${Math.round(100 * alpha)}%`),
      cell("found out, at most", percent(powers[i][1])), ...(gaussian ? [cell("best test on one Gaussian answer", percent(gaussianPower(loss, alpha)))] : []),
      cell("configuration, at most", percent(was[i][1]))))),
  );
  const relation = sheet.relations[state.relation];
  byId("words").textContent = `${sheet.symbol} ${lossText(times(totalOf(state), factor))} (${relation.label}: ${relation.text}). An attacker who knows everything but one record, `
    + `and accepts 5 false alarms in 100, finds it out at most ${percent(powers[1][1]).slice(0, -1)} times in 100 from all tables together; guessing alone finds 5. This is a bound for the whole release; one attribute or area shows less.`;
}
