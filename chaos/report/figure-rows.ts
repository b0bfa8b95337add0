/** The figures of a run, each with a name and a sentence that a person who never saw the code understands. */
import type { Figures } from "../checker/figures.ts";

export interface FigureRow {
  readonly name: string;
  readonly value: string;
  readonly meaning: string;
}

export function figureRows(figures: Figures): readonly FigureRow[] {
  const { accepted, faultsByKind, repeats, repeatsExplained, takeovers, takeoversCounted } = figures;
  const kinds = Object.entries(faultsByKind)
    .toSorted(([, a], [, b]) => b - a)
    .map(([kind, times]) => `${kind} ${times}`)
    .join(", ");
  return [
    row("Items accepted", count(accepted), "pieces of work that the queue promised to keep"),
    row(
      "Items without an answer",
      count(figures.unknown),
      "submitted while the store was out of reach: they may or may not have been accepted",
    ),
    row("Leases", count(figures.leases), "times that a worker was given a key and its next item"),
    row(
      "Effects, and stale ones refused",
      `${count(figures.effects)}, ${count(figures.refused)}`,
      "changes made in the world, and late ones that the fence kept out",
    ),
    row("Faults", `${figures.faults} (${kinds})`, "what was done to processes, store and network"),
    row(
      "Repeats, and explained by a fault",
      `${count(repeats)}, ${count(repeatsExplained)} (${share(repeats, accepted)} of items)`,
      "items that ran again because their worker was lost",
    ),
    row(
      "Takeover p50, p99",
      `${seconds(figures.takeoverP50Ms)}, ${seconds(figures.takeoverP99Ms)} (${takeoversCounted} of ${takeovers} without another fault)`,
      "from the loss of a worker until another had its key",
    ),
    row(
      "Pick-up p50, p99",
      `${milliseconds(figures.pickUpP50Ms)}, ${milliseconds(figures.pickUpP99Ms)}`,
      "from the moment an item could run until a worker had it, while nothing was wrong",
    ),
    row("Drained after", seconds(figures.drainMs), "from the last fault and item until nothing was left"),
    row(
      "Silences of the store",
      count(figures.silences),
      "half seconds and more in which the store answered nobody, for whatever reason",
    ),
    row(
      "Longest call of a worker",
      seconds(figures.longestCallMs),
      "to renew or to settle; while the store is away it takes as long as that, and a lease that runs out meanwhile is lost",
    ),
    row("Length", seconds(figures.forMs), "with draining"),
  ];
}

function row(name: string, value: string, meaning: string): FigureRow {
  return { name, value, meaning };
}

function count(value: number): string {
  return value.toLocaleString("en");
}

function share(part: number, whole: number): string {
  return whole === 0 ? "none" : `${((part / whole) * 100).toFixed(2)} %`;
}

function seconds(ms: number | undefined): string {
  return ms === undefined ? "not seen" : `${(ms / 1_000).toFixed(2)} s`;
}

function milliseconds(ms: number | undefined): string {
  return ms === undefined ? "not seen" : `${ms.toFixed(1)} ms`;
}
