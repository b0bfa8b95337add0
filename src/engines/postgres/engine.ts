import { randomUUID } from "node:crypto";
import type { ClientBase } from "pg";
import { instant, pause, systemClock } from "../../domain/clock.ts";
import { InvalidInput, QueueNotEmpty } from "../../domain/errors.ts";
import type {
  CancelResult,
  ClaimRequest,
  DeadReport,
  DeclareRequest,
  DeleteQueueRequest,
  Engine,
  Finding,
  Grant,
  HoldRequest,
  ItemReport,
  ItemRequest,
  KeyPageRequest,
  KeyReport,
  Lease,
  Outcome,
  OutcomeRequest,
  PageRequest,
  PauseRequest,
  QueueDeclaration,
  QueueReport,
  Renewal,
  RenewResult,
  ReviveRequest,
  Settlement,
  SettleResult,
  Submission,
  SubmitResult,
} from "../../engine/port.ts";
import { locksOnRegister } from "../../locks/locks-on-register.ts";
import type { Locks } from "../../locks/port.ts";
import type { Register } from "../../locks/register.ts";
import { bigints } from "./arrays.ts";
import { check } from "./check.ts";
import { type Connections, Link, type Row } from "./link.ts";
import { StoreFailure, UndecidedId } from "./failure.ts";
import { checkSchema, DEFAULT_SCHEMA, type StoreOptions } from "./options.ts";
import type { DeclaredQueue } from "./queues.ts";
import { PostgresRegister } from "./register.ts";
import { flag, integer, text } from "./rows.ts";
import { makeSchema } from "./schema.ts";
import { endedArguments, keyOf } from "./settlements.ts";
import { PLANNING } from "./sql/functions.ts";
import { Store, type StoreParts } from "./store.ts";
import { submitWithin } from "./within.ts";

const CLOSE_MS = 3_000;
/** How long a deletion waits for transactions of the application that have submitted to the queue. Others who would submit wait meanwhile. */
const DELETE_PATIENCE = "2s";

/** The engine as the application sees it: turns the port's calls into calls of the store's lane. */
export class PostgresEngine implements Engine {
  readonly name = "postgres";
  readonly transactions = true;
  readonly runs = true;
  readonly #link: Link;
  readonly #me: number;
  readonly #store: Store;
  /** What locks are kept in. */
  readonly register: Register;
  readonly #locks: Locks;

  private constructor(parts: StoreParts) {
    this.#link = parts.link;
    this.#me = parts.me;
    this.#store = new Store(parts);
    this.register = new PostgresRegister(this.#store, parts.link, parts.me);
    this.#locks = locksOnRegister({ name: "postgres", register: this.register, newId: randomUUID });
  }

  static async open(connections: Connections, options: StoreOptions): Promise<PostgresEngine> {
    const schema = checkSchema(options.schema ?? DEFAULT_SCHEMA);
    const { wake } = options;
    const clock = systemClock;
    const newLink = (): Link =>
      new Link(connections, schema, (client) => prepare(client, schema, connections.where, options));
    const link = newLink();
    // What other carriers tell is told after each statement of one connection.
    const beside = connections.areOurs && wake === undefined ? newLink() : undefined;
    try {
      await link.open();
      const [row] = await link.query("baton_handle", `SELECT nextval('${schema}.number')`, []);
      const me = row === undefined ? 0 : integer(row, 0);
      const engine = new PostgresEngine({ link, beside, connections, clock, me, wake });
      await engine.#store.listen();
      return engine;
    } catch (error) {
      link.close();
      throw error;
    }
  }

  async declare(request: DeclareRequest): Promise<QueueDeclaration> {
    const { levels } = await this.#store.call(() => this.#store.queues.declare(request));
    return { levels };
  }

  async submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    this.#store.assertOpen();
    for (const { queue } of submissions) this.#store.queues.get(queue);
    const transaction = submissions[0]?.transaction;
    if (submissions.some((submission) => submission.transaction !== transaction))
      throw new InvalidInput("transaction", "several", "one transaction for all submissions of a call");
    if (transaction !== undefined)
      return await submitWithin(transaction, this.#link.schema, this.#store.queues, submissions);
    return await this.#store.lane.submit(submissions);
  }

  async claim(request: ClaimRequest): Promise<readonly Grant[]> {
    this.#store.assertOpen();
    return await this.#store.claim(request);
  }

  async hold(request: HoldRequest): Promise<Lease | undefined> {
    this.#store.assertOpen();
    return await this.#store.hold(request);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly RenewResult[]> {
    return await this.#store.call(async () => {
      const since = instant(systemClock);
      const rows = await this.#link.call(
        "renew",
        this.#me,
        bigints(renewals.map(({ lease }) => keyOf(lease))),
        bigints(renewals.map(({ lease }) => lease.fence)),
        bigints(renewals.map(({ leaseMs }) => Math.ceil(leaseMs))),
        renewals.map(({ progress }) => progress ?? null),
        ...endedArguments(renewals),
      );
      for (const { lease, ended } of renewals)
        if (ended !== undefined) this.#store.ended(this.#store.queues.known(lease.queue).id, false);
      const results = renewals.map((): RenewResult => ({ ok: false }));
      for (const row of rows) results[integer(row, 0) - 1] = { ok: true, since, cancelRequested: flag(row, 1) };
      for (const [index, { lease }] of renewals.entries())
        if (results[index]?.ok === false) this.#store.leases.over(lease);
      return results;
    });
  }

  async settle(settlements: readonly Settlement[]): Promise<readonly SettleResult[]> {
    this.#store.assertOpen();
    for (const { lease } of settlements) keyOf(lease);
    // Of a queue that was never declared here there are no leases.
    const known = settlements.filter(({ lease }) => this.#store.queues.byName(lease.queue) !== undefined);
    const results = known.length === 0 ? [] : await this.#store.lane.settle(known);
    const byLease = new Map(known.map((settlement, index) => [settlement, results[index] ?? "lost"]));
    return settlements.map((settlement) => byLease.get(settlement) ?? "lost");
  }

  async find({ queue: name, id }: ItemRequest): Promise<ItemReport | undefined> {
    return await this.#inQueue(name, async (queue) => {
      await this.#store.due.catchUp();
      return await this.#store.inspection.find(queue, id);
    });
  }

  async outcome(request: OutcomeRequest): Promise<Outcome | undefined> {
    this.#store.assertOpen();
    if (request.signal.aborted) return undefined;
    const outcome = await this.#store.outcome(request);
    // With a queue that is deleted goes what is remembered.
    if (outcome === undefined && !request.signal.aborted && this.#store.isOpen)
      await this.#inQueue(request.queue, () => Promise.resolve());
    return outcome;
  }

  async cancel({ queue: name, id }: ItemRequest): Promise<CancelResult> {
    return await this.#inQueue(name, async (queue) => {
      const [row] = await this.#link.call("cancel", this.#me, queue.id, id);
      const result = row === undefined ? "missing" : text(row, 0);
      if (row !== undefined && !flag(row, 1)) this.#store.changed(queue.id, false);
      if (result === "cancelled") this.#store.ended(queue.id, false);
      return isCancelResult(result) ? result : "missing";
    });
  }

  async pause({ queue: name, key, paused }: PauseRequest): Promise<void> {
    await this.#inQueue(name, async (queue) => {
      const [row] = await this.#link.call("pause", this.#me, queue.id, key ?? null, paused);
      this.#store.changed(queue.id, row?.[0] === true);
    });
  }

  async deleteQueue({ queue: name, force }: DeleteQueueRequest): Promise<boolean> {
    return await this.#store.call(async () => {
      let row: Row | undefined;
      try {
        [row] = await this.#link.call("delete_queue", this.#me, name, force, DELETE_PATIENCE);
      } catch (error) {
        if (error instanceof UndecidedId) throw inTransaction(name, error);
        throw error;
      }
      if (row === undefined) return false;
      const [waiting, leased, dead] = [integer(row, 2), integer(row, 3), integer(row, 4)];
      if (!flag(row, 1)) throw new QueueNotEmpty(name, { waiting, leased, dead });
      this.#store.deleted(integer(row, 0));
      return true;
    });
  }

  async queues({ queue }: { readonly queue?: string }): Promise<readonly QueueReport[]> {
    return await this.#store.call(async () => {
      await this.#store.due.catchUpWithAll();
      return await this.#store.inspection.queues(queue);
    });
  }

  async keys(request: KeyPageRequest): Promise<readonly KeyReport[]> {
    return await this.#inQueue(request.queue, async (queue) => {
      await this.#store.due.catchUpWithAll();
      return await this.#store.inspection.keys(queue, request);
    });
  }

  async dead(request: PageRequest): Promise<readonly DeadReport[]> {
    return await this.#inQueue(request.queue, (queue) => this.#store.inspection.dead(queue, request));
  }

  /** All of them in small steps: others want to write too. Letters that die meanwhile are left for the next time. */
  async revive({ queue: name, ids, action }: ReviveRequest): Promise<number> {
    let revived = 0;
    let upTo: number | null = null;
    for (;;) {
      const step = await this.#inQueue(name, async (queue) => {
        const chosen = ids === undefined ? null : [...ids];
        const [row] = await this.#link.call("revive", this.#me, queue.id, chosen, action === "retry", upTo);
        if (row === undefined) throw new Error("The store answered nothing.");
        this.#store.changed(queue.id, flag(row, 2));
        return { count: integer(row, 0), last: integer(row, 1) };
      });
      revived += step.count;
      upTo = step.last;
      if (step.count === 0) return revived;
    }
  }

  async check(): Promise<readonly Finding[]> {
    const findings = await this.#store.call(() => check(this.#link, this.#link.schema));
    const wake = await this.#store.wakeFinding();
    return wake === undefined ? findings : [...findings, wake];
  }

  locks(): Locks {
    return this.#locks;
  }

  /** What is under way comes to its end; but a server that stands still must not keep a process from ending. */
  async close(): Promise<void> {
    const late = pause(systemClock, CLOSE_MS);
    await Promise.race([this.#locks.close(), late]);
    await this.#store.close(late);
  }

  async #inQueue<T>(name: string, run: (queue: DeclaredQueue) => Promise<T>): Promise<T> {
    return await this.#store.call(async () => run(await this.#store.queues.assertThere(name)));
  }
}

/** Every connection that work is done over, before anything else is. */
async function prepare(client: ClientBase, schema: string, where: string, options: StoreOptions): Promise<void> {
  // The functions take a new look with each of their statements; and a pause of ours must not be ended by a limit for others.
  await client.query("SET default_transaction_isolation = 'read committed'");
  await client.query("SET statement_timeout = 0; SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0");
  for (const [name, value] of Object.entries(PLANNING)) await client.query(`SET ${name} = ${value}`);
  if (options.synchronousCommit !== undefined)
    await client.query(`SET synchronous_commit = '${options.synchronousCommit}'`);
  if (options.wake !== undefined) await client.query("SET baton.wake = 'foreign'; SET client_min_messages = notice");
  await makeSchema(client, schema, where);
}

function isCancelResult(value: string): value is CancelResult {
  return value === "cancelled" || value === "requested" || value === "ended" || value === "missing";
}

function inTransaction(queue: string, cause: unknown): StoreFailure {
  return new StoreFailure(
    "STORE_UNAVAILABLE",
    `Queue ${JSON.stringify(queue)} has items of a transaction that is still open. Nothing was deleted. End that transaction, and try again.`,
    { cause },
  );
}
