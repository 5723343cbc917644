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

// Our TOML: the configuration's own text, with other values in the lines of what is edited.
function tomlConfig(state) {
  const values = new Map(), dropped = new Set();
  const put = ([section, key], text) => values.set(`${section}\n${key}`, text);
  const first = freshState(state.sheet);
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
  const notes = state.sheet.shares ? putShares(state, first, put) : [];
  if (stateText(state) !== stateText(first)) put(["", "title"], `"${state.sheet.title.replace(/"/g, "'")} (edited)"`);
  return { text: patchToml(state.sheet.toml, values, dropped), notes };
}

function patchToml(text, values, dropped) {
  let section = "";
  const lines = [];
  for (const line of text.split("\n")) {
    const head = /^\[([^[\]]+)\]\s*$/.exec(line);
    if (head) section = head[1];
    else if (/^\[\[/.test(line)) section = line;
    const pair = /^("(?:[^"]*)"|[\w-]+)\s*=/.exec(line);
    const key = pair && `${section}\n${pair[1].replace(/"/g, "")}`;
    if (pair && dropped.has(key)) continue;
    lines.push(pair && values.has(key) ? `${pair[1]} = ${values.get(key)}` : line);
  }
  return lines.join("\n");
}

// Totals and shares of a histogram, exactly; levels that a run leaves out keep their loss.
function putShares(state, first, put) {
  const notes = [], { losses, outside } = state.sheet.shares;
  for (const [histogram, place] of Object.entries(losses)) {
    const rows = state.sheet.rows.filter((row) => row.shares[0] === histogram);
    if (!rows.some((row) => isChanged(state, first, row))) continue;
    const loss = add(totalOf(state, rows), sum(Object.values(outside[histogram]).map(read)));
    if (loss.n === 0n) {
      notes.push(`Nothing of ${histogram} is measured: take it out of “measure” in the file.`);
      continue;
    }
    put(place, `"${decimalText(loss)}"`);
    for (const [level, kept] of Object.entries(outside[histogram])) put([`level_shares.${histogram}`, level], `"${exactText(over(read(kept), loss))}"`);
    for (const level of new Set(rows.map((row) => row.shares[1]))) {
      const queries = rows.filter((row) => row.shares[1] === level), cost = totalOf(state, queries);
      put([`level_shares.${histogram}`, level], `"${exactText(over(cost, loss))}"`);
      if (cost.n === 0n) notes.push(`${histogram}, ${level} has no budget; a level without budget cannot be estimated.`);
      else for (const row of queries) put([`query_shares.${histogram}.${level}`, row.shares[2]], `"${exactText(over(spent(state, row), cost))}"`);
    }
  }
  return notes;
}

function csvRows(state) {
  const sheet = state.sheet, first = freshState(sheet), symbol = sheet.symbol;
  const parameter = sheet.law === "gaussian" ? "sigma2" : "scale";
  const lines = [["id", "name", "measured", `${symbol}_exact`, ...sheet.relations.map((r) => `${symbol}_${r.label}`),
    parameter, "confidence", "moe", "moe_exact", `${symbol}_configuration`, "moe_configuration", "changed"]];
  for (const row of sheet.rows) {
    const now = readRow(state, row), was = readRow(first, row), loss = spent(state, row);
    lines.push([row.id, row.name, isOn(state, row), exactText(loss), ...sheet.relations.map((r) => decimalText(times(loss, read(r.factor)))),
      now ? exactText(now.parameter) : "", decimalText(state.confidence), now?.margin ?? "", now?.exact ?? "",
      exactText(spent(first, row)), was?.margin ?? "", !row.derived && isChanged(state, first, row)]);
  }
  const quoted = (value) => (/[",\n]/.test(`${value}`) ? `"${`${value}`.replace(/"/g, '""')}"` : `${value}`);
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
