import { type Instant, instant } from "../../../../src/domain/clock.ts";
import { Heartbeat } from "../../../../src/client/locks/heartbeat.ts";
import type { Random } from "../../../kit/random.ts";
import { ManualClock } from "../../../manual-clock.ts";
import { agoInstant } from "./granted-run.ts";
import { addScriptTest, difference } from "./play-scripts.ts";

interface Setting {
  readonly leaseMs: number;
  readonly ageMs: number;
}

interface Deed {
  readonly kind: "pass" | "answer" | "stall" | "check" | "renew now" | "unwanted" | "stop";
  readonly which: number;
  readonly ms: number;
  readonly says: "yes" | "no" | "nothing";
}

function drawDeed(random: Random, { leaseMs }: Setting): Deed {
  const often = ["pass", "pass", "pass", "answer", "answer", "answer"] as const;
  return {
    kind: random.chance(0.9) ? random.pick(often) : random.pick(["stall", "check", "renew now", "unwanted", "stop"]),
    which: random.between(0, 9),
    ms: random.pick([random.between(0, 200), random.between(0, leaseMs / 3), random.between(0, leaseMs / 3)]),
    says: random.chance(0.05) ? "no" : random.pick(["yes", "yes", "yes", "nothing"]),
  };
}

/** What is promised of one life, with its dates looked for anew at each moment. */
class HeartModel {
  readonly story: string[] = [];
  now: number;
  since: number;
  isOver = false;
  isWanted = true;
  dueAt: number;
  #marginMs: number;
  readonly #leaseMs: number;

  constructor({ leaseMs, ageMs }: Setting, now: number) {
    this.now = now;
    this.since = now - ageMs;
    this.#leaseMs = leaseMs;
    // What is overdue at the start is due now: nobody stood still.
    this.dueAt = Math.max(this.since + leaseMs / 3, now);
    this.#marginMs = this.#margin(0);
  }

  get deadline(): number {
    return this.since + this.#leaseMs - this.#marginMs;
  }

  get leftMs(): number {
    return this.isOver ? 0 : Math.max(0, this.deadline - this.now);
  }

  get nextAt(): number {
    return this.isOver ? Infinity : Math.min(this.dueAt, this.deadline);
  }

  tell(what: string): void {
    this.story.push(`${this.now} ${what}`);
  }

  lose(why: string): void {
    if (this.isOver) return;
    this.isOver = true;
    this.tell(`lost ${why}`);
  }

  check(): boolean {
    if (!this.isOver && this.leftMs <= 0) this.lose("expired");
    return !this.isOver;
  }

  tick(): void {
    if (!this.check() || this.dueAt > this.now) return;
    if (!this.isWanted) {
      this.isOver = true;
      return;
    }
    this.dueAt = this.now + this.#leaseMs / 3;
    this.tell("renew");
  }

  answered(since: number, says: Deed["says"]): void {
    if (says !== "nothing") this.tell("answered");
    if (this.isOver) return;
    if (says === "nothing") {
      this.tell("trouble");
      this.dueAt = this.now + this.#leaseMs / 12;
    } else if (says === "no") this.lose("ended");
    else if (this.check() && since >= this.since) {
      this.since = since;
      this.#marginMs = this.#margin(this.now - since);
    }
  }

  #margin(roundTripMs: number): number {
    return Math.min(Math.max(this.#leaseMs / 10, 500, 2 * roundTripMs), this.#leaseMs / 4);
  }
}

addScriptTest("a heartbeat does what its model does, whenever answers come", {
  setting: (random): Setting => ({ leaseMs: random.pick([1_200, 3_000, 6_000]), ageMs: random.between(0, 800) }),
  deed: drawDeed,
  longest: 60,
  play: async (setting, deeds) => {
    const clock = new ManualClock();
    const story: string[] = [];
    const tell = (what: string): void => void story.push(`${clock.monotonic()} ${what}`);
    const asked: { readonly since: Instant; readonly reply: PromiseWithResolvers<Instant | undefined> }[] = [];
    const model = new HeartModel(setting, clock.monotonic());
    const stalls: number[] = [];
    const renew = (): Promise<Instant | undefined> => {
      tell("renew");
      const reply = Promise.withResolvers<Instant | undefined>();
      asked.push({ since: instant(clock), reply });
      return reply.promise;
    };
    const heart = new Heartbeat({ leaseMs: setting.leaseMs, since: agoInstant(clock, setting.ageMs), renew }, clock, {
      lost: (loss) => tell(`lost ${loss}`),
      stalled: ({ lateMs }) => void stalls.push(lateMs),
      trouble: () => tell("trouble"),
      answered: () => tell("answered"),
      wanted: () => model.isWanted,
    });
    const pass = async (ms: number): Promise<void> => {
      const until = model.now + ms;
      await clock.pass(ms);
      for (let at = model.nextAt; at <= until; at = model.nextAt) {
        model.now = Math.max(model.now, at);
        model.tick();
      }
      model.now = until;
    };
    for (const { kind, which, ms, says } of deeds) {
      if (kind === "stall") {
        const lateMs = model.now + ms - model.nextAt;
        const shouldTell = lateMs >= Math.max(200, setting.leaseMs / 6);
        await clock.stall(ms);
        model.now += ms;
        if (stalls.splice(0).join() !== (shouldTell ? String(lateMs) : ""))
          return `a stall of ${lateMs} ms is told wrongly`;
      } else if (kind === "check" && heart.check() !== model.check()) return "its check is wrong";
      else if (kind === "renew now" && !model.isOver) {
        model.dueAt = model.now;
        heart.renewNow();
      } else if (kind === "unwanted") model.isWanted = false;
      else if (kind === "stop") {
        heart.stop();
        model.isOver = true;
      } else if (kind === "answer") {
        const [one] = asked.splice(which % Math.max(1, asked.length), 1);
        if (one !== undefined) model.answered(one.since.monotonic, says);
        if (says === "nothing") one?.reply.reject(new Error("No answer."));
        else one?.reply.resolve(says === "no" ? undefined : one.since);
      }
      await pass(kind === "pass" ? ms : 0);
      const wrong = difference(story, model.story);
      if (wrong !== undefined) return wrong;
      if (heart.leftMs !== model.leftMs) return `it has ${heart.leftMs} ms left, and should have ${model.leftMs}`;
      if (clock.timers !== (model.isOver ? 0 : 1)) return `it has ${clock.timers} timers`;
      if (stalls.length > 0) return "it tells of a stall, and there was none";
    }
    return undefined;
  },
});
