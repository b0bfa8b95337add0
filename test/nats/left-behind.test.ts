/** What a process that died leaves behind, and who finds it. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect as connectNats, type NatsConnection } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import type { NatsServer } from "../../servers/nats-server.ts";
import type { Engine, Lease } from "../../src/engine/port.ts";
import { natsEngineOn } from "../../src/engines/nats/index.ts";
import { tokenOf } from "../../src/engines/nats/key-token.ts";
import { until } from "../kit/until.ts";
import { NatsDesk } from "./desk.ts";
import { submit, take } from "./engine-calls.ts";

const TIMEOUT = { timeout: 60_000 };
const LEASE_MS = 1_000;
/** Each carries two items, so that its state is a record. */
const KEYS = 2_000;
const SETTLED_MS = 500;

const WITHIN_MS = 20_000;

interface Got {
  readonly message: { readonly subject: string; readonly seq: number };
}

interface Info {
  readonly state: { readonly subjects: Readonly<Record<string, number>> };
}

interface Opened {
  readonly engine: Engine;
  readonly connection: NatsConnection;
}

async function open(context: TestContext, { url }: NatsServer): Promise<Opened> {
  const connection = await connectNats({ servers: [url], maxReconnectAttempts: 0 });
  const engine = await natsEngineOn(connection);
  context.after(async () => {
    await engine.close();
    await connection.close();
  });
  await engine.declare({ queue: "cars" });
  return { engine, connection };
}

async function hold(engine: Engine, key: string): Promise<Lease> {
  const signal = AbortSignal.timeout(WITHIN_MS);
  const lease = await engine.hold({ queue: "cars", key, worker: "h", leaseMs: LEASE_MS, signal });
  assert.ok(lease !== undefined);
  return lease;
}

/** The subject of the only one. */
async function sessionOf({ port }: NatsServer): Promise<string> {
  const filter = { subjects_filter: "baton.c.session.cars.*" };
  const { state } = (await ask(port, "$JS.API.STREAM.INFO.baton", filter)) as Info;
  const [session] = Object.keys(state.subjects);
  assert.ok(session !== undefined);
  return session;
}

/** Nothing is sent any more but what time brings. */
async function untilQuiet({ connection }: Opened): Promise<number> {
  for (let before = -1; ;) {
    const { outMsgs } = connection.stats();
    if (outMsgs - before < 3) return outMsgs;
    before = outMsgs;
    await wait(SETTLED_MS);
  }
}

test("among thousands of keys that wait, those of the dead are found with few requests", TIMEOUT, async (context) => {
  const { server } = await NatsDesk.withServer(context);
  const dying = await open(context, server);
  const other = await open(context, server);
  const keys = Array.from({ length: KEYS }, (_, index) => ({ key: `car ${index}` }));
  for (let round = 0; round < 2; round += 1) await submit(dying.engine, ...keys);
  assert.equal((await take(other.engine)).length, 1);
  const before = await untilQuiet(other);
  await hold(dying.engine, "held");
  await submit(dying.engine, { key: "held", level: "high" });
  await dying.connection.close();
  const state = { last_by_subj: `baton.q.cars.s.*.*.${tokenOf("held")}` };
  await until(async () => {
    const { message } = (await ask(server.port, "$JS.API.STREAM.MSG.GET.baton-cars", state)) as Got;
    return message.subject.startsWith("baton.q.cars.s.0.");
  }, "the key is free");
  const sent = other.connection.stats().outMsgs - before;
  context.diagnostic(`${sent} messages`);
  assert.ok(sent < KEYS / 10, `${sent} messages were sent to find one lease among ${KEYS} records`);
});

/** A process dies with a key that another waits for. What then becomes of its session, and the other must have the key. */
async function leaveBehind(
  context: TestContext,
  then: (session: string, other: Opened, server: NatsServer) => Promise<void>,
): Promise<void> {
  const { server } = await NatsDesk.withServer(context);
  const dying = await open(context, server);
  const other = await open(context, server);
  const waiting = take(other.engine);
  await untilQuiet(other);
  const lease = await hold(dying.engine, "car");
  await submit(dying.engine, { key: "car" });
  const session = await sessionOf(server);
  await dying.connection.close();
  await then(session, other, server);
  const [found] = await waiting;
  assert.equal(found?.item.key, "car");
  assert.ok(found.lease.fence > lease.fence);
}

test("a session that has vanished without a word has left its leases too", TIMEOUT, (context) =>
  // As the server does when nobody has watched for long enough.
  leaveBehind(context, async (session, _, { port }) => {
    const { message } = (await ask(port, "$JS.API.STREAM.MSG.GET.baton", { last_by_subj: session })) as Got;
    await ask(port, "$JS.API.STREAM.MSG.DELETE.baton", { seq: message.seq });
  }),
);

test("who says that a session is gone and then dies leaves its leases to the next", TIMEOUT, (context) =>
  // As whoever found it would have said; and that was the last of them.
  leaveBehind(context, async (session, { connection }) => {
    connection.publish(session, JSON.stringify({ lapse: LEASE_MS, beat: 1_000, gone: true }));
    await connection.flush();
  }),
);
