// One application object: the state, the edits that can be taken back, and the link.

const sheets = JSON.parse(byId("sheets").textContent).flatMap(unfold);

const app = {
  state: null, fields: [], updates: [], undone: [], done: [], kept: new Map(),

  // Show a state of the same configuration without making it an edit.
  show(state) {
    const start = performance.now();
    app.state = state;
    for (const update of app.updates) update(state);
    for (const field of app.fields) field.refresh();
    refreshMeaning(app);
    refreshComposed(app);
    byId("obstacles").textContent = obstaclesOf(state).join(" ");
    byId("undo").disabled = !app.done.length;
    byId("redo").disabled = !app.undone.length;
    document.documentElement.dataset.updateMs = (performance.now() - start).toFixed(2);
  },

  // Build the page for a configuration; nothing of another one is left.
  open(state) {
    app.state = state;
    app.fields = [];
    app.updates = [];
    byId("sheet").value = state.sheet.base.key;
    for (const build of [buildChoices, buildTotals, buildSettings, buildSwitches, buildRows, buildComposed, buildPaper]) build(app);
    byId("save-json").hidden = !state.sheet.json;
    byId("save-status").textContent = "";
    byId("save-note").textContent = saveNote(state.sheet);
    app.show(state);
  },

  restore(text) {
    const found = readState(sheets, text);
    if (!found) return false;
    if (app.state && found.state.sheet === app.state.sheet) {
      for (const field of app.fields) field.clear();
      app.show(found.state);
    } else app.open(found.state);
    app.address();
    if (found.ignored) say(`${plural(found.ignored, "part")} of the link could not be read and stayed as in the configuration.`);
    return true;
  },

  // Make what is shown an edit after ``before``.
  commit(before) {
    const text = stateText(before);
    if (text === stateText(app.state)) return;
    app.done.push(text);
    app.undone = [];
    app.address();
    byId("undo").disabled = false;
    byId("redo").disabled = true;
    const first = shippedState(app.state.sheet);
    const count = measuredRows(app.state.sheet).filter((row) => isChanged(app.state, first, row)).length;
    say(`Total ${app.state.sheet.symbol} ${lossText(totalOf(app.state))}; ${plural(count, "budget")} changed.`);
  },

  edit(next) {
    const before = app.state;
    if (next.sheet === before.sheet) app.show(next); else app.open(next);
    app.commit(before);
  },

  address() {
    const text = stateText(app.state);
    app.kept.set(app.state.sheet.base.key, text);
    history.replaceState(null, "", `#${text}`);
  },

  move(from, to, word) {
    if (!from.length) return;
    to.push(stateText(app.state));
    app.restore(from.pop());
    byId("undo").disabled = !app.done.length;
    byId("redo").disabled = !app.undone.length;
    say(`${word}. Total ${app.state.sheet.symbol} ${lossText(totalOf(app.state))}.`);
  },
};

const say = (text) => { byId("status").textContent = text; };

function saveNote(sheet) {
  const toml = `config.toml keeps every number exactly: censafe plan ${sheet.product} config.toml`;
  if (!sheet.json) return `${toml}. The configuration of ${sheet.product} is TOML.`;
  const place = sheet.product === "phsafe" ? "" : " It belongs into the folder of the parameter files (or say --set universe=2020).";
  return `config.json has the Bureau's keys; a number without a finite decimal is rounded down in it.${place} ${toml}`;
}

// Beside the buttons, where the eyes are, and announced there.
const tellSave = (...parts) => { byId("save-status").textContent = parts.join(" "); };

function saveJson() {
  const obstacles = obstaclesOf(app.state);
  if (obstacles.length) { tellSave("Nothing was saved.", ...obstacles); return; }
  const { text, notes } = jsonConfig(app.state);
  save("config.json", "application/json", text);
  tellSave("Saved config.json.", ...(notes.length ? [`Rounded down to 15 digits: ${notes.join("; ")}.`] : []));
}

function saveToml() {
  const found = tomlConfig(app.state);
  if (!found) { tellSave("Nothing was saved.", ...obstaclesOf(app.state)); return; }
  save("config.toml", "application/toml", found.text);
  tellSave("Saved config.toml.", ...found.notes);
}

async function copyLink() {
  app.address();
  try {
    await navigator.clipboard.writeText(location.href);
    say("The link is copied; it holds every edit.");
  } catch {
    say("The address of this page holds every edit; copy it from the address bar.");
  }
}

function openSheet(key) {
  const before = stateText(app.state);
  app.done.push(before);
  app.undone = [];
  app.restore(app.kept.get(key) || key);
  say(`${app.state.sheet.title}. Total ${app.state.sheet.symbol} ${lossText(totalOf(app.state))}.`);
}

function reset() {
  const before = stateText(app.state), fresh = app.state.sheet.base.key;
  for (const field of app.fields) field.clear();
  if (before !== fresh) {
    app.done.push(before);
    app.undone = [];
  }
  app.restore(fresh);
  say("All edits of this configuration are taken back; Undo brings them again.");
}

function start() {
  const groups = new Map();
  for (const sheet of sheets.filter((each) => each === each.base)) {
    if (!groups.has(sheet.product)) groups.set(sheet.product, element("optgroup", { label: sheet.product }));
    groups.get(sheet.product).append(element("option", { value: sheet.key }, `${sheet.key}: ${sheet.title}`));
  }
  byId("sheet").append(...groups.values());
  byId("sheet").addEventListener("change", () => openSheet(byId("sheet").value));
  byId("undo").addEventListener("click", () => app.move(app.done, app.undone, "Undone"));
  byId("redo").addEventListener("click", () => app.move(app.undone, app.done, "Redone"));
  byId("reset").addEventListener("click", reset);
  byId("link").addEventListener("click", copyLink);
  byId("save-json").addEventListener("click", saveJson);
  byId("save-toml").addEventListener("click", saveToml);
  byId("save-csv").addEventListener("click", () => { save(`${app.state.sheet.key}.csv`, "text/csv", csvRows(app.state)); tellSave("Saved the rows as CSV."); });
  for (const button of document.querySelectorAll("[data-svg]")) button.addEventListener("click", () => save(`${button.dataset.svg}.svg`, "image/svg+xml", svgText(byId(button.dataset.svg))));
  for (const button of document.querySelectorAll("[data-png]")) button.addEventListener("click", () => savePng(byId(button.dataset.png), `${button.dataset.png}.png`));
  document.addEventListener("keydown", (event) => {
    const typing = document.activeElement instanceof HTMLInputElement && document.activeElement.type === "text";
    if (typing || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
    event.preventDefault();
    byId(event.shiftKey ? "redo" : "undo").click();
  });
  window.addEventListener("hashchange", openLink);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => app.show(app.state));
  if (!app.restore(location.hash.slice(1))) {
    app.restore(sheets[0].key);
    if (location.hash.length > 1) say("The link names no configuration of this page; the first one is shown.");
  }
}

// A link that was pasted while the page is open; anchors within the page are none.
function openLink() {
  const text = location.hash.slice(1), before = stateText(app.state);
  if (document.getElementById(text)) { app.address(); return; }
  if (text === before || !readState(sheets, text)) return;
  app.done.push(before);
  app.undone = [];
  app.restore(text);
}

start();
