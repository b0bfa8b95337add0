/** Does what the plan says, and writes down when it began and when it was over. */
import { setTimeout as wait } from "node:timers/promises";
import type { Member } from "../cast.ts";
import { now } from "../history/clock.ts";
import type { Recorder } from "../history/recorder.ts";
import type { RunningStore } from "../stores.ts";
import type { FaultKind, PlannedFault } from "./plan.ts";
import type { Proxy, Weather } from "./proxy.ts";

export interface Victims {
  readonly workers: readonly Member[];
  readonly submitters: readonly Member[];
  /** By member; empty for a store that is a file. */
  readonly proxies: ReadonlyMap<Member, Proxy>;
  readonly store: RunningStore;
}

export class Faults {
  readonly #victims: Victims;
  readonly #record: Recorder;
  #number = 0;

  constructor(victims: Victims, record: Recorder) {
    this.#victims = victims;
    this.#record = record;
  }

  /** Resolves when the last one is over. */
  async follow(plan: readonly PlannedFault[], startedAt: number): Promise<void> {
    const running: Promise<void>[] = [];
    for (const fault of plan) {
      await wait(Math.max(0, startedAt + fault.atMs - now()));
      running.push(this.#happen(fault));
    }
    await Promise.all(running);
  }

  async #happen(fault: PlannedFault): Promise<void> {
    const { workers, submitters } = this.#victims;
    const everybody = [...workers, ...submitters];
    switch (fault.kind) {
      case "kill":
      case "stop":
      case "block":
        return await this.#hurt(fault, oneOf(workers, fault));
      case "kill-all":
        return await this.#killAll(fault, everybody);
      case "store":
        return await this.#tell(fault, everybody, async () => {
          await this.#victims.store.crash?.(fault.forMs);
        });
      case "cut-all":
      case "slow-all":
        return await this.#disturb(fault, everybody);
      case "cut":
      case "requests-held":
      case "replies-held":
      case "replies-lost":
      case "slow":
        // Workers have more to lose, so three times of four it is one of them.
        return await this.#disturb(fault, oneOf(fault.target < 0.75 ? workers : submitters, fault));
    }
  }

  async #hurt(fault: PlannedFault, hit: readonly Member[]): Promise<void> {
    const [member] = hit;
    if (member === undefined) return;
    member.isHurt = true;
    await this.#tell(fault, hit, async () => {
      switch (fault.kind) {
        case "kill":
          await member.kill();
          await wait(fault.forMs);
          break;
        case "stop":
          member.stop();
          await wait(fault.forMs);
          member.goOn();
          break;
        default:
          member.block(fault.forMs);
          await wait(fault.forMs);
      }
    });
    if (fault.kind === "kill") await member.start();
    member.isHurt = false;
  }

  async #killAll(fault: PlannedFault, everybody: readonly Member[]): Promise<void> {
    const hit = everybody.filter(({ isHurt }) => !isHurt);
    for (const member of hit) member.isHurt = true;
    await this.#tell(fault, hit, async () => {
      await Promise.all(hit.map((member) => member.kill()));
      await wait(fault.forMs);
      // It is over when they are back: sixteen that start at once take seconds, and until then nobody is there to take anything over.
      await Promise.all(hit.map((member) => member.start()));
    });
    for (const member of hit) member.isHurt = false;
  }

  async #disturb(fault: PlannedFault, hit: readonly Member[]): Promise<void> {
    const proxies = hit.flatMap((member) => this.#victims.proxies.get(member) ?? []);
    if (proxies.length === 0) return;
    await this.#tell(fault, hit, async () => {
      for (const proxy of proxies) disturb(proxy, fault);
      await wait(fault.forMs);
      for (const proxy of proxies) proxy.clear();
    });
  }

  async #tell(fault: PlannedFault, hit: readonly Member[], happen: () => Promise<void>): Promise<void> {
    this.#number += 1;
    const number = this.#number;
    const hits = hit.map(({ name }) => name);
    this.#record({ type: "fault", number, kind: fault.kind, hits, story: storyOf(fault, hits) });
    await happen();
    this.#record({ type: "fault-over", number });
  }
}

function oneOf(members: readonly Member[], { target }: PlannedFault): readonly Member[] {
  const well = members.filter(({ isHurt }) => !isHurt);
  // The same number chooses the role above, so its finer part chooses here.
  const chosen = well[Math.floor(((target * 64) % 1) * well.length)];
  return chosen === undefined ? [] : [chosen];
}

function disturb(proxy: Proxy, { kind, delayMs }: PlannedFault): void {
  if (kind === "cut" || kind === "cut-all") proxy.cut();
  else proxy.turn(weatherOf(kind, delayMs));
}

function weatherOf(kind: FaultKind, delayMs: number): Weather {
  switch (kind) {
    case "requests-held":
      return { requests: "hold", replies: "pass" };
    case "replies-held":
      return { requests: "pass", replies: "hold" };
    case "replies-lost":
      return { requests: "pass", replies: "drop" };
    default:
      return { requests: { delayMs }, replies: { delayMs } };
  }
}

function storyOf({ kind, forMs, delayMs }: PlannedFault, hits: readonly string[]): string {
  const who = hits.length > 1 ? "all processes" : (hits[0] ?? "nobody");
  const time = `${(forMs / 1_000).toFixed(1)} s`;
  switch (kind) {
    case "kill":
      return `${who} was killed`;
    case "stop":
      return `${who} was stopped for ${time} (SIGSTOP)`;
    case "block":
      return `the event loop of ${who} was blocked for ${time}`;
    case "kill-all":
      return `${who} were killed at once`;
    case "store":
      return `the store was killed, and started again after ${time}`;
    case "cut":
    case "cut-all":
      return `the connection of ${who} was cut for ${time}`;
    case "requests-held":
      return `what ${who} sent was held back for ${time}`;
    case "replies-held":
      return `what ${who} was to hear was held back for ${time}`;
    case "replies-lost":
      return `the replies to ${who} were lost for ${time}`;
    case "slow":
    case "slow-all":
      return `the way of ${who} took ${delayMs} ms more each way for ${time}`;
  }
}
