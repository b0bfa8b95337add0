/** An item that was accepted is seen wherever it is, also between two places, and also when it moves while somebody looks. */
import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { connect as connectNats } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { OutcomeUnknown } from "../../src/domain/errors.ts";
import type { CancelResult, Ending, Grant, ItemReport, Submission } from "../../src/engine/port.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { NatsEngine } from "../../src/engines/nats/engine.ts";
import type { Wire } from "../../src/engines/nats/wire.ts";
import { entry } from "../cars.ts";
import { until } from "../kit/until.ts";
import { refusal, type StreamAnswer } from "./desk.ts";
import { done, take } from "./engine-calls.ts";

const TIMEOUT = { timeout: 120_000 };
const DELAY_MS = 100;
const LONG_MS = 600_000;
const KEEP_MS = 60_000;
/** Behind an item of this size others stand in line. */
const BIG = "x".repeat(40_000);

/** Every request that is sent over it can be the one before which something else happens. */
class Cut {
  readonly wire: Wire;
  #left = Infinity;
  #reached: (() => void) | undefined;
  #held: (() => void)[] | undefined;

  constructor(inner: Wire) {
    this.wire = {
      ...inner,
      publish: (...message) => {
        if (message[2]?.reply !== undefined && (this.#left -= 1) === 0) {
          this.#held = [];
          this.#reached?.();
        }
        if (this.#held === undefined) inner.publish(...message);
        else this.#held.push(() => inner.publish(...message));
      },
    };
  }

  /** Calls, and lets `between` happen before so many requests of the call. False: there were fewer. */
  async call<T>(count: number, work: () => Promise<T>, between: () => Promise<unknown>): Promise<[T, boolean]> {
    const { promise: reached, resolve } = Promise.withResolvers<void>();
    this.#left = count;
    this.#reached = resolve;
    const working = work();
    const isReached = await Promise.race([reached.then(() => true), working.then(() => false)]);
    if (isReached) await between();
    const held = this.#held ?? [];
    this.#left = Infinity;
    this.#held = undefined;
    for (const send of held) send();
    return [await working, isReached];
  }
}

/** A server, an engine that looks, and one that moves items. */
class Yard {
  readonly looking: NatsEngine;
  readonly moving: NatsEngine;
  readonly cut: Cut;
  readonly port: number;

  private constructor(looking: NatsEngine, moving: NatsEngine, cut: Cut, port: number) {
    this.looking = looking;
    this.moving = moving;
    this.cut = cut;
    this.port = port;
  }

  static async open(context: TestContext): Promise<Yard> {
    const server = await startNatsServer();
    const newWire = async (): Promise<Wire> => wireOf(await connectNats({ servers: [server.url] }), true);
    const cut = new Cut(await newWire());
    const looking = new NatsEngine({ wire: cut.wire, clock: systemClock, random: Math.random });
    const moving = new NatsEngine({ wire: await newWire(), clock: systemClock, random: Math.random });
    const yard = new Yard(looking, moving, cut, server.port);
    for (const engine of [looking, moving]) {
      context.after(() => engine.close());
      await engine.declare({ queue: "cars" });
    }
    // After the engines have closed.
    context.after(() => server.stop());
    return yard;
  }

  /** Gives its id. */
  async submit(more: Partial<Submission>, engine = this.looking): Promise<string> {
    const [result] = await engine.submit([{ ...entry, key: "car", ...more }]);
    assert.ok(result?.ok === true);
    return result.accepted.id;
  }

  /** Nobody works: what comes due stays due. */
  async submitDue(more: Partial<Submission> = {}): Promise<string> {
    const id = await this.submit({ delayMs: DELAY_MS, ...more });
    await this.becomesDue();
    return id;
  }

  async becomesDue(): Promise<void> {
    await until(async () => (await this.count("later")) === 0, "that nothing is delayed any more");
  }

  /** To somebody who does nothing with it. */
  async deliverDue(): Promise<void> {
    const connection = await connectNats({ port: this.port });
    const delivered = Promise.withResolvers<void>();
    connection.subscribe("nobody", { callback: () => delivered.resolve() });
    connection.publish("$JS.API.CONSUMER.MSG.NEXT.baton.due-cars", '{"batch":1}', { reply: "nobody" });
    await delivered.promise;
    await connection.close();
  }

  async count(kind: "later" | "due"): Promise<number> {
    const filter = { subjects_filter: `baton.c.${kind}.cars.>` };
    const { state } = (await ask(this.port, "$JS.API.STREAM.INFO.baton", filter)) as StreamAnswer & {
      readonly state?: { readonly subjects?: Readonly<Record<string, number>> };
    };
    return Object.keys(state?.subjects ?? {}).length;
  }

  find(id: string): Promise<ItemReport | undefined> {
    return this.looking.find({ queue: "cars", id });
  }

  cancel(id: string): Promise<CancelResult> {
    return this.looking.cancel({ queue: "cars", id });
  }

  /** Undefined: there is nothing to be taken. */
  async takeOne(): Promise<Grant | undefined> {
    await this.submit({ key: "other", level: "low" }, this.moving);
    const [grant] = await take(this.moving);
    return grant?.item.key === "other" ? undefined : grant;
  }

  async takeSurely(): Promise<Grant> {
    const grant = await this.takeOne();
    assert.ok(grant !== undefined);
    return grant;
  }

  async end(grant: Grant, ending: Ending): Promise<void> {
    assert.deepEqual(await this.moving.settle([{ lease: grant.lease, ending }]), ["settled"]);
  }
}

describe("an item that has come due while nobody works", () => {
  test("waits: it is found, counted, and keeps its queue from being deleted", TIMEOUT, async (context) => {
    const yard = await Yard.open(context);
    const id = await yard.submitDue();
    assert.equal(await yard.count("due"), 1);
    assert.equal((await yard.find(id))?.state, "waiting");
    const [report] = await yard.looking.queues({ queue: "cars" });
    assert.deepEqual([report?.waiting, report?.delayed], [1, 0]);
    assert.deepEqual(
      report?.levels.map(({ waiting }) => waiting),
      [0, 1, 0],
    );
    const keys = await yard.looking.keys({ queue: "cars", limit: 10 });
    assert.deepEqual(
      keys.map(({ key, waiting, delayed }) => [key, waiting, delayed]),
      [["car", 1, 0]],
    );
    const [strict] = await yard.looking.submit([{ ...entry, key: "car", mode: "strict" }]);
    assert.ok(strict?.ok === false && strict.error.code === "KEY_BUSY");
    const { code } = await refusal(yard.looking.deleteQueue({ queue: "cars", force: false }));
    assert.equal(code, "QUEUE_NOT_EMPTY");
    assert.equal((await yard.takeSurely()).item.id, id);
  });

  test("can be cancelled, and does not run after that", TIMEOUT, async (context) => {
    const yard = await Yard.open(context);
    const id = await yard.submitDue({ keepMs: KEEP_MS });
    assert.equal(await yard.cancel(id), "cancelled");
    assert.equal((await yard.find(id))?.state, "cancelled");
    const other = await yard.submit({});
    assert.equal((await take(yard.moving))[0]?.item.id, other);
    assert.equal((await yard.looking.queues({ queue: "cars" }))[0]?.waiting, 0);
  });

  test("can be cancelled though it was delivered to a process that stands still", TIMEOUT, async (context) => {
    const yard = await Yard.open(context);
    const id = await yard.submitDue({ keepMs: KEEP_MS });
    await yard.deliverDue();
    assert.equal((await yard.find(id))?.state, "waiting");
    assert.equal(await yard.cancel(id), "cancelled");
  });
});

/** How an item gets to where it is looked for, and moves on. */
interface Move {
  readonly name: string;
  /** Gives the id of the item, and what moves it. */
  readonly begin: (
    yard: Yard,
    key: string,
  ) => Promise<{ readonly id: string; readonly go: () => Promise<Grant | undefined | void> }>;
}

const YIELD: Ending = { type: "retry", delayMs: LONG_MS, place: "yield", failure: { message: "not now" } };
const DEAD: Ending = { type: "dead", failure: { message: "no" } };

const MOVES: readonly Move[] = [
  {
    name: "it comes due, is brought to its key and starts",
    begin: async (yard, key) => {
      const id = await yard.submit({ key, delayMs: DELAY_MS });
      return { id, go: () => yard.becomesDue().then(() => yard.takeOne()) };
    },
  },
  {
    name: "it is brought to its key and starts",
    begin: async (yard, key) => ({ id: await yard.submitDue({ key }), go: () => yard.takeOne() }),
  },
  {
    name: "it leaves the line and starts",
    begin: async (yard, key) => {
      await yard.submit({ key, payload: { type: "text/plain", body: BIG } });
      const first = await yard.takeSurely();
      const id = await yard.submit({ key });
      return { id, go: () => yard.end(first, { type: "done" }).then(() => yard.takeOne()) };
    },
  },
  {
    name: "it steps aside",
    begin: async (yard, key) => {
      const id = await yard.submit({ key });
      const grant = await yard.takeSurely();
      return { id, go: () => yard.end(grant, YIELD) };
    },
  },
  {
    name: "it dies",
    begin: async (yard, key) => {
      const id = await yard.submit({ key });
      const grant = await yard.takeSurely();
      return { id, go: () => yard.end(grant, DEAD) };
    },
  },
  {
    name: "it is revived",
    begin: async (yard, key) => {
      const id = await yard.submit({ key });
      await yard.end(await yard.takeSurely(), DEAD);
      const revive = (): Promise<number> => yard.moving.revive({ queue: "cars", ids: [id], action: "retry" });
      return { id, go: async () => void (await revive()) };
    },
  },
  {
    name: "it is done, and remembered",
    begin: async (yard, key) => {
      const id = await yard.submit({ key, keepMs: KEEP_MS });
      const grant = await yard.takeSurely();
      return { id, go: () => yard.end(grant, { type: "done" }) };
    },
  },
  {
    name: "it is cancelled while it is delayed, and remembered",
    begin: async (yard, key) => {
      const id = await yard.submit({ key, keepMs: KEEP_MS, delayMs: LONG_MS });
      const cancel = (): Promise<CancelResult> => yard.moving.cancel({ queue: "cars", id });
      // The other may have begun to cancel it, and stands still.
      const codeOf = (error: unknown): string => (error instanceof OutcomeUnknown ? "unknown" : String(error));
      return { id, go: async () => assert.match(await cancel().catch(codeOf), /^(cancelled|ended|unknown)$/) };
    },
  },
];

/** Calls again and again, each time with the move before another of its requests, until it has no more of them. */
async function atEveryRequest(
  yard: Yard,
  { begin }: Move,
  name: string,
  call: (id: string) => Promise<unknown>,
  missed: unknown,
): Promise<number> {
  for (let count = 1; ; count += 1) {
    const { id, go } = await begin(yard, `${name}${count}`);
    let grant: Grant | undefined | void = undefined;
    const [answer, isCut] = await yard.cut.call(
      count,
      () => call(id),
      async () => (grant = await go()),
    );
    assert.notEqual(answer, missed, `${name} at request ${count}`);
    if (!isCut) return count - 1;
    if (grant !== undefined) await done(yard.moving, [grant]);
    // What is left of it would be handed out in place of the next one.
    await yard.moving.deleteQueue({ queue: "cars", force: true });
    for (const engine of [yard.moving, yard.looking])
      await until(
        () =>
          engine.declare({ queue: "cars" }).then(
            () => true,
            () => false,
          ),
        "the queue",
      );
  }
}

describe("an item that moves while somebody looks for it", () => {
  for (const move of MOVES)
    test(`is found: ${move.name}`, TIMEOUT, async (context) => {
      const yard = await Yard.open(context);
      const count = await atEveryRequest(yard, move, "find", (id) => yard.find(id), undefined);
      context.diagnostic(`at each of ${count} requests`);
      assert.ok(count > 1);
    });
});

describe("an item that moves while somebody cancels it", () => {
  for (const move of MOVES)
    test(`is not missing: ${move.name}`, TIMEOUT, async (context) => {
      const yard = await Yard.open(context);
      const count = await atEveryRequest(yard, move, "cancel", (id) => yard.cancel(id), "missing");
      context.diagnostic(`at each of ${count} requests`);
      assert.ok(count > 1);
    });
});
