/* The code field: an overlay that paints tokens and underlines, a list of errors that moves the caret, one-click repairs, and completion.
   The text area stays the control; the overlay is hidden from assistive technology. Offsets from the server count code points. */

(() => {
  "use strict";

  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const fields = new WeakMap(); // .code-field → its state

  /* Offsets ------------------------------------------------------------------ */

  const toUnits = (text, points) => {
    let units = 0;
    for (let seen = 0; seen < points && units < text.length; seen += 1) units += text.codePointAt(units) > 0xffff ? 2 : 1;
    return units;
  };

  /* Until the server answers, an edit moves the spans behind it, stretches the word it is typed into, and drops the others that it touches. */
  const shifted = (spans, before, after) => {
    let head = 0;
    while (head < before.length && head < after.length && before[head] === after[head]) head += 1;
    let tail = 0;
    while (tail < before.length - head && tail < after.length - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
    const editEnd = before.length - tail;
    const delta = after.length - before.length;
    const wordOnly = /^[\p{L}\p{N}_]*$/u.test(after.slice(head, after.length - tail));
    return spans.flatMap((span) => {
      if (span.end < head || (span.end === head && !wordOnly)) return [span];
      if (span.start > editEnd || (span.start === editEnd && head < editEnd)) return [{ ...span, start: span.start + delta, end: span.end + delta }];
      if (span.start <= head && span.end >= editEnd && wordOnly && span.end + delta > span.start) return [{ ...span, end: span.end + delta }];
      if (span.start >= editEnd) return [{ ...span, start: span.start + delta, end: span.end + delta }];
      return [];
    });
  };

  /* Painting -------------------------------------------------------------------- */

  const paint = (state) => {
    const { area, overlay } = state;
    const text = area.value;
    const cuts = new Set([0, text.length]);
    for (const span of [...state.tokens, ...state.problems]) {
      cuts.add(Math.min(span.start, text.length));
      cuts.add(Math.min(span.end, text.length));
    }
    const places = [...cuts].sort((a, b) => a - b);
    const pieces = [];
    for (let index = 0; index < places.length; index += 1) {
      const [from, to] = [places[index], places[index + 1] ?? text.length];
      const token = state.tokens.find((span) => span.start <= from && span.end > from);
      const problem = state.problems.find((span) => span.start <= from && span.end > from);
      const atEnd = from === to && state.problems.find((span) => span.start >= from && span.start === span.end);
      if (from === to && !atEnd) continue;
      const names = [token && `t-${token.kind}`, (problem ?? atEnd) && `wavy-${(problem ?? atEnd).severity}`, atEnd && "wavy-empty"].filter(Boolean);
      pieces.push(names.length ? Object.assign(document.createElement("span"), { className: names.join(" "), textContent: text.slice(from, to) }) : text.slice(from, to));
    }
    // A last line break needs something after it to take up its line.
    overlay.replaceChildren(...pieces, "\u200b");
    overlay.scrollTop = area.scrollTop;
  };

  const read = (state, text = state.area.value) => {
    const list = one(state.box.dataset.diagnostics);
    const span = (element) => ({ start: toUnits(text, Number(element.dataset.start)), end: toUnits(text, Number(element.dataset.end)) });
    state.problems = all("li[data-start]", list ?? state.box).map((item) => ({ ...span(item), severity: item.dataset.severity, item }));
    const tokens = list && one("[data-tokens]", list);
    if (tokens) {
      state.tokens = tokens.dataset.tokens.split(",").filter(Boolean).map((entry) => {
        const [start, end, kind] = entry.split(" ");
        return { start: toUnits(text, Number(start)), end: toUnits(text, Number(end)), kind };
      });
    } else if (state.problems.length === 0 && !text) {
      state.tokens = [];
    }
    const wrong = state.problems.some((problem) => problem.severity === "error");
    if (wrong) state.area.setAttribute("aria-invalid", "true");
    else state.area.removeAttribute("aria-invalid");
    paint(state);
  };

  /* Caret, next problem, repairs ---------------------------------------------------- */

  const goTo = (state, problem) => {
    state.area.focus();
    state.area.setSelectionRange(problem.start, Math.max(problem.start, problem.end));
  };

  const nextProblem = (state, direction) => {
    const inOrder = [...state.problems].sort((a, b) => a.start - b.start);
    if (!inOrder.length) return;
    const caret = state.area.selectionStart;
    const next = direction > 0
      ? inOrder.find((problem) => problem.start > caret) ?? inOrder[0]
      : inOrder.findLast((problem) => problem.start < caret) ?? inOrder.at(-1);
    goTo(state, next);
    const live = one("#live");
    if (live) live.textContent = one("[data-caret]", next.item)?.textContent ?? "";
  };

  /* insertText keeps the browser's undo; setRangeText is for browsers that don't know it. */
  const replace = (area, start, end, text) => {
    area.focus();
    area.setSelectionRange(start, end);
    const done = text ? document.execCommand("insertText", false, text) : document.execCommand("delete");
    if (done) return;
    area.setRangeText(text, start, end, "end");
    area.dispatchEvent(new Event("input", { bubbles: true }));
  };

  const stateOfList = (element) => {
    const box = all("[data-code-field]").find((candidate) => one(candidate.dataset.diagnostics)?.contains(element));
    return box && fields.get(box);
  };

  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-caret]");
    const repair = event.target.closest("[data-repair]");
    const state = (link ?? repair) && stateOfList(link ?? repair);
    if (!state) return;
    event.preventDefault();
    if (link) {
      const problem = state.problems.find(({ item }) => item.contains(link));
      if (problem) goTo(state, problem);
      return;
    }
    const text = state.area.value;
    const { start, end, text: replacement } = repair.dataset;
    // Offsets belong to the text that was checked; a later edit would shift them, and the list is renewed by then.
    if (text !== state.checked) return;
    replace(state.area, toUnits(text, Number(start)), toUnits(text, Number(end)), replacement);
  });

  /* Completion: a combobox whose list comes from the server ---------------------------- */

  const close = (state) => {
    state.list?.remove();
    state.list = null;
    state.area.removeAttribute("aria-activedescendant");
  };

  const ask = async (state) => {
    const { area, box } = state;
    const text = area.value;
    const at = area.selectionStart;
    state.asked?.abort();
    state.asked = new AbortController();
    // What stands before the caret decides; a window of it keeps the address short.
    const before = [...text.slice(0, at)];
    const window = before.slice(-400).join("");
    const skipped = Math.max(0, before.length - 400);
    const url = new URL(box.dataset.completions, location.href);
    url.searchParams.set("text", window);
    url.searchParams.set("at", String(before.length - skipped));
    try {
      const answer = await fetch(url, { headers: { Accept: "application/json" }, signal: state.asked.signal });
      if (!answer.ok || area.value !== text) return;
      const { from, items } = await answer.json();
      show(state, toUnits(text, skipped + from), items);
    } catch (error) {
      if (error.name !== "AbortError") close(state);
    }
  };

  const show = (state, from, items) => {
    close(state);
    if (!items.length) return;
    const { area, box } = state;
    const list = Object.assign(document.createElement("ul"), { className: "completion", id: `${area.id}_completion` });
    list.setAttribute("role", "listbox");
    list.setAttribute("aria-label", box.dataset.completionLabel ?? area.id);
    items.slice(0, 40).forEach((item, index) => {
      const option = Object.assign(document.createElement("li"), { id: `${list.id}_${index}` });
      option.setAttribute("role", "option");
      option.append(
        Object.assign(document.createElement("span"), { className: "name", textContent: item.label }),
        Object.assign(document.createElement("span"), { className: "type", textContent: item.type ?? "" }),
        Object.assign(document.createElement("span"), { className: "sub", textContent: [item.detail, item.observed].filter(Boolean).join(" · ") }));
      option.addEventListener("pointerdown", (event) => {
        event.preventDefault();
        accept(state, index);
      });
      list.append(option);
    });
    state.list = list;
    state.items = items;
    state.from = from;
    box.append(list);
    const place = caretPlace(state);
    list.style.setProperty("inset-block-start", `${place.bottom}px`);
    list.style.setProperty("inset-inline-start", `${Math.min(place.left, Math.max(0, box.clientWidth - list.offsetWidth))}px`);
    choose(state, 0);
  };

  const caretPlace = (state) => {
    const range = document.createRange();
    const walker = document.createTreeWalker(state.overlay, NodeFilter.SHOW_TEXT);
    let left = state.from;
    while (walker.nextNode()) {
      const node = walker.currentNode;
      if (left <= node.length) {
        range.setStart(node, left);
        break;
      }
      left -= node.length;
    }
    range.collapse(true);
    const caret = range.getBoundingClientRect();
    const box = state.box.getBoundingClientRect();
    return { left: Math.max(0, caret.left - box.left), bottom: (caret.bottom || box.top + 32) - box.top + 4 };
  };

  const choose = (state, index) => {
    state.chosen = index;
    all("[role=option]", state.list).forEach((option, place) => option.setAttribute("aria-selected", String(place === index)));
    const option = state.list.children[index];
    option.scrollIntoView({ block: "nearest" });
    state.area.setAttribute("aria-activedescendant", option.id);
  };

  const accept = (state, index) => {
    const item = state.items[index];
    const from = state.from;
    close(state);
    replace(state.area, from, state.area.selectionStart, item.insert ?? item.label);
    close(state);
  };

  const onKey = (state, event) => {
    if (event.isComposing) return;
    if (event.key === "F8") {
      event.preventDefault();
      nextProblem(state, event.shiftKey ? -1 : 1);
      return;
    }
    if (event.key === " " && event.ctrlKey && state.box.dataset.completions) {
      event.preventDefault();
      ask(state);
      return;
    }
    if (!state.list) return;
    const last = state.list.children.length - 1;
    const moves = { ArrowDown: state.chosen === last ? 0 : state.chosen + 1, ArrowUp: state.chosen === 0 ? last : state.chosen - 1 };
    if (event.key in moves) choose(state, moves[event.key]);
    else if (event.key === "Enter" || event.key === "Tab") accept(state, state.chosen);
    else if (event.key === "Escape") close(state);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  /* Start ---------------------------------------------------------------------------- */

  const begin = (box) => {
    const area = one("textarea", box);
    const overlay = one(".code-paint", box);
    if (!area || !overlay || fields.has(box)) return;
    const state = { box, area, overlay, tokens: [], problems: [], list: null, items: [], from: 0, chosen: 0, checked: area.defaultValue, before: area.defaultValue };
    fields.set(box, state);
    box.classList.add("is-painted");
    if (box.dataset.completions) {
      // A text area may not carry the combobox role; the rest of the pattern holds on its own role, textbox.
      area.setAttribute("aria-autocomplete", "list");
      area.setAttribute("aria-controls", `${area.id}_completion`);
      area.setAttribute("aria-haspopup", "listbox");
    }
    const follow = () => {
      state.tokens = shifted(state.tokens, state.before, area.value);
      state.problems = shifted(state.problems, state.before, area.value);
      state.before = area.value;
      paint(state);
    };
    area.addEventListener("input", () => {
      follow();
      const word = /[\p{L}_][\p{L}\p{N}_]*$/u.exec(area.value.slice(0, area.selectionStart));
      if (box.dataset.completions && (word?.[0].length >= 2 || state.list)) ask(state);
      else close(state);
    });
    area.addEventListener("scroll", () => { overlay.scrollTop = area.scrollTop; });
    area.addEventListener("keydown", (event) => onKey(state, event));
    area.addEventListener("blur", () => close(state));
    area.form?.addEventListener("reset", () => setTimeout(() => { state.before = area.value; read(state); }));
    // What the server painted is its own text; a text put back by the browser or by data-keep is an edit of it.
    read(state, area.defaultValue);
    follow();
  };

  const start = (element) => {
    for (const box of [element, ...all("[data-code-field]", element)]) {
      if (box.matches?.("[data-code-field]")) begin(box);
    }
  };

  /* A check was answered: its spans belong to the text that was sent, which is the text now unless a newer request is under way. */
  document.addEventListener("htmx:afterSwap", (event) => {
    for (const box of all("[data-code-field]")) {
      const list = one(box.dataset.diagnostics);
      const state = fields.get(box);
      if (!state || !list || !(event.detail.target?.contains(list) || list.contains(event.detail.target))) continue;
      state.checked = state.area.value;
      read(state);
    }
  });
  document.addEventListener("htmx:oobAfterSwap", (event) => {
    for (const box of all("[data-code-field]")) {
      const state = fields.get(box);
      if (state && event.detail.target?.matches(box.dataset.diagnostics)) read(state);
    }
  });
  document.addEventListener("htmx:load", (event) => start(event.detail.elt));
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", () => start(document.body));
  else start(document.body);
})();
