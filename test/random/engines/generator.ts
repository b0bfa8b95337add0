import type { Random } from "../../kit/random.ts";
import {
  type Burst,
  type EndedWish,
  type EndingWish,
  type Entry,
  KEYS,
  type RenewalWish,
  type Script,
  type Step,
  type Time,
} from "./script.ts";

/** What a store allows a script to count on. */
export interface Allowance {
  /** `any`: whatever is asked for at once takes effect in its order. `key`: only what is submitted for one key. */
  readonly bursts: "any" | "key";
  /** The same for what is submitted in one call. */
  readonly entries: "any" | "key";
  /** An item that lets others pass comes back behind the one that its key would begin next. Otherwise it comes back before that one. */
  readonly yieldsBehindNext: boolean;
  /** What runs out or comes due is seen as soon as it has. Otherwise nothing does so in a script. */
  readonly timed: boolean;
  /** Queues are cheap enough to have levels of their own. */
  readonly ownLevels: boolean;
  /** One script in so many has handles of its own, and closes them. */
  readonly ownHandlesOneIn: number;
  /** An id can be forgotten in the moment in which its item ends. */
  readonly forgetsAtOnce: boolean;
  /** What is to be forgotten is gone within a known time. */
  readonly forgetsOnTime: boolean;
  /** Ends of a script; its waits divide it into parts. */
  readonly steps: number;
  readonly waits: number;
}

/** And its engine. */
export interface Ability extends Allowance {
  /** It grants runs of more than one item. */
  readonly runs: boolean;
}

const HANDLES = 3;
const IDS = 9;
const NO_LIMIT = 1_000_000;
/** So many of the bursts begin the life of an item; half of these that of a run, where there are runs. */
const LIFE = 0.2;
/** More than any run has: all of it. */
const ALL = 64;
const LEVELS: readonly (readonly string[])[] = [
  ["high", "normal", "low"],
  ["high", "normal", "low"],
  ["only"],
  ["a", "b", "c", "d", "e"],
];

/** How likely each kind of step is. A script draws its own, so that some do little else than one thing. */
type Mood = readonly (readonly [Step["do"], number])[];
const MOOD: Mood = [
  ["submit", 26],
  ["claim", 18],
  ["settle", 20],
  ["renew", 5],
  ["hold", 4],
  ["cancel", 6],
  ["pause", 4],
  ["revive", 6],
  ["find", 4],
  ["outcome", 3],
  ["keys", 3],
  ["dead", 2],
  ["queues", 2],
];

export function makeScript(random: Random, allowance: Ability): Script {
  const ownHandles = random.chance(1 / allowance.ownHandlesOneIn);
  const maker = new Maker(random, ownHandles, allowance);
  return {
    levels: maker.levels,
    handles: HANDLES,
    ownHandles,
    bursts: maker.bursts(),
  };
}

class Maker {
  readonly levels: readonly string[];
  readonly #random: Random;
  readonly #ownHandles: boolean;
  readonly #allowance: Ability;
  readonly #mood: Mood;
  /** Most scripts stay on few keys, where things meet. */
  readonly #keys: number;
  readonly #ids: number;
  readonly #timed: number;
  readonly #keyLimit: number;
  readonly #queueLimit: number;

  constructor(random: Random, ownHandles: boolean, allowance: Ability) {
    this.#random = random;
    this.#ownHandles = ownHandles;
    this.#allowance = allowance;
    this.levels = (allowance.ownLevels ? random.pick(LEVELS) : LEVELS[0]) ?? [];
    this.#mood = MOOD.map(([kind, weight]) => [kind, weight * random.pick([0.5, 1, 1, 1, 2.5])]);
    this.#keys = random.pick([1, 2, 3, KEYS.length, KEYS.length]);
    this.#ids = random.pick([3, IDS, IDS]);
    this.#timed = random.pick([0, 0, 0.15, 0.4, 0.7]);
    this.#keyLimit = random.between(1, 3);
    this.#queueLimit = random.between(1, 6);
  }

  bursts(): readonly Burst[] {
    const { steps, waits } = this.#allowance;
    const bursts: Burst[] = [];
    const every = Math.ceil(steps / (waits + 1));
    let next = every;
    for (let count = 0; count < steps;) {
      const some = this.#random.chance(LIFE) ? this.#someLife() : [this.#burst()];
      bursts.push(...some);
      for (const burst of some) count += burst.length;
      if (count < next || count >= steps) continue;
      next += every;
      const wait: Burst = [{ do: "wait", by: 0, units: this.#random.pick([1, 1, 2]) }];
      bursts.push(...(this.#allowance.timed && this.#random.chance(0.5) ? this.#around(wait) : [wait]));
    }
    return bursts;
  }

  #someLife(): readonly Burst[] {
    return this.#allowance.runs && this.#random.chance(0.5) ? this.#lifeOfRun() : this.#life();
  }

  /** Several items of one key wait, one lease covers them, and then things happen to it and to them. */
  #lifeOfRun(): readonly Burst[] {
    const random = this.#random;
    const by = this.#handle();
    const other = this.#handle();
    const queue = this.#queue();
    const key = this.#key();
    const level = random.between(0, this.levels.length - 1);
    const entry = (wish: Partial<Entry>): Entry => ({
      ...this.#entry(queue),
      delay: "none",
      key,
      level,
      mode: "fifo",
      keyLimit: NO_LIMIT,
      queueLimit: NO_LIMIT,
      ...wish,
    });
    const submit = (wish: Partial<Entry>): Step => ({
      do: "submit",
      by: random.pick([by, other]),
      entries: [entry(wish)],
    });
    const claim = (): Step => ({
      do: "claim",
      by,
      queue,
      max: 3,
      lease: this.#time(["soon"]),
      items: random.pick([2, 5, 5, ALL]),
    });
    const lease = (): number => random.pick([0, 0, 0, 1]);
    const renew = (): Step => {
      const ended = this.#ended();
      return { do: "renew", by, twice: random.chance(0.2), entries: [{ ...this.#renewal(), lease: lease(), ended }] };
    };
    const settle = (): Step => {
      const ending = this.#anyEnding();
      const entries = [{ lease: lease(), ...this.#endedIf(0.8), ending }];
      return { do: "settle", by, twice: random.chance(0.2), entries };
    };
    const meanwhile = (): Step =>
      random.pick<() => Step>([
        () => ({ do: "cancel", by: other, queue, item: random.between(0, 3) }),
        () => ({ do: "cancel", by: other, queue, item: random.between(0, 3) }),
        renew,
        renew,
        () => submit({ mode: "latest" }),
        () => submit({ mode: random.pick(["fifo", "strict"]), level: random.pick([0, level]) }),
        () => submit({ delay: this.#time(["soon"]) }),
        () => ({ do: "pause", by: other, queue, key, paused: random.chance(0.5) }),
        () => ({ do: "find", by: other, queue, item: random.between(0, 3) }),
        () => ({ do: "keys", by: other, queue, leased: false, limit: 6 }),
        () => ({ do: "queues", by: other }),
      ])();
    const steps = [
      { do: "submit", by, entries: Array.from({ length: random.between(2, 6) }, () => entry({})) } as const,
      claim(),
      ...this.#some(3, meanwhile),
      settle(),
      ...this.#some(2, meanwhile),
      claim(),
      ...this.#some(2, meanwhile),
      settle(),
    ];
    return steps.map((step) => [step]);
  }

  /** What happens to one item, one thing after the other: left to chance alone, few would get far. */
  #life(): readonly Burst[] {
    const random = this.#random;
    const by = this.#handle();
    const other = this.#handle();
    const queue = this.#queue();
    const key = this.#key();
    const submit = (wish: Partial<Entry>): Step => ({
      do: "submit",
      by: random.pick([by, other]),
      entries: [{ ...this.#entry(queue), delay: "none", key, ...wish }],
    });
    const claim = (): Step => ({
      do: "claim",
      by,
      queue,
      max: 3,
      lease: this.#time(["soon"]),
      ...this.#items(),
    });
    const settle = (): Step => {
      const ending = this.#anyEnding();
      const entries = [{ lease: random.pick([0, 0, 1]), ...this.#endedIf(0.3), ending }];
      return { do: "settle", by, twice: random.chance(0.1), entries };
    };
    const meanwhile = (): Step =>
      random.pick<() => Step>([
        () => ({ do: "cancel", by: other, queue, item: random.pick([0, 0, 1]) }),
        () => ({ do: "cancel", by: other, queue, item: 0 }),
        () => ({ do: "renew", by, entries: [{ ...this.#renewal(), lease: 0 }] }),
        () => submit({ mode: "latest" }),
        () => submit({ level: 0 }),
        () => submit({ delay: this.#time(["soon"]) }),
        () => ({ do: "pause", by: other, queue, key, paused: random.chance(0.5) }),
        () => ({ do: "hold", by: other, queue, key, lease: this.#time(["soon"]) }),
        () => ({ do: "revive", by: other, queue, action: random.pick(["retry", "drop"]) }),
        claim,
        settle,
      ])();
    const steps = [
      submit({}),
      claim(),
      ...this.#some(2, meanwhile),
      settle(),
      ...this.#some(2, meanwhile),
      claim(),
      settle(),
    ];
    return steps.map((step) => [step]);
  }

  /** A lease that runs out, a back-off that ends, an id that is forgotten: and what is asked first after that. */
  #around(wait: Burst): readonly Burst[] {
    const random = this.#random;
    const by = this.#handle();
    const queue = this.#queue();
    const key = this.#key();
    const claim: Step = {
      do: "claim",
      by,
      queue,
      max: 3,
      lease: random.pick(["soon", "soon", "far"]),
      ...this.#items(),
    };
    const settle = (ending: EndingWish): Step => ({
      do: "settle",
      by,
      twice: false,
      entries: [0, 1].map((lease) => Object.assign(this.#endedIf(0.3), { lease, ending })),
    });
    const line = this.#allowance.runs ? random.between(1, 4) : 1;
    const before: readonly Step[] = [
      {
        do: "submit",
        by,
        entries: Array.from({ length: line }, () => ({ ...this.#entry(queue), delay: "none", key })),
      },
      claim,
      random.pick<Step>([
        { do: "cancel", by, queue, item: random.pick([0, 1]) },
        settle({ type: "retry", delay: "soon", place: this.#place("soon") }),
        settle({ type: "done" }),
        { do: "queues", by },
      ]),
    ];
    const after = random.pick<Step>([
      settle(this.#anyEnding()),
      settle(this.#anyEnding()),
      {
        do: "renew",
        by,
        entries: [0, 1].map((lease) => Object.assign(this.#endedIf(0.5), { lease, time: "far" } as const)),
      },
      { do: "hold", by, queue, key, lease: "far" },
      { do: "cancel", by, queue, item: random.pick([0, 1]) },
      { do: "keys", by, queue, leased: true, limit: 6 },
      { do: "submit", by, entries: [{ ...this.#entry(queue), mode: "strict", key }] },
    ]);
    return [...before.map((step) => [step]), wait, [after]];
  }

  #anyEnding(): EndingWish {
    const random = this.#random;
    const type = random.pick(["done", "retry", "retry", "dead", "dead", "cancelled", "release", "release"] as const);
    if (type !== "retry") return { type };
    const delay = random.chance(0.5) ? "none" : this.#time(["soon", "later"]);
    return { type, delay, place: this.#place(delay) };
  }

  #burst(): Burst {
    const random = this.#random;
    const by = this.#handle();
    if (this.#ownHandles && random.chance(0.06)) return [{ do: random.pick(["reopen", "restart"]), by }];
    if (random.chance(0.7)) return [this.#step(by)];
    const size = random.between(2, 6);
    if (this.#allowance.bursts === "key") {
      const { queue, key } = this.#entry(this.#queue());
      return Array.from({ length: size }, () => ({
        do: "submit",
        by,
        entries: this.#some(2, () => ({ ...this.#entry(queue), key })),
      }));
    }
    const burst = Array.from({ length: size }, () => {
      const step = this.#step(by);
      return step.do === "settle" ? { ...step, twice: false } : step;
    });
    // A claim is served with what is ready when its turn is over, so nothing may follow it in the same turn.
    return [...burst.filter((step) => step.do !== "claim"), ...burst.filter((step) => step.do === "claim").slice(0, 1)];
  }

  #step(by: number): Step {
    const random = this.#random;
    const queue = this.#queue();
    switch (this.#kind()) {
      case "submit":
        return { do: "submit", by, entries: this.#entries(queue) };
      case "claim":
        return {
          do: "claim",
          by,
          queue,
          max: random.pick([1, 1, 2, 3, 10]),
          lease: this.#time(["soon", "later"]),
          ...(random.chance(0.2) ? {} : this.#items()),
        };
      case "settle":
        return {
          do: "settle",
          by,
          twice: random.chance(0.1),
          entries: this.#some(4, () => ({ lease: this.#recent(), ...this.#endedIf(0.4), ending: this.#ending() })),
        };
      case "renew":
        return { do: "renew", by, twice: random.chance(0.1), entries: this.#some(3, () => this.#renewal()) };
      case "hold":
        return { do: "hold", by, queue, key: this.#key(), lease: this.#time(["soon"]) };
      case "cancel":
        return { do: "cancel", by, queue, item: this.#recent() };
      case "pause": {
        // Paused less often than resumed: otherwise most of a script happens behind closed doors.
        const paused = random.chance(0.4);
        return random.chance(0.3)
          ? { do: "pause", by, queue, paused }
          : { do: "pause", by, queue, paused, key: this.#key() };
      }
      case "revive": {
        const action = random.pick(["retry", "retry", "drop"] as const);
        if (random.chance(0.4)) return { do: "revive", by, queue, action };
        return { do: "revive", by, queue, action, items: this.#some(3, () => this.#recent()) };
      }
      case "outcome":
        return { do: "outcome", by, queue, item: this.#recent() };
      case "keys":
        return {
          do: "keys",
          by,
          queue,
          leased: random.chance(0.4),
          limit: random.between(1, 6),
          ...(random.chance(0.4) ? { after: this.#key() } : {}),
        };
      case "dead":
        return {
          do: "dead",
          by,
          queue,
          limit: random.between(1, 4),
          ...(random.chance(0.4) ? { after: this.#recent() } : {}),
        };
      case "queues":
        return { do: "queues", by };
      default:
        return { do: "find", by, queue, item: this.#recent() };
    }
  }

  #kind(): Step["do"] {
    let left = this.#random.next() * this.#mood.reduce((sum, [, weight]) => sum + weight, 0);
    return this.#mood.find(([, weight]) => (left -= weight) < 0)?.[0] ?? "find";
  }

  #entry(queue: number): Entry {
    const random = this.#random;
    const id = random.chance(0.4) ? random.between(1, this.#ids) : undefined;
    const isKept = random.chance(0.65) || (id !== undefined && !this.#allowance.forgetsAtOnce);
    return {
      queue,
      key: this.#key(),
      ...(id === undefined ? {} : { id }),
      level: random.chance(0.02) ? -1 : random.between(0, this.levels.length - 1),
      mode: random.pick(["fifo", "fifo", "fifo", "latest", "strict"]),
      delay: random.chance(0.75) ? "none" : this.#time(["soon", "later"]),
      keep: isKept ? (this.#allowance.forgetsOnTime ? this.#time(["soon", "later"]) : "far") : "none",
      keyLimit: random.chance(0.3) ? this.#keyLimit : NO_LIMIT,
      queueLimit: random.chance(0.15) ? this.#queueLimit : NO_LIMIT,
      bytes: random.chance(0.2),
      headers: random.chance(0.2),
    };
  }

  #entries(queue: number): readonly Entry[] {
    const entries = this.#some(4, () => this.#entry(queue));
    const isOpen = entries.some(({ id, queueLimit }) => id !== undefined || queueLimit < NO_LIMIT);
    if (this.#allowance.entries === "any" || !isOpen) return entries;
    const key = this.#key();
    return entries.map((entry) => Object.assign(entry, { key }));
  }

  #ending(): EndingWish {
    const random = this.#random;
    const roll = random.between(1, 10);
    if (roll <= 3) {
      if (random.chance(0.2)) return { type: "done", resultMissing: "too large" };
      return { type: "done", ...(random.chance(0.5) ? { result: `result ${roll}` } : {}) };
    }
    if (roll <= 6) {
      const delay = random.chance(0.5) ? "none" : this.#time(["soon", "later"]);
      return { type: "retry", delay, place: this.#place(delay) };
    }
    if (roll <= 8) return { type: "dead" };
    return { type: roll === 9 ? "cancelled" : "release" };
  }

  #place(delay: Time): "keep" | "yield" {
    const comesBack = delay === "soon" || delay === "later";
    return comesBack && !this.#allowance.yieldsBehindNext ? "keep" : this.#random.pick(["keep", "yield"]);
  }

  #renewal(): RenewalWish {
    const random = this.#random;
    return {
      lease: this.#recent(),
      time: this.#time(["soon", "later"]),
      ...(random.chance(0.5) ? { progress: random.between(0, 8) / 8 } : {}),
      ...this.#endedIf(0.4),
    };
  }

  /** The most items of a run. */
  #items(): { readonly items?: number } {
    return this.#allowance.runs ? { items: this.#random.pick([1, 2, 5, ALL]) } : {};
  }

  #endedIf(chance: number): { readonly ended?: readonly EndedWish[] } {
    const ended = this.#allowance.runs && this.#random.chance(chance) ? this.#ended() : undefined;
    return ended === undefined ? {} : { ended };
  }

  /** None, some, all before the last. After a renewal that named fewer, some of these are not covered any more. */
  #ended(): readonly EndedWish[] {
    const random = this.#random;
    const length = random.pick([0, 1, 1, 2, 3, ALL]);
    return Array.from({ length }, () =>
      random.pick<EndedWish>([
        { type: "done" },
        { type: "done", result: "result of a run" },
        { type: "done", resultMissing: "too large" },
        { type: "cancelled" },
      ]),
    );
  }

  #time(short: readonly Time[]): Time {
    return this.#allowance.timed && this.#random.chance(this.#timed) ? this.#random.pick(short) : "far";
  }

  #handle(): number {
    return Math.min(this.#random.between(0, HANDLES - 1), this.#random.between(0, HANDLES - 1));
  }

  #queue(): number {
    return this.#random.chance(0.8) ? 0 : 1;
  }

  #key(): number {
    return Math.min(this.#random.between(0, this.#keys - 1), this.#random.between(0, this.#keys - 1));
  }

  /** The last few matter most; now and then an old one is brought up. */
  #recent(): number {
    return this.#random.chance(0.85) ? this.#random.between(0, 5) : this.#random.between(0, 40);
  }

  #some<T>(most: number, make: () => T): readonly T[] {
    return Array.from({ length: this.#random.chance(0.6) ? 1 : this.#random.between(2, most) }, make);
  }
}
