/* Behaviour for data attributes; every page works without it. Nothing here builds markup from data: texts go in as text.
   In order: words and announcing, requests (numbers, errors, focus, polling), dialogs and menus, small controls, keys, lists, palette, keeping. */

(() => {
  "use strict";

  const root = document.documentElement;
  root.classList.add("js");

  const one = (selector, within = document) => within.querySelector(selector);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const visible = (element) => element.checkVisibility({ visibilityProperty: true });
  const word = (name, value) => {
    const sentence = one("#words")?.dataset[name] ?? "";
    return value === undefined ? sentence : sentence.replace("%s", value);
  };

  /* Announcing ----------------------------------------------------------- */

  const announce = (sentence) => {
    const region = one("#live");
    if (region) region.textContent = sentence;
  };

  const alertWith = (sentence, link) => {
    const region = one("#alert");
    if (!region) return;
    const toast = document.createElement("div");
    toast.className = "toast";
    toast.append(Object.assign(document.createElement("span"), { textContent: sentence }));
    if (link) toast.append(Object.assign(document.createElement("a"), { textContent: link.label, href: link.url, target: link.target ?? "" }));
    toast.append(closeButton(toast));
    region.replaceChildren(toast);
  };

  const closeButton = (toast) => {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: word("close") });
    button.addEventListener("click", () => toast.remove());
    return button;
  };

  /* Requests: numbers and late answers ------------------------------------- */

  let lastNumber = 0;
  const newest = new Map(); // "id of the numbered form > id of the target" → number of the newest request

  document.addEventListener("htmx:configRequest", (event) => {
    const { elt, target, headers } = event.detail;
    const scope = elt.closest("[data-numbered]");
    if (!scope) return;
    lastNumber += 1;
    headers["X-Request-Number"] = String(lastNumber);
    newest.set(answerKey(scope, target), lastNumber);
  });

  const answerKey = (scope, target) => `${scope.id}>${target?.id ?? ""}`;

  const isLate = ({ requestConfig, xhr }) => {
    const scope = requestConfig?.elt?.closest("[data-numbered]");
    const sent = requestConfig?.headers["X-Request-Number"];
    if (!scope || !sent) return false;
    const number = Number(xhr.getResponseHeader("X-Request-Number") ?? sent);
    return number < newest.get(answerKey(scope, requestConfig.target));
  };

  document.addEventListener("htmx:beforeSwap", (event) => {
    const detail = event.detail;
    if (isLate(detail)) {
      detail.shouldSwap = false;
      return;
    }
    // An error answer that names its own place (the alert, the sign-in dialog) is meant to be shown there.
    if (detail.xhr.status >= 400 && detail.xhr.getResponseHeader("HX-Retarget")) detail.shouldSwap = true;
  });

  /* Requests: what went wrong ------------------------------------------------ */

  document.addEventListener("htmx:responseError", (event) => {
    const { xhr, requestConfig } = event.detail;
    const status = xhr.status;
    if (status === 401) afterSignIn = requestConfig;
    if (xhr.getResponseHeader("HX-Retarget")) return;
    if (status === 401) {
      alertWith(word("signedOut"), { label: word("signIn"), url: word("signInUrl"), target: "_blank" });
    } else if (status === 429) {
      alertWith(word("error-429", xhr.getResponseHeader("Retry-After") ?? "30"));
    } else if (status >= 500) {
      alertWith(word("error-500", xhr.getResponseHeader("X-Request-ID") ?? "–"));
    } else {
      alertWith(word(`error-${status}`) || word("errorOther"));
    }
  });
  /* Signed in again in place: the page's tokens are renewed, and what was refused is sent once more. */
  let afterSignIn = null;

  document.addEventListener("eleanor:signed-in", (event) => {
    const { token } = event.detail;
    document.body.setAttribute("hx-headers", JSON.stringify({ "X-CSRFToken": token }));
    all("input[name=csrfmiddlewaretoken]").forEach((input) => { input.value = token; });
    const refused = afterSignIn;
    afterSignIn = null;
    if (refused?.elt?.isConnected) htmx.ajax(refused.verb, refused.path, { source: refused.elt, target: refused.target });
  });

  document.addEventListener("htmx:timeout", () => alertWith(word("timeout")));

  const setOffline = (offline) => {
    const banner = one("#offline");
    if (!banner || banner.hidden !== offline) return;
    banner.hidden = !offline;
    if (!offline) announce(word("online"));
  };
  document.addEventListener("htmx:sendError", () => setOffline(true));
  document.addEventListener("htmx:afterOnLoad", () => setOffline(false));
  window.addEventListener("offline", () => setOffline(true));
  window.addEventListener("online", () => setOffline(false));

  /* Requests: focus ------------------------------------------------------------ */

  let focusBefore = null;

  document.addEventListener("htmx:beforeSwap", (event) => {
    const active = document.activeElement;
    const inside = active && active !== document.body && event.detail.target?.contains(active);
    focusBefore = inside && active.id ? { id: active.id, start: selectionOf(active)?.start, end: selectionOf(active)?.end } : null;
  });

  const selectionOf = (element) =>
    element.matches("textarea, input[type=text], input[type=search]") ? { start: element.selectionStart, end: element.selectionEnd } : null;

  document.addEventListener("htmx:afterSettle", (event) => {
    if (event.detail.requestConfig?.boosted) {
      focusBefore = null;
      one("#alert")?.replaceChildren();
      startPage();
      one("#title")?.focus({ preventScroll: true });
      return;
    }
    const wanted = one("[data-takes-focus]", event.detail.elt);
    if (wanted) {
      wanted.focus();
      return;
    }
    if (!focusBefore || (document.activeElement && document.activeElement !== document.body)) return;
    const element = document.getElementById(focusBefore.id);
    element?.focus({ preventScroll: true });
    if (element && focusBefore.start !== undefined && selectionOf(element)) element.setSelectionRange(focusBefore.start, focusBefore.end);
    focusBefore = null;
  });

  /* Requests: polling. Each second, every ten while the tab is hidden; 204 keeps what is shown, 286 or an error ends it. */

  const polls = new WeakMap(); // element → timer

  const poll = async (element) => {
    if (!element.isConnected) return;
    let status = 0;
    const remember = (event) => { status = event.detail.xhr.status; };
    element.addEventListener("htmx:beforeOnLoad", remember);
    await htmx.ajax("GET", element.dataset.poll, { source: element, target: element, swap: "innerHTML" }).catch(() => {});
    element.removeEventListener("htmx:beforeOnLoad", remember);
    if (status === 286 || (status >= 400 && status < 500)) return;
    schedulePoll(element, status === 0 || status >= 500 ? 10_000 : document.hidden ? 10_000 : 1000);
  };

  const schedulePoll = (element, delay) => {
    clearTimeout(polls.get(element));
    polls.set(element, setTimeout(() => poll(element), delay));
  };

  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) all("[data-poll]").forEach((element) => polls.has(element) && schedulePoll(element, 0));
  });

  /* Dialogs and menus ------------------------------------------------------------ */

  const openDialog = (dialog) => {
    if (dialog && !dialog.open) dialog.showModal();
  };

  const closeMenus = (except) => all("details.menu[open]").forEach((menu) => menu !== except && (menu.open = false));

  document.addEventListener("click", (event) => {
    closeMenus(event.target.closest("details.menu"));

    const opener = event.target.closest("[data-opens]");
    if (opener) {
      event.preventDefault();
      openDialog(document.getElementById(opener.dataset.opens));
    }

    const copier = event.target.closest("[data-copies]");
    if (copier) copyText(copier);

    if (event.target instanceof HTMLDialogElement && event.target.open) {
      const box = event.target.getBoundingClientRect();
      const inside = event.clientX >= box.left && event.clientX <= box.right && event.clientY >= box.top && event.clientY <= box.bottom;
      if (!inside) event.target.close();
    }
  });

  document.addEventListener("focusin", (event) => {
    if (!event.target.closest("details.menu")) closeMenus();
  });

  /* Small controls ------------------------------------------------------------------ */

  const copyText = async (button) => {
    const copy = one(button.dataset.copies)?.cloneNode(true);
    if (!copy) return;
    all("[data-not-copied]", copy).forEach((element) => element.remove());
    await navigator.clipboard.writeText(copy.textContent);
    announce(word("copied"));
  };

  document.addEventListener("change", (event) => {
    const control = event.target;
    if (control.matches("[data-toggles]")) {
      const target = one(control.dataset.on);
      if (target?.matches("[data-spaces]")) paintSpaces(target);
      target?.classList.toggle(control.dataset.toggles, control.checked);
    }
    if (control.matches("[data-submits]")) control.form?.requestSubmit();
  });

  /* White space is wrapped once, on first demand; the marks are generated content, so what is copied stays the same. */
  const paintSpaces = (element) => {
    if (element.dataset.spaces === "painted") return;
    element.dataset.spaces = "painted";
    const marks = { " ": "·", "\u00a0": "⍽", "\u202f": "⍽", "\t": "→", "\n": "⏎" };
    const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT, (node) =>
      node.parentElement.closest("[data-not-copied]") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    const nodes = [];
    while (walker.nextNode()) nodes.push(walker.currentNode);
    for (const node of nodes) {
      const pieces = node.data.split(/([ \u00a0\u202f\t\n])/);
      if (pieces.length === 1) continue;
      node.replaceWith(...pieces.filter(Boolean).map((piece) => {
        if (!(piece in marks)) return piece;
        const span = Object.assign(document.createElement("span"), { className: "space-mark", textContent: piece });
        span.dataset.mark = marks[piece];
        return span;
      }));
    }
  };

  /* A message of the timeline and its place in the rendered prompt light up together. */
  const linkMessages = (event) => {
    const source = event.target.closest?.("[data-message]");
    const active = all("[data-message][data-active]");
    if (!source && !active.length) return;
    active.forEach((element) => element.toggleAttribute("data-active", false));
    if (source) all(`[data-message="${CSS.escape(source.dataset.message)}"]`).forEach((element) => element.toggleAttribute("data-active", true));
  };
  document.addEventListener("pointerover", linkMessages);
  document.addEventListener("focusin", linkMessages);

  /* The server writes times in the browser's zone, unless the person chose another; the next page knows of a change. */
  const zone = new Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (zone && !document.cookie.split("; ").includes(`zone=${zone}`)) {
    document.cookie = `zone=${zone}; path=/; max-age=31536000; samesite=lax${location.protocol === "https:" ? "; secure" : ""}`;
  }

  /* Keys: the table comes from the page, the same one that draws the sheet behind "?". ---- */

  const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
  const MOD = isMac ? "⌘" : "Ctrl";
  let bindings = new Map();
  let pending = "";
  let pendingTimer = 0;

  const readBindings = () => {
    const groups = JSON.parse(one("#shortcut-table")?.textContent ?? "[]");
    bindings = new Map();
    for (const { keys, action } of groups.flatMap((group) => group.rows)) {
      bindings.set(keys, [...(bindings.get(keys) ?? []), action]);
    }
    for (const cell of all("[data-keys]")) drawKeys(cell);
    all("[data-mod-key]").forEach((element) => { element.textContent = `${MOD} K`; });
  };

  const drawKeys = (cell) => {
    const parts = cell.dataset.keys.split(" ").map((chord) =>
      chord.split("+").map((key) => Object.assign(document.createElement("kbd"), { textContent: key === "Mod" ? MOD : key.length === 1 && chord.includes("+") ? key.toUpperCase() : key })));
    cell.replaceChildren(...parts.flatMap((chord, index) => [...(index ? [` ${word("then")} `] : []), ...chord.flatMap((key, place) => (place ? [" ", key] : [key]))]));
  };

  const chordOf = (event) => {
    const named = event.key.length > 1;
    const parts = [];
    if (event.ctrlKey || event.metaKey) parts.push("Mod");
    if (event.altKey) parts.push("Alt");
    if (event.shiftKey && named) parts.push("Shift");
    // With Alt the key may print something else (⌥1 is ¡); the digit row is named by its place.
    const key = event.altKey && /^Digit\d$/.test(event.code) ? event.code.slice(5) : event.key === " " ? "Space" : event.key;
    parts.push(parts.length && !named ? key.toLowerCase() : key);
    return parts.join("+");
  };

  const inField = (target) => target.closest?.("input:not([type=checkbox], [type=radio], [type=button], [type=submit]), textarea, select, [contenteditable]");

  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.key === "Dead") return;
    if (event.key === "Escape") {
      const menu = one("details.menu[open]");
      if (menu) {
        menu.open = false;
        one("summary", menu)?.focus();
      }
      return;
    }
    if (["Control", "Shift", "Alt", "Meta"].includes(event.key)) return;
    const chord = chordOf(event);
    const single = !/Mod|Alt|^Shift\+|^F\d/.test(chord);
    if (single && (inField(event.target) || root.dataset.singleKeys === "off" || one("dialog[open]"))) return;

    const sequence = pending ? `${pending} ${chord}` : chord;
    clearTimeout(pendingTimer);
    pending = "";
    if ([...bindings.keys()].some((keys) => keys.startsWith(`${sequence} `))) {
      pending = sequence;
      pendingTimer = setTimeout(() => { pending = ""; }, 1500);
      return;
    }
    if ((bindings.get(sequence) ?? []).some(act)) event.preventDefault();
  });

  const act = (action) => {
    if (builtIn[action]?.()) return true;
    const control = all(`[data-shortcut~="${CSS.escape(action)}"]`).find((element) => visible(element) && !element.disabled);
    if (!control) return false;
    if (control.matches("input:not([type=submit], [type=button], [type=checkbox]), textarea, select")) {
      control.focus();
      control.select?.();
    } else {
      control.click();
    }
    return true;
  };

  /* Lists ------------------------------------------------------------------------ */

  const activeItem = () => one("[data-item][data-active]");

  const step = (direction) => {
    const items = all("[data-list] [data-item]").filter(visible);
    if (!items.length) return false;
    const at = items.findIndex((item) => item === activeItem() || item.contains(document.activeElement));
    const next = items[Math.min(items.length - 1, Math.max(0, at < 0 ? (direction > 0 ? 0 : items.length - 1) : at + direction))];
    items.forEach((item) => item.toggleAttribute("data-active", item === next));
    const link = one("[data-open], a, button", next) ?? next;
    link.focus({ preventScroll: true });
    next.scrollIntoView({ block: "nearest" });
    return true;
  };

  const builtIn = {
    help: () => { openDialog(one("#shortcuts")); return Boolean(one("#shortcuts")); },
    palette: () => openPalette(),
    "list-next": () => step(1),
    "list-previous": () => step(-1),
    "list-open": () => { const link = activeItem() && one("[data-open], a", activeItem()); link?.click(); return Boolean(link); },
    "list-toggle": () => { const box = activeItem() && one("input[type=checkbox]", activeItem()); box?.click(); return Boolean(box); },
  };

  document.addEventListener("click", (event) => {
    if (event.target.closest('[data-shortcut~="palette"]')) openPalette();
  });

  /* Palette -------------------------------------------------------------------------- */

  const plain = (text) => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase().trim();

  const openPalette = () => {
    const palette = one("#palette");
    if (!palette || palette.open) return Boolean(palette);
    const list = one("#palette-list");
    all("[data-from-page]", list).forEach((option) => option.remove());
    all(".page-actions :is(a, button), main [data-palette]").filter(visible).forEach((control, index) => {
      control.id ||= `action-${index}`;
      list.append(option(`palette-action-${index}`, control.textContent.replace(/\s+/g, " ").trim(), control.id));
    });
    const input = one("#palette-input");
    input.value = "";
    filterPalette();
    closeMenus();
    palette.showModal();
    input.focus();
    return true;
  };

  const option = (id, label, clicks) => {
    const element = Object.assign(document.createElement("li"), { id, textContent: label });
    element.setAttribute("role", "option");
    element.dataset.clicks = clicks;
    element.dataset.fromPage = "";
    return element;
  };

  const filterPalette = () => {
    const wanted = plain(one("#palette-input").value).split(/\s+/);
    const options = all("#palette-list [role=option]");
    for (const element of options) element.hidden = !wanted.every((part) => plain(element.textContent).includes(part));
    const searchForm = one(".topbar-search");
    const query = one("#palette-input").value.trim();
    one("#palette-search")?.remove();
    if (searchForm && query) {
      const element = option("palette-search", word("searchFor", query), "");
      element.dataset.href = `${searchForm.action}?q=${encodeURIComponent(query)}`;
      one("#palette-list").append(element);
    }
    one("#palette .palette-none").hidden = all("#palette-list [role=option]").some((element) => !element.hidden);
    choose(all("#palette-list [role=option]").find((element) => !element.hidden));
  };

  const choose = (element) => {
    all("#palette-list [role=option]").forEach((other) => other.setAttribute("aria-selected", String(other === element)));
    one("#palette-input").setAttribute("aria-activedescendant", element?.id ?? "");
    element?.scrollIntoView({ block: "nearest" });
  };

  const take = (element) => {
    if (!element) return;
    one("#palette").close();
    if (element.dataset.href) location.assign(element.dataset.href);
    else document.getElementById(element.dataset.clicks)?.click();
  };

  document.addEventListener("input", (event) => {
    if (event.target.id === "palette-input") filterPalette();
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.id !== "palette-input") return;
    const options = all("#palette-list [role=option]").filter((element) => !element.hidden);
    const at = options.findIndex((element) => element.getAttribute("aria-selected") === "true");
    const moves = { ArrowDown: (at + 1) % options.length, ArrowUp: (at - 1 + options.length) % options.length, Home: 0, End: options.length - 1 };
    if (event.key in moves) {
      event.preventDefault();
      choose(options[moves[event.key]]);
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(options[at]);
    }
  });
  document.addEventListener("click", (event) => take(event.target.closest("#palette-list [role=option]")));

  /* Keeping what is typed, for forms with data-keep: over a reload, and over a sign-out between typing and sending.
     Sent entries go away on the next page that isn't the sign-in page. */

  const PREFIX = "kept:";
  const keptName = (form) => `${PREFIX}${location.pathname}#${form.dataset.keep}`;
  const signInPath = () => new URL(word("signInUrl") || "/account/sign-in", location.href).pathname;
  const fieldsOf = (form) => [...form.elements].filter((field) => field.name && !["hidden", "password", "file", "submit", "button"].includes(field.type));
  const valuesOf = (form) => fieldsOf(form).map((field) => [field.name, field.matches("[type=checkbox], [type=radio]") ? [field.value, field.checked] : field.value]);
  const stored = () => Object.keys(sessionStorage).filter((name) => name.startsWith(PREFIX));

  const keep = (form, sent) => {
    try {
      sessionStorage.setItem(keptName(form), JSON.stringify({ sent, values: valuesOf(form) }));
    } catch {
      // Storage full or forbidden: the server's drafts remain.
    }
  };

  document.addEventListener("input", (event) => {
    const form = event.target.form;
    if (form?.dataset.keep) keep(form, false);
  });
  document.addEventListener("submit", (event) => {
    if (event.target.dataset?.keep) keep(event.target, true);
    if (event.target.action === new URL("sign-out", new URL(word("signInUrl") || "/account/", location.href)).href) stored().forEach((name) => sessionStorage.removeItem(name));
  });

  const restoreKept = () => {
    const cameFromSignIn = sessionStorage.getItem("page-before") === signInPath();
    sessionStorage.setItem("page-before", location.pathname);
    if (location.pathname === signInPath()) return;
    for (const form of all("form[data-keep]")) {
      const name = keptName(form);
      const entry = JSON.parse(sessionStorage.getItem(name) ?? "null");
      if (!entry || one(".form-errors", form) || (entry.sent && !cameFromSignIn)) continue;
      if (JSON.stringify(valuesOf(form)) === JSON.stringify(entry.values)) continue;
      putBack(form, entry.values);
      noticeRestored(form, name);
      keep(form, false);
    }
    for (const name of stored()) {
      if (JSON.parse(sessionStorage.getItem(name)).sent && !cameFromSignIn) sessionStorage.removeItem(name);
    }
  };

  const putBack = (form, values) => {
    const fields = fieldsOf(form);
    values.forEach(([name, value], index) => {
      const field = fields[index];
      if (field?.name !== name) return;
      if (Array.isArray(value)) {
        if (field.value === value[0]) field.checked = value[1];
      } else {
        field.value = value;
      }
      field.dispatchEvent(new Event("input", { bubbles: true }));
    });
  };

  const noticeRestored = (form, name) => {
    const notice = Object.assign(document.createElement("div"), { className: "notice notice-info" });
    notice.setAttribute("role", "status");
    const text = Object.assign(document.createElement("div"), { textContent: word("restored") });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "button button-small", textContent: word("discard") });
    button.addEventListener("click", () => {
      sessionStorage.removeItem(name);
      location.reload();
    });
    notice.append(text, button);
    one("#notices")?.append(notice);
  };

  /* Start, and again after each swap -------------------------------------------------- */

  const start = (element) => {
    for (const dialog of [element, ...all("[data-opens-itself]", element)]) {
      if (dialog.matches?.("[data-opens-itself]")) openDialog(dialog);
    }
    for (const polled of [element, ...all("[data-poll]", element)]) {
      if (polled.matches?.("[data-poll]") && !polls.has(polled)) schedulePoll(polled, 1000);
    }
  };

  const startPage = () => {
    readBindings();
    restoreKept();
  };

  document.addEventListener("htmx:load", (event) => {
    if (event.detail.elt !== document.body) start(event.detail.elt);
  });
  const begin = () => {
    start(document.body);
    startPage();
    one("[data-takes-focus]")?.focus();
    if (!navigator.onLine) setOffline(true);
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", begin);
  else begin();
})();
