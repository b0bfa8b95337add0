import { setTimeout as wait } from "node:timers/promises";
import type { Random } from "../../kit/random.ts";
import { type Child, type Desk, now } from "../desk.ts";
import { recorder } from "./history.ts";
import { LEASE_MS } from "./settings.ts";

/** The worker processes of a run, and what happens to them. */
export class Crew {
  readonly #desk: Desk;
  readonly #random: Random;
  readonly #record: ReturnType<typeof recorder>;
  readonly #workers = new Map<string, Child>();
  readonly #recovering: Promise<void>[] = [];
  readonly counts = { killed: 0, stopped: 0, blocked: 0, replaced: 0 };
  #hired = 0;

  constructor(desk: Desk, random: Random) {
    this.#desk = desk;
    this.#random = random;
    this.#record = recorder(desk.folder, "crew");
  }

  async hire(): Promise<void> {
    this.#hired += 1;
    const name = `worker${this.#hired}`;
    const child = this.#desk.start("../black-box/worker", this.#desk.url, this.#desk.folder, name);
    await child.next();
    this.#workers.set(name, child);
  }

  /** Something bad happens to somebody, every now and then, for so long. */
  async suffer(forMs: number, everyMs: number): Promise<void> {
    const end = now() + forMs;
    while (now() < end) {
      await wait(this.#random.between(everyMs / 2, everyMs * 1.5));
      if (this.#workers.size === 0) continue;
      const [name, child] = this.#random.pick([...this.#workers]);
      // One thing at a time for each: somebody who is stopped cannot be blocked.
      this.#workers.delete(name);
      const recovering = this.#hit(name, child);
      // Told at the end: a rejection that nobody hears of yet would end the test without its cleaning up.
      recovering.catch(() => undefined);
      this.#recovering.push(recovering);
    }
    await Promise.all(this.#recovering);
  }

  async dismiss(): Promise<void> {
    await Promise.all([...this.#workers.values()].map((child) => retire(child)));
  }

  async #hit(name: string, child: Child): Promise<void> {
    switch (this.#random.pick(["kill", "kill", "stop", "stop", "block", "replace"] as const)) {
      case "kill":
        this.counts.killed += 1;
        await child.kill();
        this.#record({ type: "killed", at: now(), worker: name });
        return this.hire();
      case "stop":
        this.counts.stopped += 1;
        child.process.kill("SIGSTOP");
        await wait(LEASE_MS * (1.5 + this.#random.next() * 1.5));
        child.process.kill("SIGCONT");
        break;
      case "block":
        this.counts.blocked += 1;
        child.process.send(3 * LEASE_MS);
        await wait(3 * LEASE_MS);
        break;
      case "replace":
        this.counts.replaced += 1;
        await retire(child);
        return this.hire();
    }
    this.#workers.set(name, child);
  }
}

/** Lets it stop by itself. */
export async function retire(child: Child): Promise<void> {
  child.process.disconnect();
  await child.exited;
}
