/** A server that falls silent while a connection to it is prepared: whoever closes then lets go of it at once. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import { test, type TestContext } from "node:test";
import { ownConnections } from "../../src/engines/postgres/connections.ts";
import { Link } from "../../src/engines/postgres/link.ts";
import { postgresWake } from "../../src/engines/postgres/wake.ts";
import { PostgresDesk } from "./desk.ts";

/** Shorter than the client waits for an answer, which is 20 s. */
const TIMEOUT = { timeout: 15_000 };

interface Silence {
  readonly url: string;
  /** Resolves with the connection on which it fell silent, as the server sees it. */
  readonly begun: Promise<Socket>;
}

/** In front of a real server: forwards everything until the client says this. */
async function silentOn(context: TestContext, words: string): Promise<Silence> {
  const { server } = await PostgresDesk.withServer(context);
  const { promise: begun, resolve } = Promise.withResolvers<Socket>();
  const proxy = createServer((client) => {
    const upstream = connectTcp(server.port, "127.0.0.1");
    context.after(() => [client, upstream].forEach((socket) => socket.destroy()));
    for (const socket of [client, upstream]) socket.on("error", () => undefined);
    upstream.pipe(client);
    client.on("data", (data) => {
      if (data.includes(words)) resolve(client);
      else upstream.write(data);
    });
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  context.after(() => proxy.close());
  const address = proxy.address();
  assert.ok(typeof address === "object" && address !== null);
  return { url: server.url.replace(`:${server.port}/`, `:${address.port}/`), begun };
}

test("a carrier that is closed while it begins to listen", TIMEOUT, async (context) => {
  const { url, begun } = await silentOn(context, "LISTEN");
  const wake = postgresWake(url);
  const listening = wake
    .listen(
      "cars",
      () => undefined,
      () => undefined,
    )
    .catch(() => undefined);
  const client = await begun;
  await wake.close();
  await Promise.all([once(client, "close"), listening]);
});

test("an engine's connection that is closed while it is prepared", TIMEOUT, async (context) => {
  const { url, begun } = await silentOn(context, "silence");
  const link = new Link(ownConnections(url), "baton", async (client) => void (await client.query("SELECT 'silence'")));
  const opening = assert.rejects(link.open(), { code: "CLOSED" });
  const client = await begun;
  link.close();
  await Promise.all([once(client, "close"), opening]);
});
