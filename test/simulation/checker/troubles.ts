import type { Happening } from "../history.ts";

type Stop = Extract<Happening, { type: "stop" }>;
type Fault = Extract<Happening, { type: "fault" }>;

/** What went wrong in each process, and when it was asked to stop. */
export class Troubles {
  readonly counts: Map<string, number> = new Map();
  readonly #faults = new Map<string, Fault[]>();
  readonly #stops = new Map<string, Stop>();
  follow(happening: Happening): void {
    if (happening.type === "stop") this.#stops.set(happening.worker, happening);
    if (happening.type !== "fault") return;
    const { process, kind } = happening;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
    const faults = this.#faults.get(process);
    if (faults === undefined) this.#faults.set(process, [happening]);
    else faults.push(happening);
  }

  of(process: string): readonly Fault[] {
    return this.#faults.get(process) ?? [];
  }

  /** Also what began before and ended in that time: its end is written down too. */
  between(process: string, from: number, until: number): readonly Fault[] {
    return this.of(process).filter(({ at }) => at >= from && at <= until);
  }

  stopOf(worker: string | undefined): Stop | undefined {
    return worker === undefined ? undefined : this.#stops.get(worker);
  }

  /** The process could act at every moment, by a clock that nobody touched. */
  wasFree(process: string, from: number, until: number): boolean {
    const between = this.between(process, from, until);
    return !between.some(
      ({ kind }) => kind === "crash" || kind === "pause" || kind === "resume" || kind === "clock step",
    );
  }

  /** The process stood still at `moment`, and came to itself at most `awakeMs` before `until`. */
  wasPaused(process: string, moment: number, until: number, awakeMs: number): boolean {
    let pausedAt: number | undefined;
    let lastPausedAt: number | undefined;
    let resumedAt = -Infinity;
    for (const { at, kind } of this.of(process)) {
      if (kind === "resume") resumedAt = at;
      if (kind === "pause") lastPausedAt = at;
      // Two pauses with hardly a moment between them are one: what was due in the first may come after the second.
      if (kind === "pause" && at > resumedAt + awakeMs) pausedAt = at;
      // Timers that are late by themselves may be due a little before the pause, and still come after it.
      else if (kind === "resume" && pausedAt !== undefined && pausedAt - awakeMs <= moment && at >= moment) {
        if (until <= at + awakeMs) return true;
      }
    }
    // It stopped itself, by blocking its event loop, in the very moment.
    return lastPausedAt === until;
  }
}
