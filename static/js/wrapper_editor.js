/* The wrapper editor: fields that depend on others, line numbers of a template, and the way from a span to its line and back.
   Without this every field is there and every button works; nothing here changes what is posted. */

(() => {
  "use strict";

  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const form = one("#wrapper-form");
  if (!form) return;

  /* Fields that another one opens ------------------------------------------ */

  const openFields = () => {
    for (const select of all("[data-opens-fields]", form)) {
      const open = select.value === "on" && !select.closest("[data-inside][hidden]");
      for (const field of all(`[data-inside="${CSS.escape(select.dataset.opensFields)}"]`, form)) field.hidden = !open;
    }
    for (const part of all("[data-shown-for]", form)) {
      const select = one(`[data-shows="${CSS.escape(part.dataset.shownFor)}"]`, form);
      if (select) part.hidden = select.value !== part.dataset.when;
    }
  };
  form.addEventListener("change", openFields);
  document.addEventListener("htmx:afterSettle", openFields);
  document.addEventListener("htmx:oobAfterSwap", openFields);
  openFields();

  /* A reason that is being typed is no change of the wrapper: it must not renew the list it stands in. */
  one("#lint-live")?.addEventListener("input", (event) => event.stopPropagation());

  /* A kind that is chosen shows at its part at once. */
  form.addEventListener("change", (event) => {
    if (event.target.matches(".part-kind")) event.target.closest(".part").className = `part part-${event.target.value}`;
  });

  /* Jumps from the lint ------------------------------------------------------- */

  document.addEventListener("click", (event) => {
    const jump = event.target.closest("[data-jumps]");
    if (jump) {
      const field = document.getElementById(jump.dataset.jumps);
      if (!field) return;
      event.preventDefault();
      field.closest("details")?.setAttribute("open", "");
      const control = all("textarea, select, input:not([type=hidden])", field).find((element) => element.checkVisibility()) ?? field;
      control.focus();
      control.scrollIntoView({ block: "center" });
    }
    const line = event.target.closest("[data-line-jump]");
    if (line && area) {
      event.preventDefault();
      goToLine(Number(line.dataset.lineJump));
    }
  });

  /* Line numbers, and provenance: template line, span, message ------------------ */

  const area = one("#id_template");
  if (!area) return;
  const box = area.closest(".code-field");
  const overlay = one(".code-paint", box);
  const gutter = Object.assign(document.createElement("div"), { className: "code-lines" });
  gutter.setAttribute("aria-hidden", "true");
  box.prepend(gutter);
  box.classList.add("has-lines");

  const number = () => {
    const count = area.value.split("\n").length;
    while (gutter.childElementCount > count) gutter.lastElementChild.remove();
    for (let line = gutter.childElementCount + 1; line <= count; line += 1) {
      const cell = Object.assign(document.createElement("span"), { textContent: String(line) });
      cell.dataset.line = String(line);
      gutter.append(cell);
    }
    follow();
  };
  const follow = () => {
    gutter.scrollTop = area.scrollTop;
    overlay.scrollLeft = area.scrollLeft;
  };
  area.addEventListener("input", number);
  area.addEventListener("scroll", follow);
  number();

  const goToLine = (line) => {
    const lines = area.value.split("\n");
    const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
    area.focus();
    area.setSelectionRange(start, start + (lines[line - 1] ?? "").length);
    const height = parseFloat(getComputedStyle(area).lineHeight);
    area.scrollTop = Math.max(0, (line - 4) * height);
  };

  const light = (lines, messages) => {
    for (const element of all("#preview-text [data-line], .code-lines [data-line]")) {
      element.toggleAttribute("data-lit", lines.has(element.dataset.line));
    }
    for (const element of all("#message-list [data-message]")) element.toggleAttribute("data-lit", messages.has(element.dataset.message));
  };

  const fromLine = () => {
    const line = String(area.value.slice(0, area.selectionStart).split("\n").length);
    const spans = all(`#preview-text [data-line="${line}"]`);
    light(new Set([line]), new Set(spans.map((span) => span.dataset.message).filter(Boolean)));
  };
  const fromSpan = (span) => light(new Set([span.dataset.line]), new Set([span.dataset.message].filter(Boolean)));
  const fromMessage = (message) => {
    const spans = all(`#preview-text [data-message="${CSS.escape(message)}"]`);
    light(new Set(spans.map((span) => span.dataset.line).filter(Boolean)), new Set([message]));
    spans[0]?.scrollIntoView({ block: "nearest" });
  };

  document.addEventListener("selectionchange", () => { if (document.activeElement === area) fromLine(); });
  document.addEventListener("pointerover", (event) => {
    const span = event.target.closest?.("#preview-text [data-line]");
    if (span) fromSpan(span);
  });
  document.addEventListener("focusin", (event) => {
    const link = event.target.closest?.("#message-list [data-message]");
    if (link) fromMessage(link.dataset.message);
  });
  document.addEventListener("click", (event) => {
    const span = event.target.closest?.("#preview-text [data-line]");
    if (span) goToLine(Number(span.dataset.line));
  });
})();
