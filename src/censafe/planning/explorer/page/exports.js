// Files that are saved from the page: configurations, rows, drawings.

function save(name, type, content) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

// A plain decimal; where there is none, 15 digits rounded down, so that no more is spent.
function decimalToken(value, notes, name) {
  const text = decimalText(value);
  if (!text.includes("/")) return text;
  notes.push(name);
  return decimalText(roundDigits(value, 15, false));
}

// The Bureau's config.json; numbers are written as they are, without passing through a float.
function jsonConfig(state) {
  const root = structuredClone(state.sheet.json), notes = [];
  const put = (path, value, name) => {
    const holder = path.slice(0, -1).reduce((at, key) => at[key], root);
    holder[path.at(-1)] = `=${decimalToken(value, notes, name)}`;
  };
  for (const setting of state.sheet.settings) put(setting.json, state.settings.get(setting.key), setting.label);
  for (const row of measuredRows(state.sheet)) put(row.json, spent(state, row), row.name);
  const text = JSON.stringify(root, null, 2).replace(/"=([^"]+)"/g, (_, number) => decimalText(parseRational(number)));
  return { text: `${text}\n`, notes };
}

// Our TOML: the configuration's own text, with other values in the lines of what is edited; null where no file can say it.
function tomlConfig(state) {
  if (obstaclesOf(state).length) return null;
  const values = new Map(), dropped = new Set();
  const put = ([section, key], text) => values.set(`${section}\n${key}`, text);
  const first = shippedState(state.sheet);
  for (const { key } of state.sheet.choices) {
    if (state.sheet.chosen[key] !== first.sheet.chosen[key]) put(["", key], `"${state.sheet.chosen[key]}"`);
  }
  for (const setting of state.sheet.settings) {
    const value = state.settings.get(setting.key);
    if (!same(value, first.settings.get(setting.key))) put(setting.toml, setting.kind === "integer" ? exactText(value) : `"${decimalText(value)}"`);
  }
  for (const row of measuredRows(state.sheet)) {
    if (!row.toml.length || !isChanged(state, first, row)) continue;
    put(row.toml, `"${decimalText(spent(state, row))}"`);
    const [section, key] = row.toml;
    for (const noun of ["moe_target", "printed_decimals"]) {
      dropped.add(`${section.replace(/^budget(\.t\d)?/, noun)}\n${key}`);
    }
  }
  if (stateText(state) !== stateText(first)) put(["", "title"], `"${state.sheet.title.replace(/"/g, "'")} (edited)"`);
  if (!state.sheet.shares) return { text: patchToml(state.sheet.toml, values, dropped), notes: [] };
  const { text, gone, notes } = withoutLevels(state);
  putShares(state, first, gone, put);
  return { text: patchToml(text, values, dropped), notes };
}

const SECTION = /^\[([^[\]]+)\]\s*$/, TABLES = /^\[\[([^[\]]+)\]\]\s*$/;

function patchToml(text, values, dropped) {
  let section = "";
  const lines = [];
  for (const line of text.split("\n")) {
    const head = SECTION.exec(line);
    if (head) section = head[1];
    else if (TABLES.test(line)) section = line;
    const pair = /^("(?:[^"]*)"|[\w-]+)\s*=/.exec(line);
    const key = pair && `${section}\n${pair[1].replace(/"/g, "")}`;
    if (pair && dropped.has(key)) continue;
    lines.push(pair && values.has(key) ? `${pair[1]} = ${values.get(key)}` : line);
  }
  return lines.join("\n");
}

// The text without levels at which nothing is measured and histograms of which nothing is, and what that changes besides.
function withoutLevels(state) {
  const { sheet } = state, { order, root, exact } = sheet.shares;
  const measured = (position, word) => sheet.rows.some((row) => row.shares[position] === word && spent(state, row).n !== 0n);
  const run = [...new Set(sheet.rows.map((row) => row.shares[1]))];
  const gone = new Set(run.filter((level) => !measured(1, level))), notes = [];
  const kept = Object.keys(sheet.shares.losses), on = kept.filter((histogram) => measured(0, histogram));
  let text = sheet.toml;
  if (on.length < kept.length) text = text.replace(/^measure = .*$/m, `measure = [${on.map((name) => `"${name}"`).join(", ")}]`);
  if (!gone.size) return { text, gone, notes };
  const left = order.filter((level) => !gone.has(level)), start = run.find((level) => !gone.has(level));
  if (gone.has(root)) text = text.replace(/^root = .*$/m, `root = "${start}"`);
  const lowest = {};
  for (const [histogram, level] of Object.entries(exact)) {
    const inside = left.filter((each) => order.indexOf(each) <= order.indexOf(level) && order.indexOf(each) >= order.indexOf(start));
    lowest[histogram] = inside.at(-1) || "";
    if (gone.has(level)) notes.push(`${histogram}: totals are published exactly ${lowest[histogram] ? `down to ${lowest[histogram]}` : "nowhere"}, no longer down to ${level}.`);
  }
  notes.unshift(`The geography of the file has no level ${[...gone].join(", ")}.`);
  return { text: cutLevels(text, gone, lowest), gone, notes };
}

// Lines and sections that name a level that is gone.
function cutLevels(text, gone, lowest) {
  const blocks = [[]];
  for (const line of text.split("\n")) {
    if (/^\[/.test(line)) blocks.push([]);
    blocks.at(-1).push(line);
  }
  const named = (list) => [...list.matchAll(/"([^"]*)"/g)].map((found) => found[1]).filter((name) => !gone.has(name));
  return blocks.map((block) => {
    const section = (SECTION.exec(block[0]) || [])[1] || "", [noun, histogram, level] = section.split(".");
    if (noun === "query_shares" && gone.has(level)) return [];
    if (noun === "level_shares") return block.filter((line) => !gone.has((/^"?([\w-]+)"?\s*=/.exec(line) || [])[1]));
    if (noun === "histograms") return exactTotals(block, lowest[histogram]);
    if (TABLES.test(block[0])) {
      const at = block.findIndex((line) => /^levels = \[/.test(line)), names = at < 0 ? [] : named(block[at]);
      if (at < 0) return block;
      const list = `levels = [${names.map((name) => `"${name}"`).join(", ")}]`;
      return names.length ? block.map((line, i) => (i === at ? list : line)) : [];
    }
    return section ? block : block.filter((line) => !gone.has((/^\s*\{ name = "([^"]*)"/.exec(line) || [])[1]));
  }).flat().join("\n");
}

function exactTotals(block, level) {
  if (level === undefined) return block;
  return block.filter((line) => level || !/^exact_totals = /.test(line)).map((line) => line.replace(/^exact_totals = .*$/, `exact_totals = "${level}"`));
}

// Totals and shares of a histogram, exactly; levels that a run leaves out keep their loss.
function putShares(state, first, gone, put) {
  const { losses, outside } = state.sheet.shares;
  for (const [histogram, place] of Object.entries(losses)) {
    const rows = state.sheet.rows.filter((row) => row.shares[0] === histogram && !gone.has(row.shares[1]));
    const from = totalOf(state, rows).n === 0n ? first : state;  // what is not measured stays as it was
    if (from === state ? !rows.some((row) => isChanged(state, first, row)) && !gone.size : !gone.size) continue;
    const loss = add(totalOf(from, rows), sum(Object.values(outside[histogram]).map(read)));
    if (from === state) put(place, `"${decimalText(loss)}"`);
    for (const [level, kept] of Object.entries(outside[histogram])) put([`level_shares.${histogram}`, level], `"${exactText(over(read(kept), loss))}"`);
    for (const level of new Set(rows.map((row) => row.shares[1]))) {
      const queries = rows.filter((row) => row.shares[1] === level), cost = totalOf(from, queries);
      put([`level_shares.${histogram}`, level], `"${exactText(over(cost, loss))}"`);
      for (const row of queries) put([`query_shares.${histogram}.${level}`, row.shares[2]], `"${exactText(over(spent(from, row), cost))}"`);
    }
  }
}

function csvRows(state) {
  const sheet = state.sheet, first = shippedState(sheet), symbol = sheet.symbol;
  const parameter = sheet.law === "gaussian" ? "sigma2" : "scale";
  const lines = [["id", "name", "measured", `${symbol}_exact`, ...sheet.relations.map((r) => `${symbol}_${r.label}`),
    parameter, "confidence", "moe", "moe_exact", `${symbol}_configuration`, "moe_configuration", "changed"]];
  for (const row of sheet.rows) {
    const now = readRow(state, row), was = readRow(first, row), loss = spent(state, row);
    lines.push([row.id, row.name, isOn(state, row), exactText(loss), ...sheet.relations.map((r) => decimalText(times(loss, read(r.factor)))),
      now ? exactText(now.parameter) : "", decimalText(state.confidence), now?.margin ?? "", now?.exact ?? "",
      exactText(spent(first, row)), was?.margin ?? "", !row.derived && isChanged(state, first, row)]);
  }
  // as csv_cell of model/spreadsheets: text that a spreadsheet would take for a formula gets an apostrophe
  const number = /^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/, formula = /^[=+@\t\r\n\uff1d\uff0b\uff0d\uff20-]/;
  const plain = (text) => (formula.test(text) && !number.test(text) ? `'${text}` : text);
  const quoted = (value) => {
    const text = plain(`${value}`);
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
  };
  return `${lines.map((line) => line.map(quoted).join(",")).join("\n")}\n`;
}

function svgText(svg) {
  const copy = svg.cloneNode(true);
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", W);
  copy.setAttribute("height", H);
  return new XMLSerializer().serializeToString(copy);
}

function savePng(svg, name) {
  const image = new Image();
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = 3 * W;
    canvas.height = 3 * H;
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    canvas.toBlob((blob) => save(name, "image/png", blob));
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
}
