import { randomUUID } from "node:crypto";
import { type Clock, type Instant, pause, systemClock } from "../../domain/clock.ts";
import { BatonError, Closed, LevelsDiffer, QueueMissing, QueueNotEmpty } from "../../domain/errors.ts";
import { areSame, checkLevels, DEFAULT_LEVELS } from "../../domain/level.ts";
import type * as port from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import type { Locks } from "../../locks/port.ts";
import { check } from "./check.ts";
import type { Moment } from "./call.ts";
import type { Wire } from "./client.ts";
import { deadReports, keyReports, revive } from "./inspection.ts";
import { queuesKey, queueTag } from "./names.ts";
import { renewArguments, settleArguments } from "./operations.ts";
import { patiently } from "./patience.ts";
import { inPieces } from "./pieces.ts";
import { Queue } from "./queue.ts";
import { RedisRegister } from "./register.ts";
import { list, readItem, readLevels, readQueue, text, texts } from "./replies.ts";
import { RedisSignals, type Signals } from "./signals.ts";

const HOW_TO_REPAIR =
  "Nobody can work on this key; others go on, and its items are still in Redis. To get rid of the record, stop the processes of the queue, remove the key's field from the hash that ends in :keys, and submit its items again.";
const CLOSE_MS = 3_000;
/** Keys of a queue that a check looks at. */
const MOST_LOOKED_AT = 100_000;

export interface EngineParts {
  readonly wire: Wire;
  readonly prefix: string;
  readonly clock?: Clock;
  /** What carries signals between processes. Default: Redis itself. */
  readonly signals?: Signals;
}

/** What became of one that was reported, as the program says it. */
type Read<T> = (one: unknown, since: Instant) => T;

const readRenewed: Read<port.RenewResult> = (one, since) =>
  one === 0 ? { ok: false } : { ok: true, since, cancelRequested: one === 2 };
const readSettled: Read<port.SettleResult> = (one) => (one === 1 ? "settled" : "lost");

/** The engine as the application sees it: turns the port's calls into operations of the program in the server. */
export class RedisEngine implements port.Engine {
  readonly name = "redis";
  readonly runs = true;
  /** What locks are kept in. */
  readonly register: RedisRegister;
  readonly #parts: Required<EngineParts>;
  readonly #nonce = `${randomUUID().slice(0, 8)}.`;
  readonly #locks: Locks;
  readonly #queues = new Map<string, Queue>();
  /** Those that were deleted. */
  readonly #formers = new Set<Queue>();
  #closing: Promise<void> | undefined;

  constructor({ wire, prefix, clock = systemClock, signals = new RedisSignals(wire) }: EngineParts) {
    this.#parts = { wire, prefix, clock, signals };
    this.register = new RedisRegister(wire, prefix, clock);
    this.#locks = locksOnRegister({ name: "redis", register: this.register, newId: randomUUID, watchesHolds: true });
  }

  async declare({ queue: name, levels }: port.DeclareRequest): Promise<port.QueueDeclaration> {
    this.#checkOpen();
    const known = this.#queues.get(name);
    const stored = known?.levels ?? (await this.#declared(name, checkLevels(levels ?? DEFAULT_LEVELS)));
    if (levels !== undefined && !areSame(levels, stored)) throw new LevelsDiffer(name, stored, levels);
    if (!this.#queues.has(name)) this.#queues.set(name, this.#newQueue(name, stored));
    return { levels: stored };
  }

  async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    this.#checkOpen();
    return await inPieces(submissions, (name, some) => {
      const queue = this.#queues.get(name);
      if (queue !== undefined) return queue.submit(some);
      return Promise.resolve(some.map(() => ({ ok: false, error: new QueueMissing(name) })));
    });
  }

  async claim(request: port.ClaimRequest): Promise<readonly port.Grant[]> {
    const queue = this.#queue(request.queue);
    return request.signal.aborted ? [] : await queue.claim(request);
  }

  async hold(request: port.HoldRequest): Promise<port.Lease | undefined> {
    return await this.#queue(request.queue).hold(request);
  }

  async renew(renewals: readonly port.Renewal[]): Promise<readonly port.RenewResult[]> {
    const results = await this.#tell("a renewal", renewals, renewArguments, readRenewed);
    for (const [index, { lease }] of renewals.entries())
      if (results[index]?.ok === false) this.#queues.get(lease.queue)?.forget(lease);
    return results;
  }

  async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    // Before the answer, which may bring the same key again: that is no loss.
    for (const { lease } of settlements) this.#queues.get(lease.queue)?.forget(lease);
    return await this.#tell("a settlement", settlements, settleArguments, readSettled);
  }

  /** What is said of leases, and what became of each. */
  async #tell<R extends port.Renewal | port.Settlement, T>(
    what: string,
    reports: readonly R[],
    write: (reports: readonly R[]) => readonly string[],
    readOne: Read<T>,
  ): Promise<readonly T[]> {
    this.#checkOpen();
    const entries = reports.map((report) => ({ queue: report.lease.queue, report }));
    const read = (result: unknown, { since }: Moment): T[] => list(result).map((one) => readOne(one, since));
    return await inPieces(entries, async (name, pieces) => {
      const some = pieces.map(({ report }) => report);
      const lost = (): T[] => some.map(({ lease }) => readOne(0, lease.since));
      const queue = this.#queues.get(name);
      // It was deleted, and its leases with it.
      if (queue === undefined) return lost();
      // An item that ended before the last one costs a quarter of a settlement.
      const size = some.reduce((sum, { ended = [] }) => sum + 1 + ended.length / 4, 0);
      return await lostWith(queue.desk.ask(what, write(some), read, { entries: size }), lost);
    });
  }

  async find({ queue: name, id }: port.ItemRequest): Promise<port.ItemReport | undefined> {
    const queue = this.#queue(name);
    const { clock } = this.#parts;
    return await queue.look("an item", ["find", id], (result) => readItem(result, id, queue.levels, clock.wall()));
  }

  async outcome(request: port.OutcomeRequest): Promise<port.Outcome | undefined> {
    return await this.#queue(request.queue).outcome(request);
  }

  async cancel({ queue, id }: port.ItemRequest): Promise<port.CancelResult> {
    return await this.#queue(queue).desk.ask("a cancel", ["cancel", id], (result) => {
      if (result === "cancelled" || result === "requested" || result === "ended") return result;
      return "missing";
    });
  }

  async pause({ queue, key, paused }: port.PauseRequest): Promise<void> {
    const flag = paused ? "1" : "0";
    const args = key === undefined ? ["pauseQueue", flag] : ["pauseKey", key, flag];
    await this.#queue(queue).desk.ask("a pause", args, () => undefined);
  }

  async deleteQueue({ queue: name, force }: port.DeleteQueueRequest): Promise<boolean> {
    this.#checkOpen();
    const levels = await this.#levelsOf(name);
    if (levels !== undefined) {
      const known = this.#queues.get(name);
      const queue = known !== undefined && areSame(known.levels, levels) ? known : this.#newQueue(name, levels);
      const contents = await queue.delete(force);
      const [waiting = 0, leased = 0, dead = 0] = contents ?? [];
      if (contents !== undefined) throw new QueueNotEmpty(name, { waiting, leased, dead });
    }
    // Also after a deletion that ended half-way: a queue that is listed and not there is left out.
    await this.#inList("SREM", name, "the deletion of a queue");
    // Somebody may have made it anew meanwhile, and must not lose sight of it.
    if ((await this.#levelsOf(name)) !== undefined) await this.#inList("SADD", name, "a new queue");
    return levels !== undefined;
  }

  async queues({ queue: wanted }: { readonly queue?: string }): Promise<readonly port.QueueReport[]> {
    this.#checkOpen();
    const names =
      wanted !== undefined && this.#queues.has(wanted)
        ? [wanted]
        : (await this.#listed()).filter((name) => wanted === undefined || name === wanted).toSorted();
    return await this.#ofEach(names, async (queue) => [
      await queue.look("a queue", ["report"], (result) => readQueue(result, queue.name)),
    ]);
  }

  async keys(request: port.KeyPageRequest): Promise<readonly port.KeyReport[]> {
    return await keyReports(this.#queue(request.queue), request);
  }

  async dead(request: port.PageRequest): Promise<readonly port.DeadReport[]> {
    return await deadReports(this.#queue(request.queue), request);
  }

  async revive(request: port.ReviveRequest): Promise<number> {
    return await revive(this.#queue(request.queue), request);
  }

  locks(): Locks {
    return this.#locks;
  }

  async check(): Promise<readonly port.Finding[]> {
    this.#checkOpen();
    const [server, signals] = await Promise.all([check(this.#parts.wire), this.#parts.signals.check?.() ?? []]);
    return [...server, ...signals, ...(await this.#damage())];
  }

  /** Every key is looked at: nothing else pays for that. */
  async #damage(): Promise<readonly port.Finding[]> {
    return await this.#ofEach(await this.#listed(), async (queue) => {
      const keys = await keyReports(queue, { queue: queue.name, limit: MOST_LOOKED_AT });
      const common = { severity: "error", subject: `queue ${queue.name}`, advice: HOW_TO_REPAIR } as const;
      return keys.flatMap(({ damage }) => (damage === undefined ? [] : [{ ...common, detail: damage }]));
    });
  }

  /** What is asked of queues that are listed. One that was deleted since has nothing to say. */
  async #ofEach<T>(names: readonly string[], ask: (queue: Queue) => Promise<readonly T[]>): Promise<readonly T[]> {
    const answers = names.map(async (name) => {
      const known = this.#queues.get(name);
      const levels = known?.levels ?? (await this.#levelsOf(name));
      return levels === undefined ? [] : await lostWith(ask(known ?? this.#newQueue(name, levels)), () => []);
    });
    return (await Promise.all(answers)).flat();
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** What is under way comes to its end; but a server that stands still must not keep a process from ending. */
  async #close(): Promise<void> {
    const late = pause(this.#parts.clock, CLOSE_MS);
    await Promise.race([this.#locks.close(), late]);
    await Promise.race([Promise.all([...this.#queues.values(), ...this.#formers].map((queue) => queue.close())), late]);
    await Promise.race([this.#parts.signals.close?.(), late]);
    this.#parts.wire.close();
  }

  async #declared(name: string, wanted: readonly string[]): Promise<readonly string[]> {
    const tag = queueTag(this.#parts.prefix, name);
    const stored = await this.#levelsOf(name);
    const enlist = (): Promise<void> => this.#inList("SADD", name, "a new queue");
    try {
      // Listed first: a queue that is listed and not there is left out; one that is there and not listed would be lost to view.
      await enlist();
    } catch (error) {
      // A server that is full refuses even what would change nothing. Whoever begins then should still be able to work.
      if (stored === undefined || !(error instanceof BatonError && error.code === "STORE_FULL")) throw error;
    }
    if (stored !== undefined) return stored;
    await this.#command(tag, ["HSETNX", tag, "levels", JSON.stringify(wanted)], "a new queue");
    // Whoever has just deleted one of that name may have struck it off the list in between.
    await enlist();
    return (await this.#levelsOf(name)) ?? wanted;
  }

  async #levelsOf(name: string): Promise<readonly string[] | undefined> {
    const tag = queueTag(this.#parts.prefix, name);
    const stored = await this.#look(tag, ["HGET", tag, "levels"]);
    return stored === null ? undefined : readLevels(text(stored));
  }

  /** It was deleted. Whatever is still with the server in its name is answered; the handle knows it no more. */
  #former(queue: Queue): void {
    if (this.#queues.get(queue.name) !== queue) return;
    this.#queues.delete(queue.name);
    this.#formers.add(queue);
  }

  #newQueue(name: string, levels: readonly string[]): Queue {
    return new Queue({ ...this.#parts, name, levels, nonce: this.#nonce, onMissing: (queue) => this.#former(queue) });
  }

  async #listed(): Promise<readonly string[]> {
    const key = queuesKey(this.#parts.prefix);
    return texts(await this.#look(key, ["SMEMBERS", key]));
  }

  async #inList(change: "SADD" | "SREM", name: string, what: string): Promise<void> {
    const key = queuesKey(this.#parts.prefix);
    await this.#command(key, [change, key, name], what);
  }

  async #command(key: string, args: string[], what: string, looks = false): Promise<unknown> {
    return await patiently(this.#parts.clock, what, () => this.#parts.wire.send(key, args), looks);
  }

  async #look(key: string, args: string[]): Promise<unknown> {
    return await this.#command(key, args, "a look at queues", true);
  }

  #queue(name: string): Queue {
    this.#checkOpen();
    const queue = this.#queues.get(name);
    if (queue === undefined) throw new QueueMissing(name);
    return queue;
  }

  #checkOpen(): void {
    if (this.#closing !== undefined) throw new Closed();
  }
}

/** With a queue that is deleted its leases are lost. */
async function lostWith<T>(asking: Promise<T>, lost: () => T): Promise<T> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof QueueMissing) return lost();
    throw error;
  }
}
