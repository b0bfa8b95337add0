/** Plays a plan: a real relay on queues of the model, in virtual time, held against what a relay promises. */
import { connect, Fatal, RetryLater, type Baton, type HeldLock } from "../../../src/index.ts";
import { memoryEngine } from "../../../src/engines/memory/index.ts";
import type { Engine } from "../../../src/engine/port.ts";
import {
  createRelay,
  type Relay,
  type RelayEvent,
  type RelayMessage,
  type RelaySettings,
  type RouteSettings,
  type Source,
} from "../../../src/relay/index.ts";
import { Random } from "../../kit/random.ts";
import { Checks } from "./checks.ts";
import { ModelQueue } from "./model-queue.ts";
import { type Heard, openModelSource } from "./model-source.ts";
import type { Behaviour, KeysPlan, Plan, SourcePlan, Step } from "./plan.ts";
import type { VirtualProcess } from "./virtual-process.ts";

/** After all faults are over, everything has ended by then. */
const LONGEST_MS = 1_800_000;

export class World {
  readonly plan: Plan;
  readonly virtual: VirtualProcess;
  readonly checks: Checks;
  readonly queues: ReadonlyMap<string, ModelQueue>;
  readonly #random: Random;
  readonly #behaviours = new Map<string, readonly Behaviour[]>();
  readonly #opened: (Source & Heard)[] = [];
  #concurrency: number;
  #keysAwayUntil = 0;
  #store: Baton | undefined;
  #holder: Baton | undefined;
  readonly #holding: Promise<void>[] = [];
  #relay: Relay | undefined;
  #probes = 0;

  constructor(plan: Plan, virtual: VirtualProcess) {
    this.plan = plan;
    this.virtual = virtual;
    this.#random = new Random(plan.seed + 1);
    this.#concurrency = plan.concurrency;
    const random = (): number => this.#random.next();
    this.queues = new Map(
      plan.sources.map(({ name, isFifo, firstHoldMs, latencyMs }) => [
        name,
        new ModelQueue({ name, isFifo, firstHoldMs, latencyMs, random }),
      ]),
    );
    this.checks = new Checks(plan, this.queues);
  }

  async play(): Promise<readonly string[]> {
    if (this.plan.keys !== undefined) {
      const engine = memoryEngine();
      this.#store = await connect(this.#troubled(engine), { onEvent: () => undefined });
      this.#holder = await connect(engine, { onEvent: () => undefined });
    }
    await this.#start();
    for (const step of this.plan.script) {
      await this.#take(step);
      if (this.checks.problems.length > 0) break;
    }
    await this.#finish();
    return this.checks.problems;
  }

  async #take(step: Step): Promise<void> {
    switch (step.step) {
      case "put":
        return this.put(step.source, step.id, step.key, step.behaviours);
      case "pass":
        return await this.virtual.pass(step.ms);
      case "fault":
        this.checks.fault(step);
        return this.queues.get(step.source)?.fail(step.operation, step.fault, step.times, step.ms);
      case "keys-away":
        this.checks.keysAway();
        this.#keysAwayUntil = Date.now() + step.ms;
        return;
      case "hold-key":
        this.#holding.push(this.#holdKey(step.key, step.ms));
        return;
      case "restart":
        return await this.#restart(step.graceMs, step.hurryMs);
      case "reload":
        if (this.#keysAwayUntil > Date.now()) return;
        this.#concurrency = step.concurrency;
        this.checks.reloaded(step.concurrency);
        return await this.#relay?.reload(this.#settings());
    }
  }

  put(source: string, id: string, key: string | undefined, behaviours: readonly Behaviour[]): void {
    this.#behaviours.set(id, behaviours);
    const queue = this.queues.get(source);
    if (queue === undefined) return;
    queue.put(id, key, (stored) => this.checks.put(source, stored));
  }

  async #start(): Promise<void> {
    // A relay that cannot reach its keys does not start.
    await this.virtual.pass(Math.max(0, this.#keysAwayUntil - Date.now()));
    this.#relay = await createRelay(this.#settings(), {
      onEvent: (event: RelayEvent) => this.checks.hear(event),
      random: () => this.#random.next(),
    });
  }

  async #restart(graceMs: number, hurryMs: number | undefined): Promise<void> {
    await this.#stop(graceMs, hurryMs);
    await this.virtual.pass(this.#random.pick([0, 100, 5_000]));
    await this.#start();
  }

  async #stop(graceMs: number, hurryMs: number | undefined): Promise<void> {
    const relay = this.#relay;
    if (relay === undefined) return;
    this.checks.stopping(Math.min(graceMs, hurryMs ?? Infinity));
    const from = this.virtual.now;
    let isOver = false;
    const stopped = relay.stop({ graceMs }).then((report) => {
      isOver = true;
      return report;
    });
    if (hurryMs !== undefined) {
      await this.virtual.pass(hurryMs);
      void relay.stop();
    }
    await this.virtual.passUntil(() => isOver, 120_000);
    if (!isOver) return this.checks.fail("The relay did not stop within two minutes.");
    const tookMs = this.virtual.now - from;
    this.checks.stopped(await stopped, tookMs, relay.report(), this.#opened);
    for (const source of this.#opened) {
      if (!source.isClosed) this.checks.fail(`Source ${source.name} was not closed by a stop.`);
      if (source.mostWatches > 1)
        this.checks.fail(`Source ${source.name} was watched ${source.mostWatches} times at once.`);
    }
    this.#relay = undefined;
  }

  /** All faults end; every message ends; and whatever the relay went through, it is as good as new. */
  async #finish(): Promise<void> {
    const { checks, virtual } = this;
    for (const queue of this.queues.values()) queue.heal();
    this.#keysAwayUntil = 0;
    if (this.#relay === undefined && checks.problems.length === 0) await this.#start();
    await virtual.passUntil(() => checks.problems.length > 0 || checks.unfinished.length === 0, LONGEST_MS);
    if (checks.problems.length === 0 && checks.unfinished.length > 0)
      checks.fail(`Half an hour later these had not ended: ${checks.unfinished.join(", ")}`);
    if (checks.problems.length === 0) await this.#expectAsNew();
    if (checks.problems.length === 0 && this.#relay !== undefined) checks.idle(this.#relay.report());
    await this.#stop(0, undefined);
    for (const source of this.#opened) {
      if (source.afterClose > 0)
        checks.fail(`Source ${source.name} was asked ${source.afterClose} times after it was closed.`);
    }
    const closed = Promise.all([this.#store?.close({ grace: 0 }), this.#holder?.close({ grace: 0 })]);
    await virtual.pass(60_000);
    await closed;
  }

  /** Second episodes: what was reset in vain shows now. */
  async #expectAsNew(): Promise<void> {
    // What is kept for want of another place would come again and again.
    for (const queue of this.queues.values()) queue.purge();
    await this.virtual.pass(80_000);
    for (const id of this.checks.dead.filter((one) => !one.includes("!")).slice(0, 3)) await this.#expectAgain(id);
    for (let round = 0; round < 2; round += 1) {
      for (const source of this.plan.sources) {
        await this.#expectSourceAsNew(source);
        if (this.plan.keys !== undefined) await this.#expectKeysAsNew(source, this.plan.keys);
        await this.virtual.pass(30_000);
      }
    }
  }

  /** What was given up is put in its queue once more, under the same id: it is new there. */
  async #expectAgain(id: string): Promise<void> {
    const { source, key } = this.checks.placeOf(id);
    if (source === undefined || this.checks.problems.length > 0) return;
    this.put(source, id, key, [{ does: "ends", ms: 0 }]);
    await this.virtual.passUntil(() => this.checks.hasEnded(id), 60_000);
    if (!this.checks.wasHandled(id)) this.checks.fail(`${id} was given up, put in its queue again, and not delivered.`);
  }

  /** A message that nothing keeps from being handled is handled so soon. */
  async #probe(source: SourcePlan, what: string, withinMs: number, key?: string): Promise<void> {
    if (this.checks.problems.length > 0) return;
    this.#probes += 1;
    const id = `probe${this.#probes}`;
    const latencyMs = this.plan.sources.reduce((sum, one) => sum + one.latencyMs, 0);
    const bound = withinMs + (this.plan.transformMs ?? 0) + 20 + 6 * latencyMs;
    this.put(source.name, id, key ?? id, [{ does: "ends", ms: 0 }]);
    const isThere = await this.virtual.passUntil(() => this.checks.hasEnded(id), bound);
    if (!isThere) this.checks.fail(`${what}, a message of ${source.name} took longer than ${bound} ms.`);
  }

  async #expectSourceAsNew(source: SourcePlan): Promise<void> {
    const queue = this.queues.get(source.name);
    const { virtual } = this;
    await this.#probe(source, "With nothing in the way", 0);
    queue?.fail("receive", "refused", 1);
    await virtual.pass(2);
    queue?.heal();
    await this.#probe(source, "After one receive that failed", 330);
    for (let episode = 0; episode < 2; episode += 1) {
      await virtual.pass(500);
      queue?.fail("receive", "refused", 1);
      // Until the source is watched again.
      await virtual.pass(450);
      queue?.heal();
      await this.#probe(source, "Watched again after a receive that failed", 0);
    }
    await virtual.pass(500);
    queue?.fail("remove", "refused", 1);
    await this.#probe(source, "After one acknowledgement that failed", 130);
    queue?.fail("remove", "refused", 3);
    await this.#probe(source, "After three acknowledgements that failed", 730);
  }

  async #expectKeysAsNew(source: SourcePlan, { waiting, waitMs }: KeysPlan): Promise<void> {
    const { virtual } = this;
    this.#probes += 1;
    this.#keysAwayUntil = Date.now() + 1 + source.latencyMs * 2 + (this.plan.transformMs ?? 0);
    this.put(source.name, `probe${this.#probes}`, `probe${this.#probes}`, [{ does: "ends", ms: 0 }]);
    await virtual.pass(this.#keysAwayUntil - Date.now() + 1);
    await this.#probe(source, "Right after the keys were away", 130);
    await virtual.pass(20_000);
    await this.#probe(source, "After the keys were away", 0);
    if (waiting === 0 || waitMs < 1_000) return;
    const holding = this.#holdKey("probe", 300);
    await virtual.pass(1);
    await this.#probe(source, "When somebody lets go of its key", 320, "probe");
    await virtual.pass(400);
    await holding;
  }

  #settings(): RelaySettings {
    const { plan } = this;
    const routes = Array.from({ length: plan.routes }, (_, index) => this.#route(index));
    const keys =
      plan.keys === undefined || this.#store === undefined
        ? undefined
        : { ...plan.keys, store: this.#store, queue: "keys" };
    return { routes, keys, admin: undefined, graceMs: plan.graceMs };
  }

  #route(index: number): RouteSettings {
    const { plan } = this;
    const sources = plan.sources.filter(({ route }) => route === index);
    const { transformMs } = plan;
    const transform = {
      name: "slow",
      apply: async (content: {
        readonly data: Uint8Array;
        readonly contentType: string | undefined;
        readonly attributes: Readonly<Record<string, string>>;
      }) => {
        await pass(this.#random.between(0, transformMs ?? 0));
        if (Buffer.from(content.data).toString("utf8").includes("!")) throw new Error("bad data");
        return content;
      },
    };
    return {
      name: `route${index}`,
      sources: sources.map((source) => ({
        name: source.name,
        weight: source.weight,
        retry: source.retry,
        deadLetter: source.deadLetter,
        open: () => Promise.resolve(this.#open(source)),
      })),
      choice: plan.choice,
      concurrency: this.#concurrency,
      transforms: transformMs === undefined ? [] : [transform],
      key: plan.keyInContent ? { from: "json", pointer: "/key" } : undefined,
      form: { type: "raw" },
      processor: { type: "function", run: (message) => this.#handle(message), timeoutMs: plan.timeoutMs },
    };
  }

  #open(plan: SourcePlan): Source & Heard {
    const queue = this.queues.get(plan.name);
    if (queue === undefined) throw new Error(`There is no queue ${plan.name}.`);
    const source = openModelSource(queue, { ...plan, random: () => this.#random.next() });
    this.#opened.push(source);
    return source;
  }

  async #handle(message: RelayMessage): Promise<void> {
    const { checks } = this;
    const run = checks.begin(message);
    const behaviours = this.#behaviours.get(message.id) ?? [];
    const behaviour = behaviours[Math.min(run.number, behaviours.length) - 1];
    const { does, ms } = behaviour ?? { does: "ends", ms: 0 };
    await (does === "deaf" ? pass(ms + 15_000) : passOrAbort(does === "ignores" ? 3_600_000 : ms, message.signal));
    checks.end(run, message, { does: does === "deaf" ? "ends" : does, ms });
    message.signal.throwIfAborted();
    if (does === "fails") throw new Error("It went wrong.");
    if (does === "refuses") throw new Fatal("hopeless");
    if (does === "later") throw new RetryLater(ms, "not now");
  }

  async #holdKey(key: string, ms: number): Promise<void> {
    const held = await this.#holder
      ?.queue("keys")
      .hold(key, { wait: 20_000 })
      .catch(() => undefined);
    if (held === undefined) return;
    this.checks.heldElsewhere(key, held.fence);
    await pass(ms);
    this.checks.leftElsewhere(key);
    await release(held);
  }

  /** A store that is out of reach for as long as the script says. */
  #troubled(engine: Engine): Engine {
    const isAway = (): boolean => this.#keysAwayUntil > Date.now();
    return new Proxy(engine, {
      get: (target, name) => {
        const value: unknown = Reflect.get(target, name, target);
        if (typeof value !== "function") return value;
        return (...given: unknown[]): unknown => {
          if (isAway() && (name === "hold" || name === "renew" || name === "settle"))
            return Promise.reject(new Error("The store of the keys is away."));
          return Reflect.apply(value, target, given);
        };
      },
    });
  }
}

async function release(held: HeldLock): Promise<void> {
  await held.release().catch(() => undefined);
}

function pass(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

function passOrAbort(ms: number, signal: AbortSignal): Promise<void> {
  if (ms === 0 || signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    });
  });
}
