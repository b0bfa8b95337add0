import { BatonError } from "../../../../src/domain/errors.ts";
import type { WorkerEvent } from "../../../../src/worker/events.ts";
import { Outages } from "../../../../src/worker/outages.ts";
import type { Random } from "../../../kit/random.ts";
import { ManualClock } from "../../../manual-clock.ts";
import { addScriptTest, difference } from "./play-scripts.ts";

type Kind = "away" | "full" | "other";

interface Deed {
  readonly kind: "failed" | "worked" | "pause" | "pass" | "close";
  readonly doing: string;
  readonly error: Kind;
  readonly ms: number;
}

const DOINGS = ["asking for work", "settling items", "renewing leases"];
const ERRORS: Record<Kind, unknown> = {
  away: new BatonError("STORE_UNAVAILABLE", "No connection."),
  full: new BatonError("STORE_FULL", "The disk is full."),
  other: new Error("Something else."),
};

function drawDeed(random: Random, pace: number): Deed {
  const kinds = ["failed", "failed", "failed", "worked", "worked", "pause", "pass", "pass", "pass"] as const;
  return {
    kind: random.chance(0.005) ? "close" : random.pick(kinds),
    doing: random.pick(DOINGS),
    error: random.pick(["away", "away", "away", "full", "other"]),
    ms: random.pick([
      random.between(0, 1_500),
      random.between(1, 20_000) * pace,
      1_000,
      10_000,
      60_000 * pace,
      120_000,
    ]),
  };
}

interface Trouble {
  readonly name: string;
  readonly doing: string;
  readonly since: number;
  failures: number;
  lastAt: number;
  /** When the last reminder was, and how long the next one has to wait. */
  toldAt: number;
  waitMs: number;
  wellSince: number | undefined;
  quietMs: number;
}

/** What is promised, written down without timers. */
class OutagesModel {
  readonly story: string[] = [];
  now: number;
  open: Trouble[] = [];
  pauses: { readonly name: string; readonly until: number }[] = [];
  #quietMs = 1_000;
  #lastOverAt = -Infinity;
  #isClosed = false;

  constructor(now: number) {
    this.now = now;
  }

  failed({ doing, error }: Deed): void {
    if (this.#isClosed) return;
    const name = error === "away" ? "away" : `${error} ${doing}`;
    const known = this.open.find((one) => one.name === name && this.now - one.lastAt <= 120_000);
    if (known === undefined) return this.#begin(name, doing);
    known.failures += 1;
    known.lastAt = this.now;
    known.wellSince = undefined;
    if (this.now < known.toldAt + known.waitMs) return;
    known.toldAt = this.now;
    known.waitMs = Math.min(known.waitMs * 2, 600_000);
    this.#tell(`trouble ${doing} ${known.failures} ${this.now - known.since}`);
  }

  worked(doing: string): void {
    for (const trouble of this.open) {
      if (trouble.wellSince !== undefined) continue;
      if (trouble.name === "away") for (const pause of this.pauses.splice(0)) this.#tell(`goes on ${pause.name}`);
      else if (trouble.doing !== doing) continue;
      trouble.wellSince = this.now;
      trouble.quietMs = this.#quietMs;
    }
  }

  close(): void {
    this.#isClosed = true;
    this.open = [];
  }

  pass(ms: number): void {
    const until = this.now + ms;
    for (;;) {
      const over = this.open.filter(({ wellSince }) => wellSince !== undefined);
      const dates = [
        ...over.map((one) => (one.wellSince ?? 0) + one.quietMs),
        ...this.pauses.map((pause) => pause.until),
      ];
      const at = Math.min(...dates);
      if (at > until) break;
      this.now = at;
      for (const pause of this.pauses.filter((one) => one.until === at)) this.#tell(`goes on ${pause.name}`);
      this.pauses = this.pauses.filter((one) => one.until !== at);
      for (const one of over) {
        if ((one.wellSince ?? 0) + one.quietMs !== at) continue;
        this.open = this.open.filter((other) => other !== one);
        this.#lastOverAt = at;
        this.#tell(`recovered ${one.doing} ${one.failures} ${(one.wellSince ?? 0) - one.since}`);
      }
    }
    this.now = until;
  }

  #begin(name: string, doing: string): void {
    this.open = this.open.filter((one) => this.now - one.lastAt <= 120_000);
    if (this.open.length === 0) {
      const isAgain = this.now - this.#lastOverAt < 60_000;
      this.#quietMs = isAgain ? Math.min(2 * this.#quietMs, 60_000) : 1_000;
    }
    const { now } = this;
    this.open.push({
      name,
      doing,
      since: now,
      failures: 1,
      lastAt: now,
      toldAt: now,
      waitMs: 10_000,
      wellSince: undefined,
      quietMs: 0,
    });
    this.#tell(`trouble ${doing} 1 0`);
  }

  #tell(what: string): void {
    this.story.push(`${this.now} ${what}`);
  }
}

function wordsOf(event: WorkerEvent): string {
  if (event.type === "trouble") return `trouble ${event.doing} ${event.failures} ${event.forMs}`;
  if (event.type === "recovered") return `recovered ${event.doing} ${event.failures} ${event.lastedMs}`;
  return event.type;
}

addScriptTest("outages are told as their model tells them, several at once and again and again", {
  setting: (random) => random.pick([0, 1, 1]),
  deed: drawDeed,
  longest: 80,
  play: async (_, deeds) => {
    const clock = new ManualClock();
    const story: string[] = [];
    const tell = (what: string): void => void story.push(`${clock.monotonic()} ${what}`);
    const outages = new Outages(clock, (event) => tell(wordsOf(event)));
    const model = new OutagesModel(clock.monotonic());
    for (const [index, deed] of deeds.entries()) {
      if (deed.kind === "failed") {
        outages.failed(deed.doing, ERRORS[deed.error]);
        model.failed(deed);
      } else if (deed.kind === "worked") {
        outages.worked(deed.doing);
        model.worked(deed.doing);
      } else if (deed.kind === "pause") {
        void outages.pause(deed.ms).then(() => tell(`goes on ${index}`));
        model.pauses.push({ name: String(index), until: model.now + deed.ms });
      } else if (deed.kind === "close") {
        outages.close();
        model.close();
      }
      const ms = deed.kind === "pass" ? deed.ms : 0;
      await clock.pass(ms);
      model.pass(ms);
      // What happens at the same moment has no order.
      const wrong = difference(sorted(story), sorted(model.story));
      if (wrong !== undefined) return wrong;
      const timers = model.pauses.length + model.open.filter(({ wellSince }) => wellSince !== undefined).length;
      if (clock.timers !== timers) return `it has ${clock.timers} timers, and needs ${timers}`;
    }
    return undefined;
  },
});

function sorted(story: readonly string[]): readonly string[] {
  return story.toSorted((one, other) => Number.parseFloat(one) - Number.parseFloat(other) || (one < other ? -1 : 1));
}
