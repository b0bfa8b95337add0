/** The benchmark's arithmetic and its pictures: what can be checked without running it. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { readArguments } from "../../bench/arguments.ts";
import { randomNumbers, shuffled } from "../../bench/random.ts";
import { RECORD_FORMAT, type RunRecord } from "../../bench/record.ts";
import { agrees, writeAgreement } from "../../bench/report/agreement.ts";
import { formatRatio } from "../../bench/report/format.ts";
import { writeMarkdown } from "../../bench/report/markdown.ts";
import { isTie, ratioOf, statedSpread } from "../../bench/report/ratios.ts";
import { reportOn } from "../../bench/report/report.ts";
import { median, summarize } from "../../bench/report/statistics.ts";
import { writeTable } from "../../bench/report/table.ts";

const rounds = (...values: readonly number[]): Map<string, number> =>
  new Map(values.map((value, round) => [String(round), value]));

test("the median of an even number lies between the two in the middle", () => {
  assert.equal(median([3, 1, 2]), 2);
  assert.equal(median([4, 1, 2, 3]), 2.5);
  assert.throws(() => median([]), RangeError);
});

test("a ratio is taken round by round, so that a machine that slows down for both changes nothing", () => {
  const ratio = ratioOf(rounds(200, 20, 2), rounds(100, 10, 1), "higher");
  assert.deepEqual(ratio, { median: 2, low: 2, high: 2, count: 3 });
  assert.equal(ratioOf(rounds(1), rounds(3), "lower")?.median, 3);
  assert.equal(ratioOf(rounds(1), new Map([["7", 1]]), "lower"), undefined);
  assert.equal(ratioOf(rounds(5), rounds(0), "higher")?.median, Number.POSITIVE_INFINITY);
});

test("a difference is a tie when it is small and does not come again, or when rounds disagree", () => {
  assert.equal(isTie(summarize([1.3])), true, "one figure decides nothing");
  assert.equal(isTie(summarize([1.3, 1.2, 1.4])), false);
  assert.equal(isTie(summarize([0.7, 0.8, 0.75])), false);
  assert.equal(isTie(summarize([1.05, 1.2, 1.4])), true);
  assert.equal(isTie(summarize([0.9, 3, 3])), true);
  assert.equal(isTie(summarize([2])), false, "a large difference is no tie");
  assert.equal(formatRatio(summarize([0.9, 3, 3])), "≈ 3.0 × (0.90 – 3.0)");
});

test("the stated spread is how far rounds lie from their median", () => {
  assert.equal(statedSpread([summarize([2])]), undefined);
  const spread = statedSpread([summarize([1, 2, 4]), summarize([2, 2, 2])]);
  assert.deepEqual([spread?.worst, spread?.count], [2, 2]);
});

test("the same seed gives the same order", () => {
  const order = (seed: number): readonly number[] => shuffled([1, 2, 3, 4, 5, 6, 7, 8], randomNumbers(seed));
  assert.deepEqual(order(7), order(7));
  assert.notDeepEqual(order(7), order(8));
  assert.deepEqual(
    order(7).toSorted((a, b) => a - b),
    [1, 2, 3, 4, 5, 6, 7, 8],
  );
});

test("arguments: sizes, and files with or without an option that takes them", () => {
  assert.deepEqual(readArguments(["--levels", "1000,10", "--load-seconds", "5"]).sizes, {
    levels: [10, 1000],
    loadMs: 5000,
  });
  assert.deepEqual(readArguments(["--report", "a.json", "b.json"]).report, ["a.json", "b.json"]);
  assert.throws(() => readArguments(["a.json"]), /belongs to no option/);
  assert.throws(() => readArguments(["--rounds", "0"]), /from 1/);
});

test("table, page and charts of several runs: ratios first, well-formed, with words for what is drawn", () => {
  const report = reportOn([record(1), record(1.1)]);
  const { text, charts } = writeMarkdown(report, "benchmarks");
  assert.ok(text.indexOf("How many times better") < text.indexOf("## Figures"));
  assert.match(text, /\| 2\.0 × \(2\.0 – 2\.0\)/);
  assert.match(writeTable(report), /Stated spread: half of all ratios stay within 1\.00 ×/);
  assert.match(text, /Warning: the machine was not quiet\. 4 of 16/);
  assert.deepEqual(
    charts.map(({ file }) => file),
    ["ratios-own.svg", "drain.svg", "growth.svg"],
  );
  for (const { svg, file } of charts) {
    assert.equal(problemOf(svg), undefined, file);
    assert.match(svg, /<title id="title">[^<]+<\/title>\s*<desc id="says">[^<]+<\/desc>/);
    assert.match(svg, /prefers-color-scheme:dark/);
    assert.ok(!/NaN|Infinity|undefined/.test(svg), file);
  }
  assert.equal(agrees(report, reportOn([record(3)])), true);
});

test("runs that have no ratio in common do not agree", () => {
  const run = record(1);
  const report = reportOn([run]);
  const other = reportOn([{ ...run, samples: run.samples.filter(({ subject }) => subject === "own") }]);
  assert.equal(agrees(report, other), false);
  assert.match(writeAgreement(report, other), /^The two runs have no ratio in common/);
});

/** `slow`: a machine on which everything takes so much longer. */
function record(slow: number): RunRecord {
  const subject = (name: string, more: object) => ({
    name,
    title: `${name} <&> "it"`,
    durability: "all",
    setup: "",
    ...more,
  });
  const level = (count: number) =>
    ({ name: `submit-${count}`, title: `${count}`, unit: "µs/item", better: "lower" }) as const;
  return {
    format: RECORD_FORMAT,
    at: `2026-01-0${Math.round(slow)}T00:00:00.000Z`,
    command: "npm run bench",
    seed: 1,
    rounds: 2,
    seconds: 60,
    machine: { processor: "one", cores: 2, memoryGiB: 1, system: "any", node: "24", sqlite: "3" },
    versions: [],
    stores: [{ name: "store", settings: "none" }],
    subjects: [
      subject("own", { class: "synced", baseline: true }) as RunRecord["subjects"][number],
      subject("peer", { class: "synced", package: "peer" }) as RunRecord["subjects"][number],
    ],
    workloads: [
      {
        name: "drain-1",
        group: "drain",
        title: "drain",
        metrics: [{ name: "rate", title: "", unit: "items/s", better: "higher" }],
      },
      { name: "backlog", group: "backlog", title: "backlog", metrics: [level(1000), level(1_000_000)] },
    ],
    samples: [0, 1].flatMap((round) =>
      ["own", "peer"].flatMap((name) => {
        const better = name === "own" ? 2 : 1;
        const machine = { loopMs: 10 * slow, syncMs: 1, othersShare: round === 1 && name === "own" ? 0.9 : 0.01 };
        return [
          { workload: "drain-1", subject: name, round, values: { rate: (100 * better) / slow }, machine },
          {
            workload: "backlog",
            subject: name,
            round,
            values: { "submit-1000": [slow / better, slow / better], "submit-1000000": slow / better },
            machine,
          },
        ];
      }),
    ),
    missing: [],
    leftOut: [],
    remarks: [],
  };
}

/** Every element is closed, in order, and there is nothing between them that would have to be escaped. */
function problemOf(xml: string): string | undefined {
  const open: string[] = [];
  for (const [, text = "", tag = ""] of xml.matchAll(/([^<]*)(<[^>]*>|$)/g)) {
    if (/&(?!amp;|lt;|gt;|quot;)/.test(text) || text.includes(">")) return `not escaped: ${text}`;
    if (tag === "" || tag.endsWith("/>")) continue;
    const name = /^<\/?([\w-]+)/.exec(tag)?.[1] ?? "";
    if (!tag.startsWith("</")) open.push(name);
    else if (open.pop() !== name) return `closes what is not open: ${tag}`;
  }
  return open.length === 0 ? undefined : `never closed: ${open.join(" ")}`;
}
