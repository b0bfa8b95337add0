/** The report as one page that needs nothing but itself. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Judgement } from "../checker/check.ts";
import { figuresOf } from "../checker/figures.ts";
import { escapeHtml } from "./escape-html.ts";
import { figureRows } from "./figure-rows.ts";
import { pageData } from "./page-data.ts";
import { rules, verdictOf } from "./text.ts";

const MOST_SHOWN = 200;

const style = readFileSync(join(import.meta.dirname, "page.css"), "utf8");
const script = readFileSync(join(import.meta.dirname, "page.browser.js"), "utf8");

export function page(judgement: Judgement): string {
  const { evidence, violations, unjudged, gaps } = judgement;
  const { store, seed, control, leaseMs } = evidence.rules;
  const figures = figuresOf(evidence);
  const data = pageData(evidence, violations);
  const look = violations.length > 0 ? "broken" : gaps.length > 0 ? "open" : "good";
  const byRule = Map.groupBy(violations, ({ rule }) => rule);
  const what = `${store}, seed ${seed}${control === undefined ? "" : `, with the planted flaw “${control}”`}`;
  const title = `Baton chaos run: ${what}`;
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeHtml(title)}</title>
<style>
${style}</style>
<header class="${look}">
  <p>${escapeHtml(what)}</p>
  <h1>${escapeHtml(verdictOf(judgement))}</h1>
  <p>${data.rows.length} keys, ${data.workers.length} workers, a lease of ${leaseMs / 1_000} s, ${figures.faults} faults in ${Math.round(figures.forMs / 1_000)} s.</p>
${gaps.map((gap) => `  <p>${escapeHtml(gap)}</p>\n`).join("")}</header>
<main>
<p>Baton gives each <b>key</b> (a car, a customer, an account) to one worker at a time. A worker holds a key under a <b>lease</b>: a
right that runs out unless it is renewed. In this run real processes were killed, stopped and cut off from the store on purpose; each wrote
down what it did, and a separate program compared what they wrote with what Baton promises.</p>
<h2>Promises</h2>
<ul class="promises">
${rules()
  .map(([rule, promise]) => {
    const times = byRule.get(rule)?.length ?? 0;
    const isOpen = times === 0 && (unjudged.has(rule) || gaps.length > 0);
    const said = times > 0 ? `broken ${times}×` : unjudged.has(rule) ? "too few" : isOpen ? "?" : "kept";
    return `<li class="${isOpen ? "open" : times === 0 ? "kept" : "broken"}"><span>${said}</span> ${escapeHtml(promise)}</li>`;
  })
  .join("\n")}
</ul>
${violationList(violations.map(({ text }) => text))}
<h2>Figures</h2>
<table class="figures">
${figureRows(figures)
  .map(
    ({ name, value, meaning }) =>
      `<tr><th>${escapeHtml(name)}</th><td>${escapeHtml(value)}</td><td>${escapeHtml(meaning)}</td></tr>`,
  )
  .join("\n")}
</table>
<h2>Who had which key, and when</h2>
<p>One row per key, time from left to right. A bar is a lease: one worker has the key and works on one item. Bars of one row must never overlap.
Rows with trouble come first. Point at anything to read what it is; drag to move, turn the wheel or press the buttons to look closer.</p>
<div class="legend">
<div id="workers"></div>
<div>
<span><i class="bar"></i> done</span>
<span><i class="bar retry"></i> failed on purpose, tried again</span>
<span><i class="bar dead"></i> failed for good or taken back, on purpose</span>
<span><i class="bar lost"></i> lease lost: its worker was hit</span>
<span><i class="bar again"></i> the item had run before</span>
<span><i class="mark loss"></i> a fault took the key from its worker</span>
<span><i class="band"></i> a fault that hit everybody</span>
<span><i class="tick"></i> a fault that hit one process</span>
<span><i class="mark violation"></i> a promise was broken</span>
</div>
</div>
<div class="tools">
<button data-zoom="0">Whole run</button><button data-zoom="60000">1 minute</button><button data-zoom="20000">20 s</button><button data-zoom="5000">5 s</button>
<label><input type="checkbox" id="troubled"> only keys that were lost or broken</label>
<output id="window"></output>
</div>
<div id="timeline"><canvas id="axis"></canvas><canvas id="rows"></canvas><div id="tip" hidden></div></div>
<h2>Faults</h2>
<table class="faults">
${data.faults
  .map(
    ({ from, to, story }) =>
      `<tr><td>${(from / 1_000).toFixed(1)} s</td><td>${((to - from) / 1_000).toFixed(1)} s long</td><td>${escapeHtml(story)}</td></tr>`,
  )
  .join("\n")}
</table>
</main>
<script type="application/json" id="data">${JSON.stringify(data).replaceAll("<", "\\u003c")}</script>
<script>
${script}</script>
</html>
`;
}

function violationList(texts: readonly string[]): string {
  if (texts.length === 0) return "";
  const more = texts.length > MOST_SHOWN ? `<p>… and ${texts.length - MOST_SHOWN} more.</p>` : "";
  const list = texts
    .slice(0, MOST_SHOWN)
    .map((text) => `<li>${escapeHtml(text)}</li>`)
    .join("\n");
  return `<h2>What was broken</h2>\n<ol class="violations">\n${list}\n</ol>\n${more}`;
}
