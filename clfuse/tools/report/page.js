"use strict";
(function () {
  document.documentElement.classList.add("scripted");

  // Lines that share a kernel with the one under the pointer, or with the one that was clicked.
  const rows = Array.from(document.querySelectorAll("tr[data-kernels]"));
  const bars = Array.from(document.querySelectorAll("rect[data-kernel]"));
  let held = null;
  const kernelsOf = (row) => row.dataset.kernels.split(" ");
  function light(row) {
    const own = row ? new Set(kernelsOf(row)) : new Set();
    for (const each of rows) {
      each.classList.toggle("lit", each !== row && kernelsOf(each).some((k) => own.has(k)));
      each.classList.toggle("chosen", each === row);
    }
    for (const bar of bars) bar.classList.toggle("lit", own.has(bar.dataset.kernel));
  }
  for (const row of rows) {
    row.tabIndex = 0;
    row.addEventListener("mouseenter", () => light(held || row));
    row.addEventListener("mouseleave", () => light(held));
    row.addEventListener("focus", () => light(held || row));
    const hold = () => { held = held === row ? null : row; light(held || row); };
    row.addEventListener("click", hold);
    row.addEventListener("keydown", (event) => {
      if (event.key === "Enter") hold();
      if (event.key === "Escape") { held = null; light(null); }
    });
  }

  // Only the lines at which something happened, or all.
  const all = document.getElementById("all-lines");
  if (all) all.addEventListener("click", () => {
    const hide = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", String(hide));
    all.textContent = hide ? "all lines" : "lines with time only";
    for (const row of document.querySelectorAll("#lines tr.idle")) row.hidden = hide;
  });

  // The timeline: what is under the pointer in words, zoom by wheel or buttons, move by dragging.
  const chart = document.getElementById("timeline");
  const say = document.getElementById("say");
  if (!chart) return;
  const [, , width, height] = chart.getAttribute("viewBox").split(" ").map(Number);
  const ticks = document.getElementById("ticks");
  const span = Number(chart.dataset.ns);
  const inWords = (ns) => ns >= 1e9 ? (ns / 1e9).toFixed(3) + " s" : (ns / 1e6).toFixed(3) + " ms";
  let from = 0, shown = width;
  function show() {
    shown = Math.min(Math.max(shown, width / 5000), width);
    from = Math.min(Math.max(from, 0), width - shown);
    chart.setAttribute("viewBox", [from, 0, shown, height].join(" "));
    chart.dataset.zoom = (width / shown).toFixed(2);
    for (const [place, tick] of Array.from(ticks.children).entries()) {
      tick.textContent = inWords(span * (from + shown * place / 4) / width);
    }
  }
  function zoom(factor, at) {
    const fixed = from + at * shown;
    shown *= factor;
    shown = Math.min(Math.max(shown, width / 5000), width);
    from = fixed - at * shown;
    show();
  }
  const place = (event) => {
    const box = chart.getBoundingClientRect();
    return (event.clientX - box.left) / box.width;
  };
  chart.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.shiftKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 1.25 : 0.8, place(event));
  }, { passive: false });
  let dragged = null;
  chart.addEventListener("pointerdown", (event) => { dragged = place(event); });
  window.addEventListener("pointerup", () => { dragged = null; });
  chart.addEventListener("pointermove", (event) => {
    if (dragged !== null) {
      const now = place(event);
      from -= (now - dragged) * shown;
      dragged = now;
      show();
    }
    const title = event.target.querySelector && event.target.querySelector("title");
    if (title) say.textContent = title.textContent;
  });
  document.getElementById("zoom-in").addEventListener("click", () => zoom(0.5, 0.5));
  document.getElementById("zoom-out").addEventListener("click", () => zoom(2, 0.5));
  document.getElementById("zoom-all").addEventListener("click", () => { from = 0; shown = width; show(); });
})();
