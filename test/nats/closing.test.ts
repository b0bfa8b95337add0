/** Closing in the very moment in which the server goes away: nothing may end the process. */
import assert from "node:assert/strict";
import { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "@nats-io/transport-node";
import { startNatsServer } from "../../servers/nats-server.ts";
import { wireOf } from "../../src/engines/nats/connection.ts";

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
