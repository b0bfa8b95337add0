/**
 * Every option takes `undefined`, and that means its default: applications pass on what they may not have, as in
 * `{ level: request.level }`. The compiler judges the types, under `exactOptionalPropertyTypes`.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import type * as conformance from "../../src/conformance/index.ts";
import type * as consul from "../../src/consul/index.ts";
import { consulSettings } from "../../src/consul/options.ts";
import type { MemoryOptions } from "../../src/engines/memory/index.ts";
import type * as nats from "../../src/engines/nats/index.ts";
import { parseStoreOptions } from "../../src/engines/nats/options.ts";
import type * as postgres from "../../src/engines/postgres/index.ts";
import type * as redis from "../../src/engines/redis/index.ts";
import type { SqliteOptions } from "../../src/engines/sqlite/index.ts";
import type * as baton from "../../src/index.ts";
import { connect } from "../../src/index.ts";
import type * as relay from "../../src/relay/index.ts";

/** The optional fields of a type, each with nothing but undefined. */
type Undefined<T> = { readonly [Name in keyof T as object extends Pick<T, Name> ? Name : never]-?: undefined };
type Takes<T> = Undefined<T> extends Partial<T> ? true : never;

/** One line for each public type of options. `never` stands where a field does not take undefined. */
const TYPES: readonly true[] = [
  true satisfies Takes<baton.BatonOptions>,
  true satisfies Takes<baton.QueueOptions>,
  true satisfies Takes<baton.RetryOptions>,
  true satisfies Takes<baton.LimitOptions>,
  true satisfies Takes<baton.SubmitOptions>,
  true satisfies Takes<baton.Submit<unknown>>,
  true satisfies Takes<baton.WorkOptions>,
  true satisfies Takes<baton.StopOptions>,
  true satisfies Takes<baton.TakeOptions>,
  true satisfies Takes<baton.RetryItemOptions>,
  true satisfies Takes<baton.PageOptions>,
  true satisfies Takes<baton.KeyPageOptions>,
  true satisfies Takes<baton.OutcomeOptions>,
  true satisfies Takes<baton.HoldOptions>,
  true satisfies Takes<baton.LockOptions>,
  true satisfies Takes<baton.SessionLockOptions>,
  true satisfies Takes<baton.ReleaseOptions>,
  true satisfies Takes<baton.SessionOptions>,
  true satisfies Takes<baton.CloseOptions>,
  true satisfies Takes<baton.ElectionOptions>,
  true satisfies Takes<baton.ObserveOptions>,
  true satisfies Takes<baton.EachOptions<string>>,
  true satisfies Takes<baton.LocksOnRegisterOptions>,
  true satisfies Takes<MemoryOptions>,
  true satisfies Takes<SqliteOptions>,
  true satisfies Takes<nats.NatsOptions>,
  true satisfies Takes<nats.TlsOptions>,
  true satisfies Takes<nats.StoreOptions>,
  true satisfies Takes<postgres.PostgresOptions>,
  true satisfies Takes<postgres.StoreOptions>,
  true satisfies Takes<redis.RedisOptions>,
  true satisfies Takes<redis.StoreOptions>,
  true satisfies Takes<consul.ConsulOptions>,
  true satisfies Takes<consul.ConsulTls>,
  true satisfies Takes<relay.RelayOptions>,
  true satisfies Takes<relay.RelayStopOptions>,
  true satisfies Takes<relay.ConfigOptions>,
  true satisfies Takes<relay.BatonSourceOptions>,
  true satisfies Takes<conformance.ConformanceOptions>,
  true satisfies Takes<conformance.ConformanceTarget>,
  true satisfies Takes<conformance.LocksTarget>,
  true satisfies Takes<conformance.WakeTarget>,
  true satisfies Takes<conformance.SourceTarget>,
  // @ts-expect-error -- this very check: a field that does not take undefined is found
  true satisfies Takes<{ readonly a?: undefined; readonly b?: string }>,
];
test("options that are undefined are as good as none", async (context) => {
  assert.ok(TYPES.length > 0);
  const none: Undefined<baton.BatonOptions> = {
    onEvent: undefined,
    waitForStore: undefined,
    wake: undefined,
    wakePrefix: undefined,
    clock: undefined,
    random: undefined,
  };
  const opened = await connect("memory:", none);
  context.after(() => opened.close({ grace: undefined }));
  const retry: Undefined<baton.RetryOptions> = {
    attempts: undefined,
    backoff: undefined,
    maxBackoff: undefined,
    delay: undefined,
    place: undefined,
  };
  const queue = opened.queue<number>("cars", {
    mode: undefined,
    levels: undefined,
    lease: undefined,
    retry,
    limits: { perKey: undefined, perQueue: undefined, payload: undefined },
    patience: undefined,
    remember: undefined,
    history: undefined,
  } satisfies Record<keyof baton.QueueOptions, unknown>);
  const submit: Undefined<baton.SubmitOptions> = {
    level: undefined,
    id: undefined,
    delay: undefined,
    mode: undefined,
    type: undefined,
    headers: undefined,
    history: undefined,
    transaction: undefined,
  };
  const receipt = await queue.submit("a", 1, submit);
  assert.equal(receipt.level, "normal");
  await queue.submitMany([{ ...submit, key: "b", payload: 2 }]);
  assert.deepEqual((await queue.keys({ after: undefined, limit: undefined, leased: undefined })).length, 2);
  assert.deepEqual(await queue.dead({ after: undefined, limit: undefined }), []);
  const take: Undefined<baton.TakeOptions> = {
    max: undefined,
    lease: undefined,
    wait: undefined,
    signal: undefined,
    name: undefined,
  };
  const [taken] = await queue.take(take);
  await taken?.retry("again", { after: undefined });
  const worker = queue.work(({ payload }) => payload, {
    concurrency: undefined,
    lease: undefined,
    retry: undefined,
    timeout: undefined,
    name: undefined,
    untilEmpty: undefined,
  } satisfies Record<keyof baton.WorkOptions, undefined>);
  await worker.stop({ grace: undefined });
  const outcome = await (
    await queue.submit("c", 3, { id: "c", history: undefined })
  )
    .outcome({
      timeout: 1,
      signal: undefined,
    })
    .catch((error: unknown) => error);
  assert.ok(outcome instanceof Error);

  const noLock: Undefined<baton.LockOptions> = {
    lease: undefined,
    wait: undefined,
    signal: undefined,
    slots: undefined,
    delayAfterLoss: undefined,
    data: undefined,
  };
  const held = await opened.lock("l", noLock);
  assert.equal(await held.release({ retire: undefined }), true, "the lock was held until its release");
  await using session = await opened.session({ lease: undefined, expiry: undefined, owner: undefined });
  const { wait, signal, slots, delayAfterLoss, data } = noLock;
  assert.equal(await session.withLock("l", () => 7, { wait, signal, slots, delayAfterLoss, data }), 7);
  const election = opened.elect("e", {
    lease: undefined,
    data: undefined,
    delayAfterLoss: undefined,
    rest: undefined,
    signal: undefined,
  });
  await election.stop({ grace: undefined });
  const report = await opened.each(["t"], () => undefined, {
    key: undefined,
    concurrency: undefined,
    lease: undefined,
    remember: undefined,
    signal: undefined,
  });
  assert.deepEqual(report.done, ["t"]);
});

test("what is undefined hides nothing that stands elsewhere", async () => {
  // In the URL.
  await assert.rejects(connect("sqlite:/dev/null/no?wake=gopher:", { wake: undefined }), { field: "wake" });
  // In the environment.
  const { tls } = consulSettings(
    { tls: { ca: undefined, verify: undefined } },
    { CONSUL_CACERT: "ca.pem", CONSUL_HTTP_SSL_VERIFY: "false" },
  );
  assert.deepEqual(tls, { ca: "ca.pem", verify: false });
  assert.equal(parseStoreOptions({ storage: undefined, prefix: undefined }).prefix, "baton");
});
