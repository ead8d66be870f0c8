/* Charts are drawn by the server and complete without this: here only the numbers of the day under the pointer, and a series that stands out
   while its legend entry is pointed at. The same numbers are in the table behind the toggle. */

(() => {
  "use strict";

  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  const line = (label, value) => {
    const row = document.createElement("div");
    row.append(Object.assign(document.createElement("span"), { textContent: label }), Object.assign(document.createElement("b"), { textContent: value }));
    return row;
  };

  const showTip = (chart, day) => {
    const area = chart.querySelector(".chart-area");
    const tip = area.querySelector(".chart-tip") ?? area.appendChild(Object.assign(document.createElement("div"), { className: "chart-tip" }));
    tip.setAttribute("aria-hidden", "true");
    tip.replaceChildren(line(day.dataset.day, day.dataset.total), ...all("rect.bar", day).reverse().map((bar) => line(bar.dataset.label, bar.dataset.value)));
    const [box, at] = [area.getBoundingClientRect(), day.getBoundingClientRect()];
    const right = at.right - box.left + 8;
    const fits = right + tip.offsetWidth < box.width;
    tip.style.setProperty("inset-inline-start", `${fits ? right : Math.max(0, at.left - box.left - tip.offsetWidth - 8)}px`);
  };

  const focusSeries = (chart, number) => {
    chart.toggleAttribute("data-focus", Boolean(number));
    all("rect.bar", chart).forEach((bar) => bar.classList.toggle("is-focus", bar.dataset.series === number));
  };

  document.addEventListener("pointerover", (event) => {
    const chart = event.target.closest?.("[data-chart]");
    for (const tip of all(".chart-tip")) if (!event.target.closest?.(".chart-day") || !chart?.contains(tip)) tip.remove();
    if (!chart) return;
    const day = event.target.closest(".chart-day");
    if (day) showTip(chart, day);
    focusSeries(chart, event.target.closest(".chart-legend [data-series]")?.dataset.series);
  });
  document.addEventListener("focusin", (event) => {
    const chart = event.target.closest?.("[data-chart]");
    if (chart) focusSeries(chart, event.target.closest(".chart-legend [data-series]")?.dataset.series);
  });
})();
