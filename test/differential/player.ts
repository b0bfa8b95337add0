import type * as port from "../../src/engine/port.ts";
import { Answers } from "./answers.ts";
import { type Burst, type EndingWish, type Entry, KEYS, QUEUES, type Step } from "./script.ts";

/** So long that nothing comes due while a script is played. */
const FAR_MS = 3_600_000;
const PATIENCE_MS = 10 * FAR_MS;

/** Plays one script on one engine, in queues of its own, and gives the answers in a form that can be compared. */
export class Player {
  readonly #engine: port.Engine;
  readonly #prefix: string;
  readonly #answers = new Answers();
  readonly #leases: port.Lease[] = [];
  /** Ids in the order in which they were accepted, per queue. */
  readonly #ids = new Map<string, string[]>();
  readonly #kept = new Set<string>();
  #claims = 0;

  constructor(engine: port.Engine, prefix: string) {
    this.#engine = engine;
    this.#prefix = prefix;
  }

  async play(script: readonly Burst[]): Promise<readonly unknown[]> {
    for (let queue = 0; queue < QUEUES; queue += 1) await this.#engine.declare({ queue: this.#queue(queue) });
    const answers: unknown[] = [];
    for (const burst of script) {
      // What a step refers to is settled before any of the burst is asked for.
      const played = burst.map((step) => this.#play(step));
      for (const answer of await Promise.all(played)) answers.push(this.#answers.comparable(answer, this.#prefix));
    }
    return answers;
  }

  async #play(step: Step): Promise<unknown> {
    const engine = this.#engine;
    switch (step.do) {
      case "submit":
        return this.#submit(step.entries);
      case "claim":
        return this.#claim(step.queue, step.max);
      case "settle": {
        const entries = step.entries.flatMap(({ lease, ending }) =>
          this.#lease(lease).map((found) => ({ lease: found, ending: toEnding(ending) })),
        );
        return engine.settle(entries);
      }
      case "renew": {
        const entries = step.entries.flatMap(({ lease, progress }) =>
          this.#lease(lease).map((found) =>
            progress === undefined ? { lease: found, leaseMs: FAR_MS } : { lease: found, leaseMs: FAR_MS, progress },
          ),
        );
        return engine.renew(entries);
      }
      case "hold":
        return this.#hold(step.queue, step.key);
      case "cancel":
        return engine.cancel(this.#item(step.queue, step.item));
      case "find":
        return engine.find(this.#item(step.queue, step.item));
      case "outcome":
        return this.#outcome(step.queue, step.item);
      case "pause": {
        const { queue, key, paused } = step;
        return engine.pause({ queue: this.#queue(queue), paused, ...(key === undefined ? {} : { key: keyName(key) }) });
      }
      case "revive": {
        const { queue, items, action } = step;
        const ids = items?.map((item) => this.#item(queue, item).id);
        return engine.revive({ queue: this.#queue(queue), action, ...(ids === undefined ? {} : { ids }) });
      }
      case "keys": {
        const { queue, after, limit, leased } = step;
        const page = { queue: this.#queue(queue), limit, leased };
        return engine.keys(after === undefined ? page : { ...page, after: keyName(after) });
      }
      case "dead": {
        const { queue, after, limit } = step;
        const page = { queue: this.#queue(queue), limit };
        return engine.dead(after === undefined ? page : { ...page, after: this.#item(queue, after).id });
      }
      case "queues":
        return Promise.all([0, 1].map((queue) => engine.queues({ queue: this.#queue(queue) })));
    }
  }

  async #submit(entries: readonly Entry[]): Promise<readonly port.SubmitResult[]> {
    const results = await this.#engine.submit(entries.map((entry) => this.#submission(entry)));
    for (const [index, result] of results.entries()) {
      const entry = entries[index];
      if (entry === undefined || !result.ok || result.accepted.duplicate) continue;
      this.#idsOf(entry.queue).push(result.accepted.id);
      if (entry.keep) this.#kept.add(`${entry.queue} ${result.accepted.id}`);
      else this.#kept.delete(`${entry.queue} ${result.accepted.id}`);
      this.#answers.nameItem(result.accepted.id);
    }
    return results;
  }

  /** Whatever is ready now: a later call through the same handle is answered after the claim had its chance. */
  async #claim(number: number, max: number): Promise<readonly port.Grant[]> {
    const queue = this.#queue(number);
    const enough = new AbortController();
    this.#claims += 1;
    // A name of its own: a worker that goes on with the key it just had may be served out of turn.
    const worker = `worker ${this.#claims}`;
    const request = { queue, worker, max, leaseMs: FAR_MS, patienceMs: PATIENCE_MS, signal: enough.signal };
    const claimed = this.#engine.claim(request);
    await this.#engine.queues({ queue });
    enough.abort();
    const grants = await claimed;
    for (const { lease } of grants) this.#remember(lease);
    return grants;
  }

  async #hold(queue: number, key: number): Promise<port.Lease | undefined> {
    const lease = await this.#engine.hold({
      queue: this.#queue(queue),
      key: keyName(key),
      worker: "holder",
      leaseMs: FAR_MS,
      signal: AbortSignal.abort(),
    });
    if (lease !== undefined) this.#remember(lease);
    return lease;
  }

  async #outcome(number: number, item: number): Promise<port.Outcome | undefined> {
    const request = this.#item(number, item);
    // Whether to wait for the end of an item that nobody will remember is left to the engine.
    if (!this.#kept.has(`${number} ${request.id}`)) return undefined;
    const enough = new AbortController();
    const outcome = this.#engine.outcome({ ...request, signal: enough.signal });
    await this.#engine.queues({ queue: request.queue });
    enough.abort();
    return outcome;
  }

  #submission(entry: Entry): port.Submission {
    const { id, level, mode, keyLimit, queueLimit } = entry;
    const body = entry.bytes ? new Uint8Array([entry.key, 0, 255]) : `work on ${entry.key}`;
    return {
      queue: this.#queue(entry.queue),
      key: keyName(entry.key),
      level,
      mode,
      keyLimit,
      queueLimit,
      payload: { type: entry.bytes ? "application/octet-stream" : "text/plain", body },
      delayMs: entry.delayed ? FAR_MS : 0,
      keepMs: entry.keep ? FAR_MS : 0,
      ...(id === undefined ? {} : { id: `id ${id}` }),
      ...(entry.headers ? { headers: { trace: "1" } } : {}),
    };
  }

  #remember(lease: port.Lease): void {
    this.#leases.push(lease);
    this.#answers.nameFence(lease);
  }

  /** The lease that was the latest so many leases ago; none as long as there is none. */
  #lease(ago: number): readonly port.Lease[] {
    const lease = this.#leases[this.#leases.length - 1 - (ago % Math.max(1, this.#leases.length))];
    return lease === undefined ? [] : [lease];
  }

  #item(queue: number, ago: number): port.ItemRequest {
    const ids = this.#idsOf(queue);
    return { queue: this.#queue(queue), id: ids[ids.length - 1 - (ago % Math.max(1, ids.length))] ?? "nobody" };
  }

  #idsOf(number: number): string[] {
    const queue = this.#queue(number);
    let ids = this.#ids.get(queue);
    if (ids === undefined) this.#ids.set(queue, (ids = []));
    return ids;
  }

  #queue(number: number): string {
    return `${this.#prefix}-${number}`;
  }
}

/** Not in the order of their numbers, and not all of one byte per character: pages go by the bytes of the names. */
function keyName(number: number): string {
  return ["car", "auto", "Žuk", "z", "🚗"][number % KEYS] ?? "car";
}

function toEnding(wish: EndingWish): port.Ending {
  switch (wish.type) {
    case "done":
      return wish.result === undefined
        ? { type: "done" }
        : { type: "done", result: { type: "text/plain", body: wish.result } };
    case "retry":
      return { type: "retry", delayMs: wish.delayed ? FAR_MS : 0, place: wish.place, failure: { message: "not yet" } };
    case "dead":
      return { type: "dead", failure: { message: "never", code: "NEVER" } };
    case "cancelled":
    case "release":
      return { type: wish.type };
  }
}
