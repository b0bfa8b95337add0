/**
 * How many test files run at a time: as many as keep the processors busy. Most files wait, for leases that run out or for
 * servers that choose a leader; some compute. So another one begins whenever the processors had time to spare.
 */
import { cpus } from "node:os";
import { setTimeout as wait } from "node:timers/promises";

/** Also on a machine that has other things to do. */
const LEAST = 3;
/** With more, all of them may want to compute at once, and those that live by the clock are late. */
const MOST = 14;
const LOOK_MS = 100;
/** A file needs so long until it shows how much it computes. */
const SETTLE_LOOKS = 3;
/** Of all processors, over the last looks. */
const SPARE = 0.25;

interface Moment {
  readonly idle: number;
  readonly all: number;
}

export class Pace {
  #running = 0;
  #moments: readonly Moment[] = [moment()];
  /** The most that ran at a time, for the last line of the run. */
  mostAtOnce = 0;

  /** Resolves when another file may begin. */
  async next(): Promise<void> {
    while (this.#running >= LEAST && !(this.#running < MOST && this.#spare() > SPARE)) await this.#look();
    this.#moments = [moment()];
    this.#running += 1;
    this.mostAtOnce = Math.max(this.mostAtOnce, this.#running);
  }

  ended(): void {
    this.#running -= 1;
  }

  async #look(): Promise<void> {
    await wait(LOOK_MS);
    this.#moments = [...this.#moments, moment()].slice(-1 - SETTLE_LOOKS);
  }

  /** The share of idle time since a few looks ago. None as long as the last file that began has not settled. */
  #spare(): number {
    const [first] = this.#moments;
    const last = this.#moments.at(-1);
    if (first === undefined || last === undefined || this.#moments.length <= SETTLE_LOOKS) return 0;
    return (last.idle - first.idle) / Math.max(1, last.all - first.all);
  }
}

function moment(): Moment {
  const times = cpus().map((cpu) => cpu.times);
  return {
    idle: sum(times.map(({ idle }) => idle)),
    all: sum(times.map(({ user, nice, sys, idle, irq }) => user + nice + sys + idle + irq)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
