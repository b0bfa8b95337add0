/** Closing in the very moment in which the server goes away: nothing may end the process. */
import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { ask } from "../../servers/nats-probe.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { TEXT_TYPE } from "../../src/domain/payload.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { claim, entry } from "../cars.ts";
import { until } from "../kit/until.ts";

/** So many items a process starts before it knows that its starts may begin with a write. */
const BEFORE = 10;
/** What is not done by then when an engine closes is cut off. */
const CUT_OFF_MS = 3_000;

test("what a socket says of its last write is heard", { timeout: 30_000 }, async (context) => {
  const server = await startNatsServer();
  context.after(() => server.stop());
  const connection = await connect({ servers: [server.url] });
  const wire = wireOf(connection, true);
  const socket: unknown = Reflect.get(Reflect.get(Reflect.get(connection, "protocol"), "transport"), "socket");
  assert.ok(socket instanceof Socket);
  const closed = Promise.withResolvers<void>();
  const end = socket.end.bind(socket);
  socket.end = () => {
    end();
    queueMicrotask(() => {
      wire.publish("somewhere", "something");
      closed.resolve(wire.close());
    });
    return socket;
  };
  await server.kill();
  await closed.promise;
  // An error that nobody heard of fails this test.
  await wait(50);
});

test(
  "a connection that is closed while an item is being started leaves no error behind",
  { timeout: 60_000 },
  async (context) => {
    const server = await startNatsServer();
    context.after(() => server.stop());
    const engine = await natsEngine({ servers: [server.url] });
    context.after(() => engine.close());
    await engine.declare({ queue: "cars" });
    const payload = { type: TEXT_TYPE, body: "paint" };
    const limits = { keyLimit: 10, queueLimit: 10, keepMs: 0 };
    const submit = (key: string): Promise<unknown> =>
      engine.submit([{ queue: "cars", key, level: "normal", payload, delayMs: 0, mode: "fifo", ...limits }]);
    for (let car = 0; car < BEFORE; car += 1) await submit(`car${car}`);
    const child = fork(join(import.meta.dirname, "children/closes.ts"), [String(server.port), "cars", String(BEFORE)], {
      silent: true,
    });
    context.after(() => child.kill("SIGKILL"));
    let errors = "";
    child.stderr?.setEncoding("utf8").on("data", (text: string) => (errors += text));
    const exited = once(child, "close");
    await Promise.race([once(child, "message"), exited]);
    await submit("last");
    assert.deepEqual([await exited, errors], [[0, null], ""]);
  },
);

test(
  "a queue that is deleted by force while calls wait does not hold up the end",
  { timeout: 60_000 },
  async (context) => {
    const server = await startNatsServer();
    context.after(() => server.stop());
    const engine = await natsEngine({ servers: [server.url] });
    context.after(() => engine.close());
    await engine.declare({ queue: "cars" });
    await engine.submit([{ ...entry, key: "car" }]);
    const { signal } = new AbortController();
    const [grant] = await engine.claim({ ...claim, signal });
    assert.equal(grant?.item.key, "car");
    const lost = (): void => undefined;
    const waiting = [
      engine.claim({ ...claim, signal }),
      engine.hold({ queue: "cars", key: "car", worker: "other", leaseMs: claim.leaseMs, signal, lost }),
    ];
    const settled = Promise.allSettled(waiting);
    // The key says that somebody waits for it.
    await until(() => isWanted(server.port), "that the hold waits");
    await engine.deleteQueue({ queue: "cars", force: true });
    assert.deepEqual(
      (await settled).map(({ status }) => status),
      ["rejected", "rejected"],
    );
    const from = performance.now();
    await engine.close();
    const closedMs = performance.now() - from;
    context.diagnostic(`closed after ${closedMs.toFixed(0)} ms`);
    assert.ok(closedMs < CUT_OFF_MS, `closed after ${closedMs} ms`);
  },
);

async function isWanted(port: number): Promise<boolean> {
  const answer = await ask(port, "$JS.API.STREAM.MSG.GET.baton-cars", { last_by_subj: "baton.q.cars.s.run.>" });
  const { message } = answer as { readonly message?: { readonly data?: string } };
  return Buffer.from(message?.data ?? "", "base64").includes('"wa":');
}
