import { type Clock, systemClock } from "../domain/clock.ts";
import { TEXT_TYPE } from "../domain/payload.ts";
import type * as port from "../engine/port.ts";
import { equal, NotConforming, ok, present } from "./expect.ts";
import { quietAfter } from "./quiet.ts";
import type { ConformanceTarget } from "./target.ts";

/** A lease that no case lives long enough to lose. */
export const LONG_LEASE_MS = 120_000;
/** A patience that no case lives long enough to lose: levels are strict. */
const LONG_PATIENCE_MS = 3_600_000;
/** How long a claim may take that has every reason to succeed, on a slow and busy machine. */
const GRANT_WITHIN_MS = 30_000;
const KEEP_MS = 3_600_000;
const DEFAULT_LEVELS = ["high", "normal", "low"];

export interface Wish extends Partial<port.Submission> {
  /** The payload, as text. Default: the key. */
  readonly text?: string;
}

export interface ClaimWish extends Partial<port.ClaimRequest> {
  readonly engine?: port.Engine;
}

/**
 * Where one case plays: a queue of its own in the store under test, and short words for what cases do all the
 * time. Time passes for real, so a case never waits for a moment; it waits for a claim that the moment sets free.
 */
export class Scene {
  readonly queue: string;
  /** A lease that is let run out. */
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly #target: ConformanceTarget;
  readonly #signal: AbortSignal;
  /** What cases use, and what is behind it. */
  readonly #handles = new Map<port.Engine, port.Engine>();
  readonly #queues = new Map<string, readonly string[]>();
  #engine: port.Engine | undefined;
  #count = 0;

  constructor(target: ConformanceTarget, queue: string, signal: AbortSignal) {
    this.queue = queue;
    this.leaseMs = target.leaseMs ?? 400;
    this.clock = target.clock ?? systemClock;
    this.#target = target;
    this.#signal = signal;
  }

  /** Declares the queue and opens the first handle. */
  async begin(): Promise<void> {
    this.#engine = await this.open();
    await this.newQueue(this.queue);
  }

  async end(): Promise<void> {
    const handles = [...this.#handles.values()];
    this.#handles.clear();
    await Promise.all(handles.map((handle) => handle.close()));
  }

  /** The first handle, or after a restart the new one. */
  get engine(): port.Engine {
    return present(this.#engine, "The scene has begun");
  }

  /** One more handle, that knows all queues of the scene. */
  async open(): Promise<port.Engine> {
    const inner = await this.#target.open();
    const handle = quietAfter(inner, this.#signal);
    this.#handles.set(handle, inner);
    for (const queue of this.#queues.keys()) await handle.declare({ queue });
    return handle;
  }

  async close(handle: port.Engine): Promise<void> {
    this.#handles.delete(handle);
    await handle.close();
  }

  async restart(): Promise<void> {
    await this.end();
    if (typeof this.#target.restart === "string") throw new Error(this.#target.restart);
    await this.#target.restart();
    this.#engine = await this.open();
  }

  /** One more queue, declared on the first handle. */
  async newQueue(name = `${this.queue}-${this.#next()}`, levels: readonly string[] = DEFAULT_LEVELS): Promise<string> {
    await this.engine.declare({ queue: name, levels });
    this.#queues.set(name, levels);
    return name;
  }

  entry(key: string, { text, ...wish }: Wish = {}): port.Submission {
    return {
      queue: this.queue,
      key,
      level: "normal",
      payload: { type: TEXT_TYPE, body: text ?? key },
      delayMs: 0,
      mode: "fifo",
      keyLimit: 1_000_000,
      queueLimit: 10_000_000,
      keepMs: wish.id === undefined ? 0 : KEEP_MS,
      ...wish,
    };
  }

  /** Submits one item, which must be accepted. */
  submit(key: string, wish: Wish = {}, engine: port.Engine = this.engine): Promise<port.Accepted> {
    return begun(this.#submit(key, wish, engine));
  }

  async #submit(key: string, wish: Wish, engine: port.Engine): Promise<port.Accepted> {
    const result = await this.trySubmit(key, wish, engine);
    if (result.ok) return result.accepted;
    throw new NotConforming(`An item for key ${key} was refused: ${result.error.message}`, { cause: result.error });
  }

  async trySubmit(key: string, wish: Wish = {}, engine: port.Engine = this.engine): Promise<port.SubmitResult> {
    const results = await engine.submit([this.entry(key, wish)]);
    equal(results.length, 1, "A submission of one item has one result");
    return present(results[0], "A submission has a result");
  }

  /** Waits until something is ready, and takes it. */
  claim(wish: ClaimWish = {}): Promise<readonly port.Grant[]> {
    return begun(this.#claim(wish));
  }

  async #claim({ engine = this.engine, ...wish }: ClaimWish): Promise<readonly port.Grant[]> {
    const request = this.#claimRequest(wish);
    const grants = await engine.claim(request);
    if (grants.length === 0 && wish.signal === undefined) {
      throw new NotConforming(`Nothing of queue ${request.queue} was handed out within ${GRANT_WITHIN_MS} ms.`);
    }
    ok(grants.length <= request.max, `A claim of ${request.max} was given ${grants.length}`);
    return grants;
  }

  claimOne(wish: ClaimWish = {}): Promise<port.Grant> {
    return begun(this.#claimOne(wish));
  }

  async #claimOne(wish: ClaimWish): Promise<port.Grant> {
    const [grant] = await this.claim({ ...wish, max: 1 });
    return present(grant, "A claim was answered with a grant");
  }

  /** So many, in as many claims as it takes. */
  async claimCount(count: number, wish: ClaimWish = {}): Promise<port.Grant[]> {
    const grants: port.Grant[] = [];
    while (grants.length < count) grants.push(...(await this.claim({ ...wish, max: count - grants.length })));
    return grants;
  }

  /**
   * Everything that is ready now, in the order in which it is handed out. There is no sleep to show that nothing
   * more comes: an item of the least urgent level is submitted last, so whatever is ready comes before it.
   */
  async claimReady(wish: ClaimWish = {}): Promise<port.Grant[]> {
    const queue = wish.queue ?? this.queue;
    const level = present(this.#queues.get(queue)?.at(-1), "The queue has levels");
    const marker = await this.submit(`marker-${this.#next()}`, { queue, level });
    const ready: port.Grant[] = [];
    for (;;) {
      const grants = await this.claim({ max: 100, ...wish });
      const last = grants.find(({ item }) => item.id === marker.id);
      ready.push(...grants.filter((grant) => grant !== last));
      if (last === undefined) continue;
      await this.done(last);
      return ready;
    }
  }

  async settle(
    { lease }: { readonly lease: port.Lease },
    ending: port.Ending,
    engine: port.Engine = this.engine,
  ): Promise<port.SettleResult> {
    const results = await engine.settle([{ lease, ending }]);
    equal(results.length, 1, "A settlement of one lease has one result");
    return present(results[0], "A settlement has a result");
  }

  /** Settles under a lease that must still hold. */
  async finish(
    grant: { readonly lease: port.Lease },
    ending: port.Ending,
    engine: port.Engine = this.engine,
  ): Promise<void> {
    equal(await this.settle(grant, ending, engine), "settled", `Settling as ${ending.type} under a current lease`);
  }

  async done(grant: port.Grant, engine: port.Engine = this.engine): Promise<void> {
    await this.finish(grant, { type: "done" }, engine);
  }

  async retry(grant: port.Grant, delayMs = 0, place: "keep" | "yield" = "keep"): Promise<void> {
    await this.finish(grant, { type: "retry", delayMs, place, failure: { message: "not yet" } });
  }

  async renew(
    lease: port.Lease,
    wish: Partial<port.Renewal> = {},
    engine: port.Engine = this.engine,
  ): Promise<port.RenewResult> {
    const results = await engine.renew([{ lease, leaseMs: LONG_LEASE_MS, ...wish }]);
    equal(results.length, 1, "A renewal of one lease has one result");
    return present(results[0], "A renewal has a result");
  }

  async hold(
    key: string,
    leaseMs: number = LONG_LEASE_MS,
    engine: port.Engine = this.engine,
  ): Promise<port.Lease | undefined> {
    return await engine.hold({ queue: this.queue, key, worker: "holder", leaseMs, signal: AbortSignal.abort() });
  }

  /** Waits for the hold, at most as long as anything may take. */
  heldLater(
    key: string,
    leaseMs: number = LONG_LEASE_MS,
    engine: port.Engine = this.engine,
  ): Promise<port.Lease | undefined> {
    return begun(engine.hold({ queue: this.queue, key, worker: "holder", leaseMs, signal: this.patience() }));
  }

  async find(id: string, queue: string = this.queue): Promise<port.ItemReport | undefined> {
    return await this.engine.find({ queue, id });
  }

  outcome(id: string, engine: port.Engine = this.engine): Promise<port.Outcome | undefined> {
    return begun(engine.outcome({ queue: this.queue, id, signal: this.patience() }));
  }

  async report(queue: string = this.queue): Promise<port.QueueReport> {
    const [report] = await this.engine.queues({ queue });
    return present(report, "A declared queue has a report");
  }

  /**
   * Waits until a lease of `leaseMs` that was made before this call has run out, with nothing else to take: a key of
   * another queue is leased as long, and asked for again.
   */
  async letLeasesRunOut(leaseMs: number = this.leaseMs): Promise<void> {
    const queue = await this.newQueue();
    await this.submit("hourglass", { queue });
    await this.claimOne({ queue, leaseMs });
    await this.done(await this.claimOne({ queue }));
  }

  /** Waits until `ms` have passed by the store's clocks. */
  async letPass(ms: number): Promise<void> {
    const queue = await this.newQueue();
    await this.submit("hourglass", { queue, delayMs: ms });
    await this.done(await this.claimOne({ queue }));
  }

  /** Fires when something takes so long that it is not going to happen, or when the case is over. */
  patience(): AbortSignal {
    return AbortSignal.any([this.#signal, AbortSignal.timeout(GRANT_WITHIN_MS)]);
  }

  #claimRequest(wish: ClaimWish): port.ClaimRequest {
    return {
      queue: this.queue,
      worker: "worker",
      max: 1,
      leaseMs: LONG_LEASE_MS,
      patienceMs: LONG_PATIENCE_MS,
      signal: this.patience(),
      ...wish,
    };
  }

  #next(): number {
    this.#count += 1;
    return this.#count;
  }
}

/** A call that a case may leave behind when it fails: what becomes of it then is nobody's concern. */
function begun<T>(call: Promise<T>): Promise<T> {
  call.catch(() => undefined);
  return call;
}

/** The payload of an item that was submitted as text. */
export function textOf({ item }: port.Grant): string {
  ok(typeof item.payload.body === "string", "A payload that was submitted as text comes back as text");
  return item.payload.body;
}

export function keysOf(grants: readonly port.Grant[]): string[] {
  return grants.map(({ item }) => item.key);
}
