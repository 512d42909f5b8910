
(() => {
  if (!data.queries) return; // a report without labels has no list of queries
  const [base, ...others] = data.systems;
  const KINDS = ["new good", "new, not good", "unjudged", "repeated"];
  const LOOKS = ["new-good", "new-other", "unjudged", "repeated"];
  const FIRST = matchMedia("(max-width: 44rem)").matches ? 10 : 25, MORE = 100;
  /** With more systems, a query shows the first system and the chosen one, as columns for all would not fit. */
  const MOST_SYSTEMS = 6;
  const show = (value) => (value === null ? "–" : Number.isInteger(value) && Math.abs(value) > 1e6 ? String(value) : value.toFixed(4));
  const showChange = (value) => (value > 0 ? "+" : "") + show(value);
  const badge = (text, look) => make("span", { class: `badge ${look}` }, text);
  const arrow = ([name, better]) => name + ({ up: " ↑", down: " ↓" }[better] || "");

  /** Where the iterations of each query begin, for each system. */
  const starts = data.lengths.map((lengths) => {
    let start = 0;
    return lengths.map((length) => (start += length) - length);
  });
  const countsOf = (system, query) =>
    data.iterations[system].slice(starts[system][query], starts[system][query] + data.lengths[system][query]).map((code) => data.counts[code]);

  const explained = Math.max(0, data.measures.findIndex(([name]) => name === data.explained));
  const state = { measure: explained, other: Math.max(0, data.lead - 1), cause: "", change: "", group: "", search: "", sort: others.length ? "size" : "value", down: false, shown: FIRST };
  let order = [];
  const change = (query) => data.differences[state.measure][state.other][query];
  /** The numbers of the systems that an open query shows. */
  const chosenSystems = () => (data.systems.length > MOST_SYSTEMS ? [0, state.other + 1] : data.systems.map((_, system) => system));
  const gain = (query) => change(query) * ({ up: 1, down: -1 }[data.measures[state.measure][1]] || 0);

  const collator = new Intl.Collator("en", { numeric: true });
  const rank = [];
  data.queries.map((_, k) => k).sort((a, b) => collator.compare(data.queries[a], data.queries[b])).forEach((k, place) => (rank[k] = place));
  const lowered = data.queries.map((id, k) => `${id}\n${data.texts ? data.texts[k] || "" : ""}`.toLowerCase());

  /** Cut the middle of a long id: ids often differ at their ends. */
  const cut = (id) => (id.length > 40 ? `${id.slice(0, 13)}…${id.slice(-26)}` : id);

  /** The columns of the table: heading, key to sort by, cell, and whether it is a number. */
  function listColumns() {
    const measure = data.measures[state.measure];
    const value = (system) => (query) => data.values[state.measure][system][query];
    const columns = [{ id: "query", title: "query", key: (query) => rank[query] }];
    if (data.groups) {
      const names = (query) => data.members[query].map((k) => data.groups[k]).join(", ");
      columns.push({ id: "group", title: "group", key: names, cell: names });
    }
    columns.push({ id: "value", title: `${base}: ${arrow(measure)}`, key: value(0), cell: (query) => show(value(0)(query)), number: true });
    if (others.length) {
      const { cause, at: first } = data.changes[state.other];
      const mine = value(state.other + 1);
      columns.push({ id: "other", title: others[state.other], key: mine, cell: (query) => show(mine(query)), number: true });
      columns.push({ id: "difference", title: "difference", key: change, cell: (query) => showChange(change(query)), number: true });
      // The causes are those of one measure; beside the values of another they would contradict.
      if (state.measure !== explained) return columns;
      columns.push({ id: "cause", title: "main cause", key: (query) => data.causes[cause[query]] || null, cell: (query) => data.causes[cause[query]] || "" });
      columns.push({ id: "at", title: "first differ at iteration", key: (query) => first[query], cell: (query) => (first[query] === null ? "" : String(first[query])), number: true });
    } else {
      columns.push({ id: "at", title: "iterations", key: (query) => data.lengths[0][query], cell: (query) => String(data.lengths[0][query]), number: true });
    }
    return columns;
  }

  function matches(query) {
    if (state.search && !lowered[query].includes(state.search)) return false;
    if (state.group !== "" && !data.members[query].includes(Number(state.group))) return false;
    if (!others.length) return true;
    if (state.cause !== "" && data.changes[state.other].cause[query] !== Number(state.cause)) return false;
    return state.change === "" || Math.sign(gain(query)) === Number(state.change);
  }

  function sortQueries(columns) {
    order = data.queries.map((_, query) => query).filter(matches);
    const size = (query) => (change(query) === null ? -1 : Math.abs(change(query)));
    // The query of the headline is first among those that changed as much; then come losses.
    if (state.sort === "size") return order.sort((a, b) => size(b) - size(a) || (b === data.first) - (a === data.first) || gain(a) - gain(b) || a - b);
    const { key } = columns.find((column) => column.id === state.sort) || columns[0];
    const keys = data.queries.map((_, query) => key(query));
    const sign = state.down ? -1 : 1;
    order.sort((a, b) => {
      const one = keys[a], other = keys[b];
      if (one === other) return rank[a] - rank[b];
      if (one === null || other === null) return one === null ? 1 : -1;
      return one < other ? -sign : sign;
    });
  }

  function drawTable() {
    const columns = listColumns();
    sortQueries(columns);
    const heads = columns.map((column) => {
      const button = make("button", { type: "button", "data-sort": column.id }, column.title);
      const sorted = column.id === state.sort;
      const how = state.sort === "size" && column.id === "difference" ? "other" : "none";
      return make("th", { scope: "col", class: column.number ? "number" : "", "aria-sort": sorted ? (state.down ? "descending" : "ascending") : how }, button);
    });
    const focused = document.activeElement && document.activeElement.dataset.sort;
    at("list").tHead.replaceChildren(make("tr", {}, ...heads));
    if (focused) at("list").querySelector(`[data-sort="${focused}"]`)?.focus();
    at("list").tBodies[0].replaceChildren();
    addRows(columns, 0);
  }

  function addRows(columns, from) {
    const rows = order.slice(from, state.shown).map((query) => {
      const cells = columns.slice(1).map((column) => {
        const look = column.number ? "number" : column.id === "cause" ? "text" : "";
        return make("td", { class: look, "data-label": column.title }, column.cell(query));
      });
      const id = data.queries[query], text = data.texts && data.texts[query];
      const name = make("button", { type: "button", "data-query": query, title: id }, text || cut(id));
      const row = make("tr", {}, make("th", { scope: "row" }, name, text ? make("span", { class: "hint", title: id }, cut(id)) : ""), ...cells);
      if (query === open.query) row.setAttribute("aria-current", "true");
      return row;
    });
    at("list").tBodies[0].append(...rows);
    const shown = Math.min(state.shown, order.length);
    const all = data.queries.length;
    at("count").textContent = `${number.format(order.length)} of ${count(all, "query", "queries")}${state.sort === "size" ? ", the largest change first" : ""}${shown < order.length ? `; ${number.format(shown)} are shown` : ""}`;
    at("more").hidden = shown >= order.length;
    at("more").textContent = `Show ${number.format(Math.min(MORE, order.length - shown))} more`;
  }

  function drawControls() {
    const choose = (name, label, choices, redraw) => {
      const select = make("select", { id: `choose-${name}` }, ...choices.map(([value, text]) => make("option", { value }, text)));
      select.value = String(state[name]);
      select.addEventListener("change", () => {
        state[name] = typeof state[name] === "number" ? Number(select.value) : select.value;
        state.shown = FIRST;
        if (redraw) drawControls();
        drawTable();
        if (name === "other" && data.systems.length > MOST_SYSTEMS && open.query !== undefined) open(open.query, false);
        if (redraw) at(`choose-${name}`).focus();
      });
      return make("label", {}, label, select);
    };
    const parts = [];
    if (data.measures.length > 1) parts.push(choose("measure", "Measure", data.measures.map((measure, k) => [k, arrow(measure)]), true));
    if (others.length > 1) parts.push(choose("other", `System, compared with ${base}`, others.map((name, k) => [k, name]), true));
    if (others.length) {
      const [worse, better] = ["worse", "better"].map((word) => `${word} in ${others[state.other]}`);
      parts.push(choose("change", "Change", [["", "any"], ["-1", worse], ["1", better], ["0", "equal"]]));
      const used = new Set(state.measure === explained ? data.changes[state.other].cause : []);
      if (!used.has(Number(state.cause))) state.cause = "";
      if (used.size) parts.push(choose("cause", "Main cause", [["", "any"], ...data.causes.map((cause, k) => [String(k), cause]).filter(([k]) => used.has(Number(k)))]));
    }
    if (data.groups) parts.push(choose("group", "Group", [["", "all"], ...data.groups.map((name, k) => [String(k), name])]));
    const search = make("input", { type: "search", id: "search", autocomplete: "off", value: state.search });
    search.addEventListener("input", () => {
      Object.assign(state, { search: search.value.trim().toLowerCase(), shown: FIRST });
      drawTable();
    });
    parts.push(make("label", {}, data.texts ? "Search in ids and texts" : "Search in ids", search));
    at("controls").replaceChildren(...parts);
  }

  /** The name of a document, a link if its address is one of the web. */
  function nameDocument([id, , title, url]) {
    const text = title || id;
    const link = url && URL.canParse(url); // Python gives addresses of the web alone
    const element = link ? make("a", { href: url, rel: "noopener noreferrer" }, text) : document.createTextNode(text);
    return title && title !== id && url !== id ? [element, make("span", { class: "hint" }, ` ${id}`)] : [element];
  }

  function drawSearches(system, query, detail) {
    const counts = countsOf(system, query);
    const items = counts.map((counted, k) => {
      const [text, results] = detail ? detail.searches[system][k] || [null, []] : [null, []];
      const badges = KINDS.map((kind, j) => (counted[j] ? badge(`${counted[j]} ${kind}`, LOOKS[j]) : null));
      const [failed, empty, missed] = counted.slice(4);
      if (failed) badges.push(badge(count(failed, "search failed", "searches failed"), "bad"));
      if (empty) badges.push(badge("no results", "bad"));
      if (missed) badges.push(badge("no new good document, though some were missing", "bad"));
      const listed = results.map((code) => {
        const found = detail.documents[code >> 2], kind = code & 3;
        const label = found[1] === undefined || found[1] === null ? "" : `, label ${found[1]}`;
        return make("li", {}, badge(KINDS[kind] + label, LOOKS[kind]), ...nameDocument(found));
      });
      return make("li", {}, text ? make("div", {}, `“${text}”`) : null, make("div", {}, ...badges), listed.length ? make("ul", {}, ...listed) : null);
    });
    const body = items.length ? make("ol", {}, ...items) : make("p", {}, data.absent[system].includes(query) ? "no row in the run" : "never searched");
    return make("div", {}, make("h4", {}, `${data.systems[system]}: ${count(counts.length, "iteration", "iterations")}`), body);
  }

  function drawGrid(title, header, words, rows) {
    const look = (k) => ({ class: k >= words ? "number" : "text" });
    const cells = (row) => row.map((cell, k) => make("td", { ...look(k), "data-label": header[k] }, ...(Array.isArray(cell) ? cell : [cell])));
    const head = make("thead", {}, make("tr", {}, ...header.map((name, k) => make("th", { scope: "col", ...look(k) }, name))));
    const table = make("table", {}, make("caption", {}, title), head, make("tbody", {}, ...rows.map((row) => make("tr", {}, ...cells(row)))));
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": title }, table);
  }

  function drawGood(detail) {
    const header = ["good document", ...(others.length ? ["why"] : []), ...(detail.good.some((row) => row[3].length) ? ["use"] : []), "label"];
    const words = header.length - 1;
    const systems = chosenSystems();
    const line = (code, name) => (code === null || code === undefined ? null : make("div", {}, (name ? `${name}: ` : "") + data.reasons[code]));
    const rows = detail.good.map(([k, found, causes, uses]) => {
      const cells = [nameDocument(detail.documents[k])];
      if (others.length) cells.push(systems.map((system) => line(causes[system - 1])).filter(Boolean));
      if (header.includes("use")) cells.push(systems.map((system) => line(uses[system], data.systems[system])).filter(Boolean));
      const places = systems.map((system) => (found[system] === null ? [badge("missed", "bad")] : String(found[system])));
      return [...cells, String(detail.documents[k][1]), ...places];
    });
    return drawGrid("Good documents, and the iteration that found them", [...header, ...systems.map((system) => data.systems[system])], words, rows);
  }

  function open(query, focus) {
    open.query = query;
    at("list").querySelector("[aria-current]")?.removeAttribute("aria-current");
    at("list").querySelector(`[data-query="${query}"]`)?.closest("tr").setAttribute("aria-current", "true");
    const detail = data.details[query];
    const title = make("h3", { id: "query-title", tabindex: "-1" }, (data.texts && data.texts[query]) || `Query ${data.queries[query]}`);
    const parts = [title];
    if (data.texts && data.texts[query]) parts.push(make("p", { class: "hint" }, `Query ${data.queries[query]}`));
    if (data.groups && data.members[query].length) parts.push(make("p", { class: "hint" }, `Group: ${data.members[query].map((k) => data.groups[k]).join(", ")}`));
    const systems = chosenSystems();
    const names = systems.map((system) => data.systems[system]);
    if (names.length < data.systems.length) parts.push(make("p", { class: "hint" }, `Shown: ${names.join(" and ")}. Choose another system above the list.`));
    if (detail) parts.push(...systems.map((system) => detail.said[system - 1]).filter(Boolean).map((said) => make("p", {}, said)));
    const rows = data.measures.map((measure, m) => [arrow(measure), ...systems.map((s) => show(data.values[m][s][query]) + (s ? ` (${showChange(data.differences[m][s - 1][query])})` : ""))]);
    parts.push(drawGrid(others.length ? `Values, and their differences from ${base}` : "Values", ["measure", ...names], 1, rows));
    if (detail && detail.good.length) parts.push(drawGood(detail));
    if (!detail) parts.push(make("p", { class: "hint" }, `Counts only: results are listed for ${count(Object.keys(data.details).length, "query", "queries")}. Make the report with a larger --details.`));
    parts.push(make("div", { class: "systems" }, ...systems.map((system) => drawSearches(system, query, detail))));
    const back = make("button", { type: "button" }, "Back to the list");
    back.addEventListener("click", () => (at("list").querySelector(`[data-query="${query}"]`) || at("search")).focus());
    at("query").replaceChildren(...parts, back);
    at("query").hidden = false;
    if (focus) {
      history.replaceState(null, "", `#query=${encodeURIComponent(data.queries[query])}`);
      title.focus();
      title.scrollIntoView({ block: "start" });
    }
  }

  at("list").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.query) open(Number(button.dataset.query), true);
    else {
      const { sort } = button.dataset, again = state.sort === sort;
      // The third press of the difference sorts by its size again.
      Object.assign(state, { sort: again && state.down && sort === "difference" ? "size" : sort, down: again && !state.down, shown: FIRST });
      drawTable();
    }
  });
  at("more").addEventListener("click", () => {
    const from = state.shown;
    state.shown += MORE;
    addRows(listColumns(), from);
    at("list").querySelectorAll("[data-query]")[from]?.focus();
  });

  at("first")?.addEventListener("click", (event) => {
    if (data.first === null) return;
    event.preventDefault();
    open(data.first, true);
  });

  const boxes = () => document.querySelectorAll(".scroll").forEach((box) => box.classList.toggle("wide", box.scrollWidth > box.clientWidth + 1));
  new ResizeObserver(boxes).observe(document.body);
  const asked = location.hash.startsWith("#query=") ? data.queries.indexOf(decodeURIComponent(location.hash.slice(7))) : -1;
  drawControls();
  drawTable();
  if (asked >= 0) open(asked, true);
  else if (data.first !== null) open(data.first, false);
})();
