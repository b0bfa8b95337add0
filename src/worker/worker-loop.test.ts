// oxlint-disable unicorn/no-thenable -- What handlers return is not ours to choose.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { runInNewContext } from "node:vm";
import { aftermath } from "../../test/manual-clock.ts";
import { never } from "../../test/scripted-engine.ts";
import { LEASE_MS, setStage, type Stage } from "../../test/worker-stage.ts";
import { instant } from "../domain/clock.ts";
import { Fatal, HandlerTimeout, LeaseLost, OutcomeUnknown, RetryLater } from "../domain/errors.ts";
import type { Outcome } from "../engine/port.ts";
import { type BatonEvent, describeWarning } from "../index.ts";
import type { Handler } from "./handler.ts";

async function outcomeOf({ queue }: Stage, id: string): Promise<Outcome | undefined> {
  return (await queue.item(id))?.outcome;
}

/** Lets one handler loose on one item, for long enough that it ends one way or the other. */
async function runOnce(handler: Handler<unknown>, stage: Stage = setStage()): Promise<Outcome | undefined> {
  await stage.queue.submit("car1", "paint", { id: "a" });
  const worker = stage.queue.work(handler);
  await stage.clock.pass(1_000);
  await worker.stop({ grace: 0 });
  return outcomeOf(stage, "a");
}

describe("a handler that succeeds", () => {
  const results: readonly (readonly [string, Handler<unknown>, unknown])[] = [
    ["returns a value", () => ({ fine: true }), '{"fine":true}'],
    ["returns nothing", () => undefined, undefined],
    ["returns null", () => null, "null"],
    ["is async", async () => "fine", '"fine"'],
    ["returns a promise of a promise", () => Promise.resolve(Promise.resolve(1)), "1"],
    ["returns a thenable", () => ({ then: (resolve: (value: string) => void) => resolve("fine") }), '"fine"'],
    ["returns something with a then that is no function", () => ({ then: 1 }), '{"then":1}'],
    ["returns what JSON cannot carry", () => 10n, undefined],
  ];
  for (const [name, handler, result] of results) {
    test(`${name}: the item is done, after one attempt`, async () => {
      const outcome = await runOnce(handler);
      assert.equal(outcome?.state, "done");
      assert.equal(outcome?.attempt, 1);
      assert.equal(outcome?.result?.body, result);
    });
  }

  test("as a thenable that answers twice: the item is done once", async () => {
    const stage = setStage();
    const twice = {
      then(resolve: (value: string) => void, reject: (reason: unknown) => void): void {
        resolve("first");
        resolve("second");
        reject(new Error("third"));
      },
    };
    const outcome = await runOnce(() => twice, stage);
    assert.equal(outcome?.result?.body, '"first"');
    assert.equal(stage.engine.settlements.flat().length, 1);
  });
});

describe("a handler that fails", () => {
  const failures: readonly (readonly [string, Handler<unknown>, RegExp])[] = [
    ["throws", () => thrower(new Error("no luck")), /^no luck$/],
    ["rejects", () => Promise.reject(new Error("no luck")), /^no luck$/],
    ["throws undefined", () => thrower(undefined), /threw undefined/],
    ["throws a string", () => thrower("just text"), /^just text$/],
    ["throws an object", () => thrower({ status: 500 }), /"status":500/],
    ["rejects with nothing", async () => thrower(undefined), /threw undefined/],
    [
      "returns a thenable that rejects",
      () => ({ then: (_: unknown, reject: (why: unknown) => void) => reject("no") }),
      /^no$/,
    ],
    ["returns a thenable that throws", () => ({ then: () => thrower(new Error("then")) }), /^then$/],
    [
      "returns a hostile object",
      () => ({
        get then(): unknown {
          return thrower(new Error("getter"));
        },
      }),
      /^getter$/,
    ],
  ];
  for (const [name, handler, message] of failures) {
    test(`${name}: the item is tried as often as allowed, then dead`, async () => {
      const stage = setStage();
      const outcome = await runOnce(handler, stage);
      assert.equal(outcome?.state, "dead");
      assert.equal(outcome?.attempt, 2);
      assert.match(outcome?.failure?.message ?? "", message);
      assert.deepEqual(stage.told(), ["started", "retry", "started", "dead"]);
    });
  }

  test("fatally: the item is dead at once", async () => {
    const outcome = await runOnce(() => thrower(new Fatal("bad data")));
    assert.equal(outcome?.state, "dead");
    assert.equal(outcome?.attempt, 1);
  });

  test("with a result that cannot be kept: the item is done, it is told, and the outcome says so", async () => {
    const stage = setStage({ limits: { payload: 100 } });
    const receipts = [];
    for (const key of ["large", "bigint", "fine"]) receipts.push(await stage.queue.submit(key, key, { id: key }));
    const results: Record<string, unknown> = { large: "x".repeat(200), bigint: 10n, fine: "x" };
    const worker = stage.queue.work((item) => results[item.key]);
    await stage.clock.pass(0);
    await worker.stop({ grace: 0 });
    const reasons = stage.events.filter((event) => event.type === "result-not-kept");
    assert.deepEqual(
      reasons.map(({ item, reason }) => [item.queue, item.key, item.id, reason]),
      [
        ["cars", "large", "large", "it has 202 bytes, and limits.payload of the queue is 100"],
        ["cars", "bigint", "bigint", "JSON cannot carry it: TypeError: Do not know how to serialize a BigInt"],
      ],
    );
    const outcomes = await Promise.all(receipts.map((receipt) => receipt.outcome()));
    assert.deepEqual(
      outcomes.map(({ state, result, resultMissing }) => [state, result, resultMissing !== undefined]),
      [
        ["done", undefined, true],
        ["done", undefined, true],
        ["done", "x", false],
      ],
    );
  });

  test("and says when to try again: it is tried then, not before", async () => {
    const stage = setStage();
    const starts: number[] = [];
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => {
      starts.push(stage.clock.monotonic());
      throw new RetryLater("700ms");
    });
    await stage.clock.pass(2_000);
    await worker.stop({ grace: 0 });
    assert.deepEqual(starts, [1_000, 1_700]);
  });

  test("does not take the worker down with it", async () => {
    const stage = setStage({ retry: { attempts: 1 } });
    const done: unknown[] = [];
    for (const payload of [1, 2, 3]) await stage.queue.submit(`car${payload}`, payload);
    const worker = stage.queue.work((item) => {
      if (item.payload === 2) throw new Error("no luck");
      done.push(item.payload);
    });
    await stage.clock.pass(0);
    await worker.stop({ grace: 0 });
    assert.deepEqual(done, [1, 3]);
  });

  test("by hanging, with a timeout: its signal fires, and the item is tried again as timed out", async () => {
    const stage = setStage();
    const reasons: unknown[] = [];
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(
      (_, lease) =>
        new Promise((__, reject) => {
          lease.signal.addEventListener("abort", () => {
            reasons.push(lease.signal.reason);
            reject(new Error("AbortError"));
          });
        }),
      { timeout: 500 },
    );
    await stage.clock.pass(2_000);
    await worker.stop({ grace: 0 });
    assert.equal(reasons.length, 2);
    assert.ok(reasons.every((reason) => reason instanceof HandlerTimeout));
    assert.equal((await outcomeOf(stage, "a"))?.failure?.code, "HANDLER_TIMEOUT");
  });

  test("by hanging for good, with a timeout: the key is free a lease later", async () => {
    const stage = setStage();
    let heldItems = 0;
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(
      () => {
        heldItems += 1;
        return heldItems === 1 ? never() : undefined;
      },
      { timeout: 500, concurrency: 2 },
    );
    await stage.clock.pass(LEASE_MS + 100);
    assert.equal(heldItems, 2);
    assert.equal((await outcomeOf(stage, "a"))?.state, "done");
    const stopped = worker.stop({ grace: 0 });
    await stage.clock.pass(10_000);
    assert.equal((await stopped).abandoned, 1);
  });
});

describe("a worker whose store is out of reach", () => {
  test("settles again until it is heard, as long as the lease is certain", async () => {
    const stage = setStage();
    let tries = 0;
    stage.engine.onSettle = () => {
      tries += 1;
      if (tries === 3) stage.engine.onSettle = undefined;
      return Promise.reject(new OutcomeUnknown("settle"));
    };
    const outcome = await runOnce(() => "fine", stage);
    assert.equal(outcome?.state, "done");
    assert.deepEqual(stage.told(), ["started", "trouble", "done"]);
  });

  test("gives up settling when the lease is not certain any more, and says that the result was discarded", async () => {
    const stage = setStage();
    stage.engine.onSettle = () => Promise.reject(new OutcomeUnknown("settle"));
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => "fine");
    await stage.clock.pass(0);
    await stage.queue.pause();
    await stage.clock.pass(LEASE_MS - 1);
    assert.deepEqual(stage.told().slice(-2), ["lost expired", "discarded"]);
    const tries = stage.engine.settlements.length;
    await stage.clock.pass(LEASE_MS);
    assert.equal(stage.engine.settlements.length, tries);
    await worker.stop({ grace: 0 });
  });

  test("asks for work again, less and less often, and goes on when it is heard", async () => {
    const stage = setStage();
    stage.engine.onClaim = () => Promise.reject(new Error("no connection"));
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => "fine");
    await stage.clock.pass(60_000);
    const tries = stage.engine.claims.length;
    assert.ok(tries > 5 && tries < 100, `${tries} tries in a minute`);
    stage.engine.onClaim = undefined;
    await stage.clock.pass(5_000);
    assert.equal((await outcomeOf(stage, "a"))?.state, "done");
    assert.equal(stage.told().filter((type) => type === "trouble").length, 3, "at once, and after 10 and 30 s");
    assert.equal(stage.told().at(-1), "recovered");
    await worker.stop({ grace: 0 });
  });

  test("asks soon again when the store is away for the second time", async (context) => {
    const stage = setStage();
    let tries: number[] = [];
    const away = (): Promise<never> => {
      tries.push(stage.clock.monotonic());
      return Promise.reject(new Error("no connection"));
    };
    const pauses = (): readonly number[] => tries.slice(1).map((at, index) => at - (tries[index] ?? at));
    stage.engine.onClaim = away;
    const worker = stage.queue.work(() => {
      stage.engine.onClaim = away;
    });
    context.after(() => worker.stop({ grace: 0 }));
    await stage.clock.pass(10_000);
    const [firstPause = 0] = pauses();
    assert.ok((pauses().at(-1) ?? 0) > firstPause * 10, `the pauses grow: ${pauses().join(", ")} ms`);
    tries = [];
    stage.engine.onClaim = undefined;
    await stage.queue.submit("car1", 1);
    await stage.clock.pass(10_000);
    assert.deepEqual(
      stage.told().filter((type) => type === "done"),
      ["done"],
    );
    assert.equal(pauses()[0], firstPause, `the pauses begin anew: ${pauses().join(", ")} ms`);
  });

  test("does not start what it got too late", async () => {
    const stage = setStage();
    let heldItems = 0;
    const slow = Promise.withResolvers<void>();
    stage.engine.onClaim = async (request) => {
      stage.engine.onClaim = never;
      const grants = await stage.store.connect().claim(request);
      await slow.promise;
      return grants;
    };
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => (heldItems += 1));
    await stage.clock.pass(LEASE_MS);
    slow.resolve();
    await aftermath();
    assert.equal(heldItems, 0);
    assert.deepEqual(stage.told(), ["lost late"]);
    const stopped = worker.stop({ grace: 0 });
    await stage.clock.pass(10_000);
    await stopped;
  });
});

describe("a process that stood still while a grant was on its way", () => {
  /** The store grants, and the answer is handled after so long. */
  async function handledAfter(standMs: number, stage: Stage): Promise<void> {
    const answer = Promise.withResolvers<void>();
    stage.engine.onClaim = async (request) => {
      stage.engine.onClaim = never;
      const grants = await stage.store.connect().claim(request);
      await answer.promise;
      return grants;
    };
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(() => undefined);
    await stage.clock.pass(0);
    // Nothing runs meanwhile.
    void stage.clock.stall(standMs);
    answer.resolve();
    await aftermath();
    const stopped = worker.stop({ grace: 0 });
    // The claim that has no answer is waited for, for a while; a worker that has not stopped keeps its process alive.
    await stage.clock.pass(10_000);
    await stopped;
  }

  test("gives it back while the store still has the lease: no attempt is counted that no handler saw", async () => {
    const stage = setStage();
    // The local deadline has passed, the store's has not.
    await handledAfter(LEASE_MS - 100, stage);
    assert.deepEqual(stage.told(), ["released"]);
    const item = await stage.queue.item("a");
    assert.deepEqual([item?.state, item?.attempt], ["waiting", 0]);
  });

  test("begins nothing when the store has given it up, too", async () => {
    const stage = setStage();
    await handledAfter(LEASE_MS + 100, stage);
    assert.deepEqual(stage.told(), ["lost late"]);
    assert.match(
      describeWarning(stage.events[0] as BatonEvent) ?? "",
      /key car1 was over before its handler could begin/,
    );
  });
});

describe("a handler that ends after its lease was lost", () => {
  test("changes nothing: what it returned is discarded, and the item runs again", async () => {
    const stage = setStage();
    stage.engine.onRenew = never;
    const first = Promise.withResolvers<string>();
    let heldItems = 0;
    await stage.queue.submit("car1", 1, { id: "a" });
    const worker = stage.queue.work(
      () => {
        heldItems += 1;
        return heldItems === 1 ? first.promise : "second";
      },
      { concurrency: 2 },
    );
    await stage.clock.pass(LEASE_MS);
    assert.equal((await outcomeOf(stage, "a"))?.result?.body, '"second"');
    first.resolve("first");
    await stage.clock.pass(0);
    assert.equal((await outcomeOf(stage, "a"))?.result?.body, '"second"');
    assert.deepEqual(stage.told(), ["started", "lost expired", "started", "done", "discarded"]);
    await worker.stop({ grace: 0 });
  });
});

describe("a lease that is lost", () => {
  test("is told of once, whoever notices it", async () => {
    const stage = setStage();
    stage.engine.onRenew = never;
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(async (_, lease) => {
      await new Promise((resolve) => lease.signal.addEventListener("abort", resolve));
      lease.check();
    });
    await stage.clock.pass(0);
    await stage.queue.pause();
    await stage.clock.pass(LEASE_MS);
    assert.deepEqual(stage.told(), ["started", "lost expired", "discarded"]);
    await worker.stop({ grace: 0 });
  });

  test("is told of once when the store refuses its end", async () => {
    const stage = setStage();
    stage.engine.onSettle = (settlements) => Promise.resolve(settlements.map(() => "lost"));
    await stage.queue.submit("car1", 1);
    const worker = stage.queue.work(() => "fine");
    await stage.clock.pass(0);
    assert.deepEqual(stage.told().slice(0, 3), ["started", "lost taken", "discarded"]);
    const stopped = worker.stop({ grace: 0 });
    await stage.clock.pass(10_000);
    await stopped;
  });
});

describe("a worker whose key was given to another", () => {
  test("hears it from the store, and its handler's signal fires at once", async () => {
    const stage = setStage();
    await stage.queue.submit("car1", 1);
    const ended = Promise.withResolvers<unknown>();
    const worker = stage.queue.work(async (_, { signal }) => {
      signal.addEventListener("abort", () => ended.resolve(signal.reason));
      await ended.promise;
    });
    await stage.clock.pass(0);
    const [claim] = stage.engine.claims;
    const [running] = await stage.engine.keys({ queue: "cars", limit: 1 });
    const fence = running?.running?.fence ?? 0;
    stage.engine.onRenew = () => Promise.resolve([{ ok: false }]);
    claim?.lost?.({ queue: "cars", key: "car1", fence, since: instant(stage.clock), handle: undefined });
    await stage.clock.pass(0);
    assert.ok((await ended.promise) instanceof LeaseLost);
    await stage.clock.pass(0);
    assert.deepEqual(stage.told(), ["started", "lost taken", "discarded"]);
    assert.equal(stage.engine.settlements.length, 0);
    await worker.stop({ grace: 0 });
  });
});

function thrower(thrown: unknown): never {
  // oxlint-disable-next-line typescript/only-throw-error -- What a user's handler throws need not be an Error.
  throw thrown;
}

test("an error of another realm is an error: its code, its stack and its wishes count", async (context) => {
  const stage = setStage();
  for (const id of ["fatal", "later"]) await stage.queue.submit(id, 1, { id });
  const foreign = (code: string): unknown => runInNewContext(code);
  const worker = stage.queue.work(
    ({ id }) => {
      const wish = id === "fatal" ? "{ fatal: true, code: 'E_CAR' }" : "{ retryAfter: '1m' }";
      throw foreign(`Object.assign(new TypeError("no such car"), ${wish})`) as Error;
    },
    { concurrency: 2 },
  );
  context.after(() => worker.stop({ grace: 0 }));
  await stage.clock.pass(0);
  const [letter] = await stage.queue.dead();
  assert.deepEqual(
    { id: letter?.id, message: letter?.failure.message, code: letter?.failure.code },
    { id: "fatal", message: "no such car", code: "E_CAR" },
  );
  assert.match(letter?.failure.stack ?? "", /^TypeError: no such car/);
  const later = stage.events.find(({ type }) => type === "retry");
  assert.equal(later?.type === "retry" ? later.delayMs : undefined, 60_000);
});
