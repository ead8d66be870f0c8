/* The rule editor: what its htmx attributes can't say. Counters and ages, the builder's text, sets opened from the headline,
   warnings that select their place, and the kept copy of the form, which goes once the server has it. */

(() => {
  "use strict";

  const form = document.querySelector("[data-rule-editor]");
  if (!form) return;
  const one = (selector) => document.querySelector(selector);
  const area = one("#id_expression");

  /* Counters, in code points as the server counts. */
  const count = (output) => { output.textContent = String([...one(output.dataset.counts).value].length); };
  const counters = [...document.querySelectorAll("[data-counts]")];
  counters.forEach(count);
  form.addEventListener("input", (event) => {
    counters.filter((output) => output.dataset.counts === `#${event.target.id}`).forEach(count);
  });

  /* "3 seconds ago" beside the saved state; outside of any announcement, since the text of the region changes only with a save. */
  const words = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: "auto" });
  const age = () => {
    for (const element of document.querySelectorAll("[data-ago] time")) {
      const seconds = Math.round((Date.parse(element.dateTime) - Date.now()) / 1000);
      const text = seconds > -60 ? words.format(Math.min(0, seconds), "second") : words.format(Math.round(seconds / 60), "minute");
      if (seconds > -3600 && element.textContent !== text) element.textContent = text;
    }
  };
  setInterval(age, 10_000);

  /* What the server has needs no copy here; a copy that came back later would go over somebody else's work. */
  const forget = () => {
    if (!form.dataset.keep) return;
    sessionStorage.removeItem(`kept:${location.pathname}#${form.dataset.keep}`);
  };
  /* Saves go one after the other, each with the revision that the one before it came to: a page never meets a conflict
     with itself. What waited and has nothing new to say is left out. */
  let typed = 0;
  let sent = 0;
  let saved = 0;
  let leavingTo = "";
  form.addEventListener("input", () => { typed += 1; });
  document.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.elt.id === "autosave" && saved === typed) event.preventDefault();
  });
  document.addEventListener("htmx:beforeSend", (event) => {
    if (event.detail.target?.id === "saved") sent = typed;
  });
  document.body.addEventListener("draft-saved", () => {
    saved = sent;
    if (saved === typed) {
      forget();
      if (leavingTo) location.assign(leavingTo);
    }
    age();
    readIntoBuilder();
  });

  /* The pages behind the bar's links show the draft as it is on the server: what was just typed goes there first. */
  document.addEventListener("click", (event) => {
    const link = event.target.closest(".sticky-bar a[href]");
    if (!link || saved === typed || !one("#autosave") || event.metaKey || event.ctrlKey || event.shiftKey) return;
    event.preventDefault();
    leavingTo = link.href;
    htmx.trigger("#autosave", "leaving");
  });
  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.target?.id === "saved" && !event.detail.successful) leavingTo = "";
  });

  /* The builder writes the expression, and follows it while nobody is in the builder. */
  const builder = one("#builder");
  const readIntoBuilder = () => {
    if (!builder || !one("#builder-fold").open || builder.contains(document.activeElement)) return;
    if (one("[data-built]")?.dataset.built === area.value) return;
    htmx.ajax("POST", form.action, { source: form, target: "#builder", swap: "innerHTML", values: { ...Object.fromEntries(new FormData(form)), build: "read" } });
  };
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target !== builder) return;
    const built = one("[data-built]")?.dataset.built;
    if (built === undefined || built === area.value) return;
    area.value = built;
    area.dispatchEvent(new Event("input", { bubbles: true }));
  });
  // What was pressed may be gone with its row; then the builder's last control is the nearest.
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target === builder && document.activeElement === document.body) one("#b-add")?.focus({ preventScroll: true });
  });
  one("#builder-fold")?.addEventListener("toggle", readIntoBuilder);

  /* When the numbers can't be had, the last ones stay, with their time, the reason, and a way to ask again. */
  let answered = new Date();
  document.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target?.id === "id_expression_diagnostics") answered = new Date();
  });
  const failed = (reason) => (event) => {
    if (event.detail.target?.id !== "id_expression_diagnostics") return;
    const template = one("#effect-failed");
    const notice = template.content.cloneNode(true);
    notice.querySelector("[data-reason]").textContent = template.dataset[reason];
    notice.querySelector("time").textContent = answered.toLocaleTimeString(document.documentElement.lang);
    notice.querySelector("button").addEventListener("click", () => htmx.trigger("#effect-asks", "again"));
    one("#effect-stale").replaceChildren(notice);
  };
  document.addEventListener("htmx:responseError", failed("failed"));
  document.addEventListener("htmx:sendError", failed("unreachable"));
  document.addEventListener("htmx:timeout", failed("unreachable"));

  /* The numbers of the headline open their sets here. */
  document.addEventListener("click", (event) => {
    const number = event.target.closest("#effect-numbers a.headline-number");
    if (!number || event.metaKey || event.ctrlKey || !one("#set")) return;
    event.preventDefault();
    htmx.ajax("GET", `${number.getAttribute("href")}&part=set&in=edit`, { source: "#set-loader", target: "#set", swap: "innerHTML" });
  });

  /* A warning selects what it is about. Offsets count code points. */
  const units = (text, points) => [...text].slice(0, points).join("").length;
  document.addEventListener("click", (event) => {
    const link = event.target.closest("[data-selects]");
    if (!link) return;
    event.preventDefault();
    const field = one(link.dataset.selects);
    field.focus();
    field.setSelectionRange(units(field.value, Number(link.dataset.start)), units(field.value, Number(link.dataset.end)));
  });

  /* The answer about a point comes under the list: go there. */
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id === "why" && event.detail.requestConfig?.triggeringEvent?.type === "click") one("#why-title")?.focus();
  });

  /* The nudge stands at the end of a long prompt: bring it into its well's view, and nothing else. */
  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.target?.id !== "preview") return;
    const added = event.detail.target.querySelector(".added");
    const well = added?.closest(".rendered-text");
    if (well) well.scrollTop = Math.max(0, added.offsetTop - well.clientHeight / 3);
    const pane = one("#prompt");
    if (added && pane.scrollHeight > pane.clientHeight) pane.scrollTop = pane.scrollHeight;
  });
})();
