#include "apps/reporting/html_style.h"

namespace tessera {

const char* const page_style = R"css(
:root {
  color-scheme: light dark;
  --paper: #f7f7f5; --card: #ffffff; --ink: #1c1e21; --soft: #6b7076; --line: #e4e4e0; --grid: #ecece8;
  --fill: #2f6db5; --good: #2e8b57; --bad: #c4453c; --heat: 47, 109, 181; --wrong: 196, 69, 60;
  --c0: #2f6db5; --c1: #d9772b; --c2: #2e8b57; --c3: #8858b8; --c4: #c4453c; --c5: #1d9aa8; --c6: #b8860b;
  --c7: #6b7076;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #141619; --card: #1c1f23; --ink: #e6e7e9; --soft: #969ba3; --line: #2d3137; --grid: #272b30;
    --fill: #5b9be0; --good: #52b788; --bad: #e57368; --heat: 91, 155, 224; --wrong: 229, 115, 104;
    --c0: #5b9be0; --c1: #eb9a56; --c2: #52b788; --c3: #b18be0; --c4: #e57368; --c5: #4cc3d0; --c6: #dcb448;
    --c7: #969ba3;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif; }
main { max-width: 1240px; margin: 0 auto; padding: 36px 28px 64px; }
h1 { font-size: 27px; line-height: 1.2; font-weight: 650; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 18px; font-weight: 650; margin: 40px 0 14px; letter-spacing: -0.005em; }
h3 { font-size: 14.5px; font-weight: 650; margin: 0; }
p { margin: 0 0 8px; }
.lead, .note { color: var(--soft); }
.note { font-size: 13px; }
.lead b { color: var(--ink); font-weight: 600; }
.warn { border-left: 3px solid var(--c1); padding: 8px 14px; background: var(--card); margin: 16px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(128px, 1fr)); gap: 12px; margin: 24px 0; }
.figure { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 13px 12px; }
.figure .value { font-size: 22px; font-weight: 650; letter-spacing: -0.01em; white-space: nowrap; }
.figure .name { font-size: 13px; }
.figure .under { font-size: 12.5px; color: var(--soft); }
.cards { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 16px; }
@media (max-width: 860px) { .cards { grid-template-columns: minmax(0, 1fr); } main { padding: 22px 14px; } }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 10px; padding: 16px 18px;
  min-width: 0; }
.card.wide { grid-column: 1 / -1; }
.card > .note { margin-bottom: 6px; }
.card > h3 + div, .card > h3 + table { margin-top: 6px; }
.scroll { overflow: auto; max-height: 520px; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 12.5px; margin: 6px 0 2px; color: var(--soft); }
.legend b { color: var(--ink); font-weight: 600; }
.legend i { display: inline-block; width: 16px; height: 0; border-top: 2.5px solid; vertical-align: middle;
  margin-right: 6px; }
.legend i.dashed { border-top-style: dashed; }
.legend i.faint { border-top-width: 1px; opacity: .5; }
svg.chart { display: block; width: 100%; height: auto; overflow: visible; }
svg.chart:focus-visible { outline: 2px solid var(--line); outline-offset: 0; }
svg text { font-size: 11.5px; fill: var(--soft); font-family: inherit; }
svg .grid { stroke: var(--grid); stroke-width: 1; }
svg .axis { stroke: var(--line); stroke-width: 1; }
svg .mark { stroke: var(--soft); stroke-width: 1; stroke-dasharray: 3 3; }
svg .series { fill: none; stroke-width: 2; stroke-linejoin: round; stroke-linecap: round; }
svg .dashed { stroke-dasharray: 5 4; }
svg .faint { stroke-width: 1; opacity: .5; }
svg .cursor { stroke: var(--soft); stroke-width: 1; visibility: hidden; }
#tip { position: fixed; pointer-events: none; background: var(--card); border: 1px solid var(--line);
  border-radius: 8px; padding: 7px 11px; font-size: 12.5px; box-shadow: 0 4px 16px rgba(0, 0, 0, 0.13);
  visibility: hidden; z-index: 2; white-space: nowrap; }
#tip i { display: inline-block; width: 8px; height: 8px; border-radius: 50%; margin-right: 6px; }
table { border-collapse: collapse; width: 100%; font-size: 13.5px; font-variant-numeric: tabular-nums; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 12.5px; }
th, td { padding: 4px 10px 4px 0; border-bottom: 1px solid var(--line); vertical-align: middle; }
.scroll thead th { position: sticky; top: 0; background: var(--card); }
tr:last-child td { border-bottom: none; }
.n { text-align: right; white-space: nowrap; }
.bar { display: flex; align-items: center; gap: 10px; min-width: 130px; }
.bar span { flex: 1; height: 8px; border-radius: 4px; background: var(--grid); overflow: hidden; }
.bar span i { display: block; height: 100%; background: var(--fill); border-radius: 4px; }
.bar b { font-weight: 400; min-width: 52px; text-align: right; }
table.matrix { width: auto; border-collapse: separate; border-spacing: 1px; font-size: 12px; margin: 0 auto; }
table.matrix td, table.matrix th { border: none; padding: 0; text-align: center; }
table.matrix th { padding: 2px 6px; font-weight: 400; font-size: 12px; max-width: 130px; overflow: hidden;
  text-overflow: ellipsis; white-space: nowrap; }
table.matrix th.row { display: table-cell; text-align: right; vertical-align: middle; }
table.matrix th.col { writing-mode: vertical-rl; transform: rotate(180deg); text-align: left;
  padding: 6px 2px; max-width: none; max-height: 120px; }
table.matrix td { border-radius: 2px; }
.pictures { display: grid; grid-template-columns: repeat(auto-fill, minmax(124px, 1fr)); gap: 16px 14px; }
.pictures.trios { grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); }
.pictures figure { margin: 0; font-size: 12.5px; line-height: 1.4; min-width: 0; overflow-wrap: anywhere; }
.pictures figcaption { margin-top: 5px; }
.row { display: flex; gap: 4px; }
.row img { min-width: 0; }
img { display: block; border-radius: 6px; image-rendering: pixelated; max-width: 100%; }
.bad { color: var(--bad); } .good { color: var(--good); }
.keys { columns: 3 260px; column-gap: 32px; font-size: 13px; }
.keys section { break-inside: avoid; margin: 0 0 16px; }
.keys h4 { margin: 0 0 2px; font-size: 13px; font-weight: 650; }
.keys div { display: flex; justify-content: space-between; gap: 12px; border-bottom: 1px solid var(--grid);
  padding: 1.5px 0; }
.keys div span:first-child { color: var(--soft); }
.keys div span:last-child { text-align: right; overflow-wrap: anywhere; }
details { margin-top: 12px; } summary { cursor: pointer; color: var(--soft); font-size: 13px; }
pre { font: 12px/1.45 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  overflow: auto; max-height: 520px; }
.swatch { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 7px; }
footer { margin-top: 44px; color: var(--soft); font-size: 12.5px; }
svg .over { paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
@media (max-width: 620px) { svg text { font-size: 17px; } }
@media print {
  :root { color-scheme: light; --paper: #fff; --card: #fff; --ink: #000; --soft: #444; --line: #bbb; --grid: #ddd; }
  @page { margin: 14mm; }
  body { font-size: 10.5pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  main { max-width: none; padding: 0; }
  h2, h3 { break-after: avoid; }
  .card, figure, .figure, tr, .keys section { break-inside: avoid; }
  .card.wide { break-inside: auto; }
  .card:has(table) { grid-column: 1 / -1; }
  .scroll, pre { overflow: visible; max-height: none; }
  .scroll thead th { position: static; }
  .cards { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 8px; }
  .figures { grid-template-columns: repeat(4, minmax(0, 1fr)); gap: 6px; margin: 12px 0; }
  details, #tip { display: none; }
}
)css";

// A chart's data-points attribute holds, for each series, its points as [x pixel, y pixel, x text, y text].
// The pointer shows those nearest to it, the arrow keys go through them in a chart that has the focus.
const char* const page_script = R"js(
const tip = document.getElementById("tip");
for (const svg of document.querySelectorAll("svg.chart")) {
  const series = JSON.parse(svg.dataset.points), cursor = svg.querySelector(".cursor");
  const places = [...new Set(series.flatMap(s => s.points.map(point => point[0])))].sort((a, b) => a - b);
  let place = -1;  // of those in `places`
  const show = (at, clientX, clientY) => {
    const nearest = series.filter(s => s.points.length).map(s => ({...s, point: s.points.reduce(
      (a, b) => Math.abs(a[0] - at) <= Math.abs(b[0] - at) ? a : b)}));
    if (!nearest.length) return;
    const best = nearest.reduce((a, b) => Math.abs(a.point[0] - at) <= Math.abs(b.point[0] - at) ? a : b).point;
    cursor.setAttribute("x1", best[0]);
    cursor.setAttribute("x2", best[0]);
    cursor.style.visibility = "visible";
    tip.textContent = "";
    const head = tip.appendChild(document.createElement("div"));
    head.textContent = best[2];
    for (const s of nearest.filter(s => Math.abs(s.point[0] - best[0]) < 1)) {
      const line = tip.appendChild(document.createElement("div"));
      line.appendChild(document.createElement("i")).style.background = s.color;
      line.append(s.name + "  " + s.point[3]);
    }
    tip.style.visibility = "visible";
    place = places.indexOf(best[0]);
    const left = clientX + 16 + tip.offsetWidth > innerWidth ? -16 - tip.offsetWidth : 16;
    tip.style.left = clientX + left + "px";
    tip.style.top = clientY + 14 + "px";
  };
  const hide = () => tip.style.visibility = cursor.style.visibility = "hidden";
  svg.addEventListener("pointermove", event => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
    show(at, event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", hide);
  svg.addEventListener("blur", hide);
  svg.addEventListener("keydown", event => {
    const last = places.length - 1;
    const next = {ArrowLeft: Math.max(place - 1, 0), ArrowRight: Math.min(place + 1, last), Home: 0, End: last};
    if (event.key === "Escape") hide();
    if (!(event.key in next) || last < 0) return;
    event.preventDefault();
    const at = places[next[event.key]], box = svg.getBoundingClientRect();
    show(at, new DOMPoint(at, 0).matrixTransform(svg.getScreenCTM()).x, box.top + box.height / 3);
  });
}
)js";

}  // namespace tessera
