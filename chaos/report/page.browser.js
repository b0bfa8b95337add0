// Draws the timeline of the report. Plain, and in one piece: it is put into the page as it stands.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const COLOURS = ["#4c78a8", "#59a14f", "#b07aa1", "#76b7b2", "#9c755f", "#7f7fd5", "#c27ba0", "#8a9a5b"];
  const FAULT = "rgb(230, 120, 30)";
  const ROW = 18;
  const BAR = 11;
  const LEFT = 64;
  const AXIS = 44;
  const axis = document.getElementById("axis");
  const canvas = document.getElementById("rows");
  const tip = document.getElementById("tip");
  const troubled = document.getElementById("troubled");
  let from = 0;
  let to = data.lengthMs;

  document.getElementById("workers").innerHTML = data.workers
    .map((name, index) => `<span><i style="background:${colour(index)}"></i> ${name}</span>`)
    .join("");

  function colour(worker) {
    return COLOURS[worker % COLOURS.length];
  }

  function shown() {
    if (!troubled.checked) return data.rows;
    return data.rows.filter((row) => row.losses.length + row.violations.length > 0);
  }

  function prepare(element, height) {
    const width = element.parentElement.clientWidth;
    const scale = window.devicePixelRatio || 1;
    element.width = width * scale;
    element.height = height * scale;
    element.style.height = `${height}px`;
    const pen = element.getContext("2d");
    pen.scale(scale, scale);
    pen.font = "11px system-ui, sans-serif";
    return { pen, width };
  }

  function draw() {
    const rows = shown();
    drawAxis();
    const { pen, width } = prepare(canvas, rows.length * ROW + 4);
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT, rows.length * ROW + 4);
    pen.clip();
    for (const fault of data.faults) {
      if (!fault.wide) continue;
      pen.fillStyle = "rgba(230, 120, 30, 0.2)";
      pen.fillRect(x(fault.from), 0, Math.max(1, x(fault.to) - x(fault.from)), rows.length * ROW + 4);
    }
    rows.forEach((row, index) => drawRow(pen, row, index * ROW, x));
    pen.restore();
    pen.fillStyle = "#1d2733";
    rows.forEach((row, index) => {
      pen.fillText(row.key, 6, index * ROW + 13);
      pen.fillStyle = "#eef1f5";
      pen.fillRect(0, (index + 1) * ROW, width, 1);
      pen.fillStyle = "#1d2733";
    });
    document.getElementById("window").textContent =
      `${(from / 1000).toFixed(1)} s to ${(to / 1000).toFixed(1)} s of ${(data.lengthMs / 1000).toFixed(1)} s`;
  }

  function drawRow(pen, row, top, x) {
    const y = top + (ROW - BAR) / 2;
    for (const [begin, end, worker, how] of row.leases) {
      if (end < from || begin > to) continue;
      const left = x(begin);
      const width = Math.max(1.2, x(end) - left);
      const kind = how.toLowerCase();
      pen.fillStyle = colour(worker);
      pen.fillRect(left, y, width, BAR);
      if (kind === "l") hatch(pen, left, y, width);
      if ((kind === "r" || kind === "x") && width > 3) {
        pen.fillStyle = kind === "r" ? "#e0a100" : "#1d2733";
        pen.fillRect(left + width - 3, y, 3, BAR);
      }
      if (how !== kind) {
        pen.strokeStyle = "#1d2733";
        pen.lineWidth = 1.4;
        pen.strokeRect(left, y, width, BAR);
      }
    }
    for (const { at } of row.losses) mark(pen, "×", "#d95f02", x(at), top);
    for (const { at } of row.violations) mark(pen, "●", "#b3261e", x(at), top);
  }

  function hatch(pen, left, top, width) {
    pen.save();
    pen.beginPath();
    pen.rect(left, top, width, BAR);
    pen.clip();
    pen.strokeStyle = "rgba(255, 255, 255, 0.85)";
    pen.lineWidth = 1.6;
    for (let at = left - BAR; at < left + width; at += 5) {
      pen.beginPath();
      pen.moveTo(at, top + BAR);
      pen.lineTo(at + BAR, top);
      pen.stroke();
    }
    pen.restore();
  }

  function mark(pen, sign, ink, left, top) {
    pen.save();
    pen.font = "bold 15px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.lineWidth = 3;
    pen.strokeStyle = "white";
    pen.strokeText(sign, left, top + 14);
    pen.fillStyle = ink;
    pen.fillText(sign, left, top + 14);
    pen.restore();
  }

  function drawAxis() {
    const { pen, width } = prepare(axis, AXIS);
    const x = (at) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
    pen.fillStyle = "#5b6876";
    const steps = [100, 200, 500, 1000, 2000, 5000, 10000, 20000, 30000, 60000, 120000, 300000];
    const step = steps.find((one) => (to - from) / one < 14) ?? 600000;
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      pen.fillRect(x(at), AXIS - 8, 1, 8);
      pen.fillText(step < 1000 ? `${(at / 1000).toFixed(1)} s` : `${at / 1000} s`, x(at) + 3, AXIS - 4);
    }
    pen.fillText("faults", 6, 16);
    for (const fault of data.faults) {
      const left = Math.max(LEFT, x(fault.from));
      if (x(fault.wide ? fault.to : fault.from) < LEFT) continue;
      pen.fillStyle = fault.wide ? "rgba(230, 120, 30, 0.45)" : FAULT;
      pen.fillRect(left, 4, fault.wide ? Math.max(3, x(fault.to) - left) : 2, 16);
    }
  }

  function zoomTo(begin, end) {
    const length = Math.min(data.lengthMs, Math.max(50, end - begin));
    from = Math.min(Math.max(0, begin), data.lengthMs - length);
    to = from + length;
    draw();
  }

  function timeAt(event) {
    const box = canvas.getBoundingClientRect();
    return from + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * (to - from);
  }

  function describe(event) {
    const box = canvas.getBoundingClientRect();
    const row = shown()[Math.floor((event.clientY - box.top) / ROW)];
    if (row === undefined) return "";
    const at = timeAt(event);
    const near = ((to - from) / (box.width - LEFT)) * 5;
    const broken = row.violations.find((one) => Math.abs(one.at - at) < near * 1.5);
    if (broken !== undefined) return `Broken: ${broken.text}`;
    const loss = row.losses.find((one) => Math.abs(one.at - at) < near * 1.5);
    if (loss !== undefined) return `${(loss.at / 1000).toFixed(2)} s: ${loss.text}`;
    const lease = row.leases.findLast(([begin, end]) => begin - near / 3 <= at && at <= end + near / 3);
    if (lease !== undefined) {
      const [begin, end, , how, text] = lease;
      const endings = { d: "done", r: "tried again later", x: "dead letter, or taken back", l: "lease lost" };
      const again = how === how.toLowerCase() ? "" : "\nThe item had run before.";
      return `${row.key}: ${text}\n${(begin / 1000).toFixed(3)} s to ${(end / 1000).toFixed(3)} s: ${endings[how.toLowerCase()]}${again}`;
    }
    const fault = data.faults.find((one) => one.wide && one.from <= at && at <= one.to);
    return fault === undefined ? "" : `${(fault.from / 1000).toFixed(2)} s: ${fault.story}`;
  }

  function say(text, event) {
    tip.hidden = text === "";
    tip.textContent = text;
    const box = document.getElementById("timeline").getBoundingClientRect();
    tip.style.left = `${Math.min(event.clientX - box.left + 14, box.width - 320)}px`;
    tip.style.top = `${event.clientY - box.top + 14}px`;
  }

  let dragged;
  canvas.addEventListener("mousemove", (event) => {
    if (dragged !== undefined) {
      const shift = ((event.clientX - dragged.x) / (canvas.clientWidth - LEFT)) * (to - from);
      zoomTo(dragged.from - shift, dragged.from - shift + (to - from));
      return;
    }
    say(describe(event), event);
  });
  canvas.addEventListener("mousedown", (event) => {
    dragged = { x: event.clientX, from };
  });
  window.addEventListener("mouseup", () => {
    dragged = undefined;
  });
  canvas.addEventListener("mouseleave", (event) => say("", event));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.shiftKey && Math.abs(event.deltaY) < Math.abs(event.deltaX)) return;
      event.preventDefault();
      const at = timeAt(event);
      const by = event.deltaY > 0 ? 1.25 : 0.8;
      zoomTo(at - (at - from) * by, at + (to - at) * by);
    },
    { passive: false },
  );
  axis.addEventListener("mousemove", (event) => {
    const box = axis.getBoundingClientRect();
    const at = from + ((event.clientX - box.left - LEFT) / (box.width - LEFT)) * (to - from);
    const near = ((to - from) / (box.width - LEFT)) * 5;
    const fault = data.faults.find((one) => one.from - near <= at && at <= (one.wide ? one.to : one.from) + near);
    say(fault === undefined ? "" : `${(fault.from / 1000).toFixed(2)} s: ${fault.story}`, event);
  });
  axis.addEventListener("mouseleave", (event) => say("", event));
  for (const button of document.querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const length = Number(button.dataset.zoom) || data.lengthMs;
      const middle = (from + to) / 2;
      zoomTo(middle - length / 2, middle + length / 2);
    });
  }
  troubled.addEventListener("change", draw);
  window.addEventListener("resize", draw);
  // A long run at a glance is a grey carpet: begin where something happened.
  const first = data.rows[0]?.violations[0] ?? data.rows[0]?.losses[0];
  if (first !== undefined && data.lengthMs > 60000) zoomTo(first.at - 6000, first.at + 14000);
  else draw();
})();
