/** What page and terminal say in the same words. */
import { formatNumber, formatRange, formatTimes } from "./format.ts";
import type { Report } from "./report.ts";

/** Machine, versions, settings, when and how. */
export function headline({ runs }: Report): readonly string[] {
  const machines = runs.map(
    ({ machine: { processor, cores, memoryGiB, system, node } }) =>
      `${processor}, ${cores} cores, ${memoryGiB} GiB, ${system}, Node ${node}`,
  );
  const seconds = runs.reduce((sum, run) => sum + run.seconds, 0);
  const days = [...new Set(runs.map(({ at }) => at.slice(0, 10)))].join(", ");
  const rounds = runs.map((run) => run.rounds).join(" + ");
  return [
    ...new Set(machines),
    [...new Set(runs.flatMap(({ versions }) => versions))].toSorted().join(", "),
    `Payload 200 bytes; a producer and a worker process, warm before submit, drain, keyed and idle starts are counted; ${rounds} interleaved ${rounds === "1" ? "round" : "rounds"}, ` +
      `${Math.round(seconds / 60)} min in all, on ${days}; order of the subjects by seed ${runs.map(({ seed }) => seed).join(", ")}.`,
  ].filter((line) => line !== "");
}

/** How far rounds lay apart, and how quiet the machine was. */
export function reliability({ spread, quietness, runs }: Report): readonly string[] {
  const { loopMs, syncMs, othersShare, disturbed, measurements, quiet } = quietness;
  const stated =
    spread === undefined
      ? "Stated spread: none, for nothing was measured twice. Take --rounds 3."
      : `Stated spread: half of all ratios stay within ${formatTimes(spread.usual)} of their median from round to round, ` +
        `nine of ten within ${formatTimes(spread.nineOfTen)}, the worst within ${formatTimes(spread.worst)} (${spread.count} ratios). ` +
        "Another run on such a machine may differ by as much.";
  const others =
    othersShare === undefined
      ? ""
      : `; others used ${percent(othersShare.median)} of the cores (up to ${percent(othersShare.high)})`;
  return [
    stated,
    `Calibration before each of ${measurements} measurements: a fixed loop ${formatNumber(loopMs.median)} ms (${formatRange(loopMs)}), ` +
      `a page to the disk ${formatNumber(syncMs.median)} ms (${formatRange(syncMs)})${others}.`,
    ...(quiet ? [] : [warning(disturbed, measurements)]),
    ...(new Set(runs.map(({ machine }) => JSON.stringify(machine))).size > 1
      ? ["Warning: these runs were made on different machines. Only ratios can be read together, not figures."]
      : []),
  ];
}

function warning(disturbed: number, measurements: number): string {
  return (
    `Warning: the machine was not quiet. ${disturbed} of ${measurements} measurements were made while others used it: ` +
    "trust ratios with a narrow range only, and no figure by itself."
  );
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

/** Everything that was not measured, and why. */
export function gaps({ missing, leftOut }: Report): readonly string[] {
  return [
    ...missing.map(({ subject, reason }) => `${subject}: ${reason}`),
    ...leftOut.map(({ subject, reason, workloads }) => `${subject}: ${reason} (${workloads.join(", ")})`),
  ];
}

export function remarkLines({ remarks }: Report): readonly string[] {
  return remarks.map(({ workload, subject, text }) => `${workload} · ${subject}: ${text}`);
}

/** Such as "Redis 7.0.15: appendonly yes, …". */
export function storeLines({ runs }: Report): readonly string[] {
  return [...new Set(runs.flatMap(({ stores }) => stores.map(({ name, settings }) => `${name}: ${settings}`)))];
}
