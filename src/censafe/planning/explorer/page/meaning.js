// The composition of the noise, worked out between edits and shown when it is there.

const SLICE_MS = 8, PAUSE_MS = 200;

// Answers that a question's change moves, by row: of several possible changes, those of the one whose loss is the largest at the budgets of the state.
function movedBy(state, question) {
  const spentOn = (id) => toNumber(spent(state, rowOf(state.sheet, id)));
  const losses = question.alternatives.map((moved) => moved.reduce((total, [id, cells, step]) => total + spentOn(id) * cells * step * step, 0));
  return question.alternatives[losses.indexOf(Math.max(...losses))];
}

// Laws of the answers that a question's rows let a record move.
function lawsOf(state, question) {
  const gaussian = (row, share) => toNumber(lawParameter("gaussian", boundOf(state, row), times(spent(state, row), share)));
  if (question.alternatives.length) {
    return movedBy(state, question).map(([id, cells, step]) => ({ row: rowOf(state.sheet, id), cells, step }))
      .filter(({ row }) => spent(state, row).n !== 0n)
      .map(({ row, cells, step }) => ({ sigma2: gaussian(row, ONE), cells, step }));
  }
  const rows = question.rows.map((id) => rowOf(state.sheet, id)).filter((row) => spent(state, row).n !== 0n);
  return rows.flatMap((row) => row.moved.map((answers) => ({
    sigma2: gaussian(row, shareOf(state, answers.share)),
    cells: Number(boundOf(state, { bound: answers.cells }).n),
    step: Number(boundOf(state, { bound: answers.step }).n),
  })));
}

function lossOfQuestion(state, question) {
  if (!question.alternatives.length) return sum(question.rows.map((id) => spent(state, rowOf(state.sheet, id))));
  return sum(movedBy(state, question).map(([id, cells, step]) => times(spent(state, rowOf(state.sheet, id)), rational(BigInt(cells * step * step), 2n))));
}

function* readingOf(laws, rho, L, delta) {
  const bracket = yield* composedEpsilon(laws, delta);
  return {
    ...bracket,
    spareTight: yield* spareVariance(laws, delta, tightEpsilon(rho, L)),
    spareSlide: yield* spareVariance(laws, delta, slideEpsilon(rho, L)),
  };
}

// Finished readings by what they depend on, so that an edit that is taken back is shown at once.
const readings = new Map();
const keyOf = (laws, delta) => JSON.stringify([gatherLaws(laws), delta]);

const COMPOSED = ["rho", "epsilon, as the Bureau states it", "epsilon, tight", "exact, at least", "exact, at most", "spared at the tight epsilon", "spared at the Bureau's", "configuration: exact, at most"];

function buildComposed(app) {
  const { questions } = app.state.sheet;
  byId("composed-part").hidden = !questions.length;
  app.composed = questions.map((question) => {
    const cells = COMPOSED.map((name) => cell(name));
    return { question, cells, line: element("tr", { "data-question": question.name }, element("th", { scope: "row" }, question.name), ...cells) };
  });
  byId("composed").replaceChildren(
    element("caption", {}, ...questions.slice(0, 1).map(() => questions[0].alternatives.length ? "Of the changes of one person, the one that costs the most at these budgets." : `Under the relation of the budgets: ${app.state.sheet.relations[0].label}.`)),
    head("question", ...COMPOSED), element("tbody", {}, ...app.composed.map(({ line }) => line)),
  );
}

// What is known at once is shown at once; the rest is worked out after a pause, a few milliseconds at a time.
function refreshComposed(app) {
  clearTimeout(app.composing);
  if (!app.state.sheet.questions.length) return;
  const { state } = app, first = shippedState(state.sheet), delta = toNumber(state.delta), L = deltaLog(state), jobs = [];
  const wanted = (laws, rho, show) => {
    if (!canCompose(laws)) show(laws.length ? "too wide" : "not measured");
    else if (readings.has(keyOf(laws, delta))) show(readings.get(keyOf(laws, delta)));
    else {
      show("…");
      jobs.push({ key: keyOf(laws, delta), work: () => readingOf(laws, rho, L, delta), show });
    }
  };
  for (const { question, cells } of app.composed) {
    const loss = lossOfQuestion(state, question), rho = toNumber(loss), was = toNumber(lossOfQuestion(first, question));
    cells[0].textContent = lossText(loss);
    cells[1].textContent = roundedUp(slideEpsilon(rho, L), 4);
    cells[2].textContent = roundedUp(tightEpsilon(rho, L), 4);
    wanted(lawsOf(state, question), rho, (found) => showReading(cells, found));
    wanted(lawsOf(first, question), was, (found) => { cells[7].textContent = typeof found === "string" ? found : roundedUp(found.upper, 4); });
  }
  byId("composed").setAttribute("aria-busy", jobs.length > 0);
  byId("composed-state").textContent = jobs.length ? "Working it out for the budgets as they stand …" : "For the budgets as they stand.";
  if (jobs.length) app.composing = setTimeout(() => workOff(app, jobs), PAUSE_MS);
}

function showReading(cells, found) {
  const percent = (share) => `${roundedDown(100 * share, 1)}%`;
  const texts = typeof found === "string" ? Array(4).fill(found) : [roundedDown(found.lower, 4), roundedUp(found.upper, 4), percent(found.spareTight), percent(found.spareSlide)];
  texts.forEach((text, i) => { cells[3 + i].textContent = text; });
}

function workOff(app, jobs) {
  if (!jobs.length) {
    byId("composed").setAttribute("aria-busy", false);
    byId("composed-state").textContent = "For the budgets as they stand.";
    return;
  }
  const job = jobs[0], until = performance.now() + SLICE_MS;
  if (readings.size > 500) readings.clear();
  if (!readings.has(job.key)) {
    job.running = job.running || job.work();
    let step = job.running.next();
    while (!step.done && performance.now() < until) step = job.running.next();
    if (step.done) readings.set(job.key, step.value);
  }
  if (readings.has(job.key)) {
    job.show(readings.get(job.key));
    jobs.shift();
  }
  app.composing = setTimeout(() => workOff(app, jobs), 0);
}
