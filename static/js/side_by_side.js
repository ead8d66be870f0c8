/* Side by side: one scroll position for all columns, white space in all of them, and a focused message scrolls to its span. */

(() => {
  "use strict";

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];
  const together = document.querySelector("#same-scroll");
  const spaces = document.querySelector("#all-spaces");
  if (!together) return;

  let leading = null;
  document.addEventListener("scroll", (event) => {
    const source = event.target;
    if (!together.checked || !source.matches?.("#columns .rendered-text") || (leading && leading !== source)) return;
    leading = source;
    // Texts differ in length, so the same share of each is shown.
    const share = source.scrollTop / Math.max(1, source.scrollHeight - source.clientHeight);
    for (const other of all("#columns .rendered-text")) {
      if (other !== source) other.scrollTop = share * (other.scrollHeight - other.clientHeight);
    }
    requestAnimationFrame(() => { leading = null; });
  }, true);

  const showSpaces = () => all("#columns [data-toggles=show-space]").forEach((box) => {
    if (box.checked !== spaces.checked) box.click();
  });
  spaces.addEventListener("change", showSpaces);
  document.addEventListener("htmx:afterSettle", showSpaces);

  /* The messages of the column beside: focus one, and its span comes into view in every column. */
  document.addEventListener("focusin", (event) => {
    const message = event.target.closest?.("#columns .message[data-message]");
    if (!message) return;
    for (const column of all("#columns .rendered-text")) {
      const span = column.querySelector(`[data-message="${CSS.escape(message.dataset.message)}"]`);
      if (span) column.scrollTop += span.getBoundingClientRect().top - column.getBoundingClientRect().top - 40;
    }
  });
})();
