"""A timeline as one HTML page that opens without network: rows of threads and streams, zoom with the wheel, move with drag."""

import html
import json

PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>TITLE</title>
<style>
body { font: 13px sans-serif; margin: 12px; }
canvas { width: 100%; border: 1px solid #999; cursor: crosshair; }
#facts { white-space: pre-wrap; font-family: monospace; min-height: 5em; }
</style></head><body>
<h3>TITLE</h3>
<p>Wheel: zoom. Drag: move. Point at a bar: its facts. Double click: everything.</p>
<canvas id="canvas"></canvas><div id="facts"></div>
<script>
const events = EVENTS;
const bars = events.filter(e => e.ph === "X"), names = {};
for (const e of events) if (e.ph === "M") names[e.pid + "/" + e.tid] = e.args.name;
const rows = [...new Set(bars.map(e => e.pid + "/" + e.tid))].sort();
const first = Math.min(...bars.map(e => e.ts)), last = Math.max(...bars.map(e => e.ts + e.dur));
const colours = {call: "#6699cc", kernel: "#cc6644", copy: "#66aa66"};
const canvas = document.getElementById("canvas"), pen = canvas.getContext("2d"), height = 26, left = 110;
let begin = first, span = Math.max(last - first, 1), drag = null;
const x = t => left + (t - begin) / span * (canvas.width - left);
function draw() {
  canvas.width = canvas.clientWidth; canvas.height = rows.length * height + 20;
  pen.font = "12px sans-serif";
  for (const e of bars) {
    const y = rows.indexOf(e.pid + "/" + e.tid) * height, from = Math.max(x(e.ts), left), to = x(e.ts + e.dur);
    if (to < left || from > canvas.width) continue;
    pen.fillStyle = colours[e.cat] || "#aa88bb";
    pen.fillRect(from, y + 3, Math.max(to - from, 1), height - 6);
    if (to - from > 40) { pen.fillStyle = "#000"; pen.fillText(e.name, from + 3, y + 17, to - from - 4); }
  }
  pen.strokeStyle = "#00000055";
  const starts = {};
  for (const e of events) {
    const y = rows.indexOf(e.pid + "/" + e.tid) * height + height / 2;
    if (e.ph === "s") starts[e.id] = [e.ts, y];
    if (e.ph === "f" && starts[e.id] && x(starts[e.id][0]) >= left) {
      pen.beginPath(); pen.moveTo(x(starts[e.id][0]), starts[e.id][1]); pen.lineTo(x(e.ts), y); pen.stroke();
    }
  }
  pen.fillStyle = "#fff"; pen.fillRect(0, 0, left, canvas.height); pen.fillStyle = "#000";
  rows.forEach((row, i) => pen.fillText(names[row] || row, 4, i * height + 17, left - 8));
  pen.fillText((span / 1000).toFixed(3) + " ms shown, from " + ((begin - first) / 1000).toFixed(3), left, canvas.height - 5);
}
canvas.addEventListener("wheel", e => {
  e.preventDefault();
  const at = begin + (e.offsetX - left) / (canvas.width - left) * span, factor = e.deltaY > 0 ? 1.25 : 0.8;
  begin = at - (at - begin) * factor; span *= factor; draw();
});
canvas.addEventListener("mousedown", e => drag = [e.offsetX, begin]);
window.addEventListener("mouseup", () => drag = null);
canvas.addEventListener("dblclick", () => { begin = first; span = Math.max(last - first, 1); draw(); });
canvas.addEventListener("mousemove", e => {
  if (drag) { begin = drag[1] - (e.offsetX - drag[0]) / (canvas.width - left) * span; draw(); return; }
  const t = begin + (e.offsetX - left) / (canvas.width - left) * span, row = rows[Math.floor(e.offsetY / height)];
  const found = bars.find(b => b.pid + "/" + b.tid === row && b.ts <= t && t <= b.ts + b.dur);
  document.getElementById("facts").textContent = found
    ? found.name + "  " + found.dur.toFixed(3) + " us\\n" + JSON.stringify(found.args, null, 1) : "";
});
window.addEventListener("resize", draw);
draw();
</script></body></html>
"""


def page(title: str, events: list[dict]) -> str:
    data = json.dumps(events).replace("</", "<\\/")  # no text of the program ends the script
    head, _, tail = PAGE.replace("TITLE", html.escape(f"understudy trace: {title}")).partition("EVENTS")
    return head + data + tail
