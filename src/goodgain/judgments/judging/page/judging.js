(() => {
  const STORE = `goodgain-judging-${data.key}`;
  /** The most characters of a text to show at once. */
  const LONG = matchMedia("(max-width: 44rem)").matches ? 700 : 1500;
  const COLUMNS = ["query_id", "doc_id", "judge", "grade", "cannot_judge", "note", "time"];
  /** Pairs of query_id and doc_id as the file of grades has them. */
  const ids = JSON.parse(data.ids);
  const placeOf = new Map(ids.map((pair, k) => [JSON.stringify(pair), k]));
  const values = data.grades.map(([grade]) => grade);

  /** The grades of everybody who judged in this browser: name -> document -> {grade, note, time}. A grade of null: cannot judge. */
  let answers = {};
  let judge = "";
  let order = []; // the documents in the order of this judge
  let place = 0; // in the order
  let isKept = true; // whether the browser keeps the grades
  let pointer = ""; // where the mouse was last

  // ---- what the browser keeps

  function read() {
    try {
      const kept = JSON.parse(localStorage.getItem(STORE) || "{}");
      answers = kept.answers || {};
      return kept.judge || "";
    } catch {
      return "";
    }
  }

  function keep() {
    try {
      localStorage.setItem(STORE, JSON.stringify({ judge, answers }));
      isKept = true;
      say("");
    } catch {
      isKept = false;
      say("This browser keeps no grades. Press “Save grades” before you close the page.", true);
    }
  }

  const mine = () => (answers[judge] ||= {});
  const isGraded = (k) => mine()[k] !== undefined && mine()[k].grade !== undefined;
  const graded = () => order.filter(isGraded).length;

  /** Tell how many documents have a grade, and how many of them got "cannot judge". */
  function tellJudged(own, total = "") {
    const grades = Object.values(own).map(({ grade }) => grade).filter((grade) => grade !== undefined);
    const unknown = grades.filter((grade) => grade === null).length;
    return `${number.format(grades.length)}${total} judged${unknown ? `, ${number.format(unknown)} of them “cannot judge”` : ""}`;
  }

  /** Tell how many questions are complete, and which are judged in part. */
  function tellQuestions() {
    const judged = data.questions.map(() => 0), missing = data.questions.map(() => 0);
    data.documents.forEach(([question], k) => (isGraded(k) ? judged : missing)[question]++);
    const complete = missing.filter((amount) => !amount).length;
    const parts = [...missing.keys()].filter((question) => judged[question] && missing[question]).map((question) => question + 1);
    const told = `Complete questions: ${number.format(complete)} of ${number.format(data.questions.length)}.`;
    if (!parts.length) return told;
    const several = parts.length > 5 ? `${number.format(parts.length)} questions` : `Questions ${parts.join(", ")}`;
    return `${told} ${parts.length === 1 ? `Question ${parts[0]} is` : `${several} are`} judged in part.`;
  }

  function say(text, isBad = false) {
    at("said").textContent = text;
    at("said").classList.toggle("bad", isBad);
  }

  // ---- the order: questions as in the sheet, documents at random, always the same for one judge

  function makeRandom(text) {
    let state = 2166136261;
    for (const sign of text) state = Math.imul(state ^ sign.codePointAt(0), 16777619);
    return () => {
      state = (state + 0x6d2b79f5) | 0;
      let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
      mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
      return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
    };
  }

  function makeOrder() {
    const ofQuestions = data.questions.map(() => []);
    data.documents.forEach(([question], k) => ofQuestions[question].push(k));
    order = ofQuestions.flatMap((documents, question) => {
      const random = makeRandom(`${data.seed}\n${judge}\n${question}`);
      for (let last = documents.length - 1; last > 0; last--) {
        const other = Math.floor(random() * (last + 1));
        [documents[last], documents[other]] = [documents[other], documents[last]];
      }
      return documents;
    });
  }

  // ---- the words of the question

  const SMALL = new Set("a an and are as at be by can did do does for from had has have how if in into is it its of on or that the their this to was were what when where which who whom whose why will with".split(" "));
  const segmenter = Intl.Segmenter ? new Intl.Segmenter(undefined, { granularity: "word" }) : null;

  function divide(text) {
    if (segmenter) return [...segmenter.segment(text)].map((part) => [part.segment, part.isWordLike]);
    return (text.match(/[\p{L}\p{N}]+|[^\p{L}\p{N}]+/gu) || []).map((part) => [part, /[\p{L}\p{N}]/u.test(part)]);
  }

  /** A word without accents, case and the ending of a plural. */
  const reduce = (word) => word.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/(?<=\p{L}{3})(?:es|s)$/u, "");
  const listWords = (text) => new Set(divide(text).filter(([part, isWord]) => isWord && !SMALL.has(part.toLowerCase())).map(([part]) => reduce(part)));

  function mark(text, words) {
    const parts = [];
    let plain = "";
    for (const [part, isWord] of divide(text)) {
      if (isWord && words.has(reduce(part))) {
        parts.push(plain, make("mark", {}, part));
        plain = "";
      } else plain += part;
    }
    return [...parts, plain];
  }

  // ---- the three screens

  function show(name) {
    for (const id of ["start", "judging", "end"]) at(id).hidden = id !== name;
    at("save").hidden = at("other").hidden = name === "start";
    at("help").hidden = name !== "judging";
    at("save").classList.toggle("main", name === "end");
    at("load-label").textContent = name === "start" ? "Load grades that you saved elsewhere" : "Load grades";
    window.scrollTo(0, 0);
  }

  /** Say what the browser keeps of the person whose name is in the field, or else of the person before. */
  function drawStart(before = "") {
    const name = at("judge").value.trim();
    const own = (Object.hasOwn(answers, name) && answers[name]) || {};
    const isKnown = Object.values(own).some(({ grade }) => grade !== undefined);
    const where = isKept ? "saved in this browser" : "in this page until you close it";
    if (isKnown) at("kept").textContent = `The grades of ${name} are ${where}: ${tellJudged(own, ` of ${count(data.documents.length, "document", "documents")}`)}.`;
    else at("kept").textContent = before && `The grades of ${before} stay ${where}, under this name.`;
    at("go").textContent = isKnown ? "Go on" : "Start";
  }

  function drawDocument(focus) {
    const k = order[place];
    const [question, title, address, lines] = data.documents[k];
    const [asked, description] = data.questions[question];
    const isNew = place === 0 || data.documents[order[place - 1]][0] !== question;
    const first = order.findIndex((other) => data.documents[other][0] === question);
    const size = data.documents.filter(([other]) => other === question).length;
    const inQuestion = `question ${question + 1} of ${data.questions.length} (document ${number.format(place - first + 1)} of ${number.format(size)})`;
    at("progress").textContent = `Document ${number.format(place + 1)} of ${number.format(order.length)}, ${inQuestion}. ${tellJudged(mine())}.`;
    at("bar").value = graded() / order.length;
    at("new").hidden = !isNew;
    at("question").textContent = asked;
    at("description").textContent = description || "";
    at("description").hidden = !description;
    const words = listWords(asked);
    at("title").replaceChildren(...mark(title, words));
    const link = address && URL.canParse(address); // Python gives addresses of the web alone
    at("address").replaceChildren(link ? make("a", { href: address, target: "_blank", rel: "noopener noreferrer" }, address) : "");
    drawText(lines, words, false);
    drawGrades(k);
    at("note").value = mine()[k]?.note || "";
    drawNoted();
    at("back").disabled = place === 0;
    show("judging");
    // the mouse is still over the grade of the document before: it chooses nothing here
    if (focus) at("grades").classList.remove("moved");
    if (focus) at(isNew ? "question" : "title").focus({ preventScroll: true });
  }

  function drawText(lines, words, isWhole) {
    let left = isWhole ? Infinity : LONG;
    const shown = [];
    for (const line of lines) {
      if (left <= 0) break;
      // a little more than the limit is shown whole
      const part = line.length > left * 1.2 ? `${line.slice(0, line.lastIndexOf(" ", left) > 0 ? line.lastIndexOf(" ", left) : left)} …` : line;
      shown.push(make("p", {}, ...mark(part, words)));
      left -= line.length;
    }
    const isCut = shown.length < lines.length || lines.some((line, k) => shown[k].textContent !== line);
    const advice = at("address").textContent ? "This page has no text of the document. Open its address" : "Only the title of this document is known. Judge by the title";
    if (!lines.length) shown.push(make("p", { class: "hint" }, `${advice}, or press “cannot judge”.`));
    at("text").replaceChildren(...shown);
    at("all").hidden = !isCut;
    at("all").onclick = () => {
      drawText(lines, words, true);
      at("title").focus({ preventScroll: true });
    };
  }

  /** The key of a grade: its digit, or 0 for 10 if no grade is 0. */
  function keyOf(value) {
    if (Number.isInteger(value) && value >= 0 && value <= 9) return String(value);
    return value === 10 && !values.includes(0) ? "0" : "";
  }

  function drawGrades(k) {
    const given = mine()[k] || {};
    const hasWords = data.grades.filter(([, name]) => name).length * 2 > data.grades.length;
    const button = (value, ...children) => {
      const made = make("button", { type: "button", "aria-pressed": String(given.grade === value && given.grade !== undefined) }, ...children);
      // The second click of a double click would grade the next document, which the judge has not seen.
      made.addEventListener("click", (event) => {
        if (event.detail < 2) give(value);
      });
      return made;
    };
    const buttons = data.grades.map(([value, name, explanation]) => {
      const words = name ? make("span", {}, name, explanation ? make("small", {}, explanation) : "") : "";
      return button(value, make("b", {}, String(value)), " ", words);
    });
    const cannot = button(null, "cannot judge");
    cannot.classList.add("cannot");
    at("grades").classList.toggle("short", !hasWords);
    at("grades").replaceChildren(...buttons, cannot);
  }

  function drawNoted() {
    at("noted").textContent = at("note").value && isKept ? "✓ saved" : "";
  }

  function give(grade) {
    const k = order[place];
    mine()[k] = { grade, note: at("note").value.trim(), time: now() };
    keep();
    move(1);
  }

  function move(step) {
    place = Math.max(0, place + step);
    if (place < order.length) drawDocument(true);
    else drawEnd();
  }

  function drawEnd() {
    const missing = order.filter((k) => !isGraded(k)).length;
    at("end-title").textContent = missing ? `${count(missing, "document has", "documents have")} no grade yet` : `Done: you judged ${order.length > 1 ? "all " : ""}${count(order.length, "document", "documents")}`;
    at("end-text").textContent = `${missing ? "Go on, or stop here. " : "Thank you. "}Press “Save grades”, and give the file to the person who gave you this page.`;
    at("ungraded").hidden = !missing;
    at("ungraded").textContent = "Go to the first of them";
    show("end");
    at("end-title").focus({ preventScroll: true });
  }

  function begin(name) {
    judge = name;
    makeOrder();
    keep();
    goToUngraded();
  }

  function goToUngraded() {
    place = order.findIndex((k) => !isGraded(k));
    if (place >= 0) return drawDocument(true);
    place = order.length;
    drawEnd();
  }

  // ---- files of grades

  const now = () => new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const quote = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

  function save() {
    const rows = order.filter((k) => mine()[k]).map((k) => {
      const { grade, note, time } = mine()[k];
      return [...ids[k], judge, grade ?? "", grade === null ? 1 : "", note || "", time];
    });
    const text = [COLUMNS, ...rows].map((row) => row.map((value) => quote(String(value))).join(",")).join("\n");
    const link = make("a", { href: URL.createObjectURL(new Blob([`${text}\n`], { type: "text/csv" })), download: `${data.sheet}-${judge.replace(/[^\p{L}\p{N}_-]+/gu, "_")}.csv` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
    const unknown = order.filter((k) => mine()[k]?.grade === null).length;
    const among = unknown ? `, ${number.format(unknown)} of them “cannot judge”,` : "";
    say(`Saved ${count(graded(), "grade", "grades")}${among} as ${link.download}, in the folder of downloads. ${tellQuestions()}`);
  }

  function readCsv(text) {
    const rows = [[]];
    let field = "", isQuoted = false;
    const end = () => rows.at(-1).push(field) && (field = "");
    for (let k = 0; k < text.length; k++) {
      const sign = text[k];
      if (isQuoted && sign === '"' && text[k + 1] === '"') field += text[++k];
      else if (sign === '"') isQuoted = !isQuoted;
      else if (isQuoted || !",\n\r".includes(sign)) field += sign;
      else if (sign === ",") end();
      else if (sign === "\n") end() || rows.push([]);
    }
    end();
    return rows.filter((row) => row.length > 1);
  }

  function load(text) {
    const [header = [], ...rows] = readCsv(text.replace(/^\ufeff/, ""));
    const column = Object.fromEntries(header.map((name, k) => [name, k]));
    if (!["query_id", "doc_id", "grade"].every((name) => name in column)) {
      return say("This is not a file of grades: it needs the columns query_id, doc_id and grade.", true);
    }
    const names = new Set();
    let loaded = 0, others = 0, older = 0;
    for (const row of rows) {
      const get = (name) => row[column[name]] ?? "";
      const k = placeOf.get(JSON.stringify([get("query_id"), get("doc_id")]));
      const text = get("grade").trim();
      const grade = text ? Number(text) : get("cannot_judge").trim() ? null : undefined;
      const name = get("judge").trim() || judge;
      if (k === undefined || !name || (text && !values.includes(grade))) others++;
      else {
        names.add(name);
        const own = (answers[name] ||= {});
        if (own[k] && own[k].time > get("time")) older++;
        else {
          own[k] = { ...(grade === undefined ? {} : { grade }), note: get("note"), time: get("time") };
          loaded++;
        }
      }
    }
    const [name] = names;
    if (names.size) begin(names.has(judge) ? judge : name);
    const told = [`Loaded ${count(loaded, "row", "rows")}${names.size ? ` of ${[...names].join(", ")}` : ""}.`];
    if (older) told.push(`${count(older, "row is", "rows are")} older than the grades here, which stay.`);
    if (others) told.push(`${count(others, "row is", "rows are")} not used: another document, no name, or a grade that is not on the scale.`);
    say(told.join(" "), others > 0);
  }

  // ---- what happens on a press

  at("begin").addEventListener("submit", (event) => {
    event.preventDefault();
    const name = at("judge").value.trim();
    if (name) begin(name);
  });
  at("back").addEventListener("click", () => move(-1));
  at("next").addEventListener("click", () => move(1));
  at("again").addEventListener("click", () => move(-1));
  at("ungraded").addEventListener("click", goToUngraded);
  at("save").addEventListener("click", save);
  at("other").addEventListener("click", () => {
    at("judge").value = "";
    say("");
    drawStart(judge);
    show("start");
    at("judge").focus();
  });
  at("judge").addEventListener("input", () => drawStart(judge));
  document.addEventListener("mousemove", ({ screenX, screenY }) => {
    const now = `${screenX} ${screenY}`;
    // browsers also report a mouse that rests while the page changes below it
    if (pointer && pointer !== now) at("grades").classList.add("moved");
    pointer = now;
  });
  at("load").addEventListener("change", async () => {
    const [file] = at("load").files;
    if (file) load(await file.text());
    at("load").value = "";
  });
  at("note").addEventListener("input", () => {
    const k = order[place];
    mine()[k] = { ...mine()[k], note: at("note").value.trim(), time: now() };
    keep();
    drawNoted();
  });
  document.addEventListener("keydown", (event) => {
    const isTyping = event.target.matches("textarea, input:not([type=checkbox])");
    if (event.key === "Escape" && event.target === at("note")) return at("title").focus({ preventScroll: true });
    if (at("judging").hidden || isTyping || !at("keyed").checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
    const value = values.find((grade) => keyOf(grade) === event.key);
    const steps = { ArrowLeft: -1, b: -1, ArrowRight: 1, n: 1 };
    if (value !== undefined) give(value);
    else if (event.key === "x") give(null);
    else if (event.key === "t") at("note").focus();
    else if (steps[event.key] && !(steps[event.key] < 0 && place === 0)) move(steps[event.key]);
    else return;
    event.preventDefault();
  });
  // the same sheet in another window
  window.addEventListener("storage", (event) => {
    if (event.key !== STORE) return;
    read();
    if (!at("judging").hidden) drawDocument(false);
  });
  window.addEventListener("beforeunload", (event) => {
    if (!isKept && graded()) event.preventDefault();
  });

  const digits = values.map(keyOf).filter(Boolean);
  const ofGrades = digits.length ? `${digits[0]} to ${digits.at(-1)}: the grade. ` : "";
  at("keys").textContent = `${ofGrades}x: cannot judge. b or ←: back. n or →: next. t: note. Escape: leave the note.`;
  at("judge").value = read();
  drawStart();
})();
