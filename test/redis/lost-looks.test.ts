/** Replies to questions that change nothing are lost: they are asked again, and nobody is told that something may have happened. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as dial, createServer } from "node:net";
import { test, type TestContext } from "node:test";
import { startRedisServer } from "../../servers/redis-server.ts";
import { connect } from "../../src/index.ts";

/** A way to a server on which connections break, so many times, as soon as a word is asked. */
class BreakingWay {
  #word = "";
  #left = 0;

  async before(port: number, context: TestContext): Promise<string> {
    const way = createServer((client) => {
      const server = dial(port, "127.0.0.1");
      const end = (): void => void [client, server].map((socket) => socket.destroy());
      for (const socket of [client, server]) socket.on("error", end).on("close", end);
      server.pipe(client);
      client.on("data", (bytes) => {
        if (this.#left > 0 && bytes.includes(this.#word)) {
          this.#left -= 1;
          end();
        } else server.write(bytes);
      });
    });
    way.listen(0, "127.0.0.1");
    await once(way, "listening");
    context.after(() => way.close());
    const address = way.address();
    assert.ok(typeof address === "object" && address !== null);
    return `redis://127.0.0.1:${address.port}`;
  }

  breakAt(word: string, times: number): void {
    this.#word = word;
    this.#left = times;
  }

  get left(): number {
    return this.#left;
  }
}

test("a look whose reply is lost is repeated", { timeout: 60_000 }, async (context) => {
  const server = await startRedisServer();
  context.after(() => server.stop());
  const way = new BreakingWay();
  const url = await way.before(server.port, context);
  // The greeting has a SETINFO.
  way.breakAt("$4\r\nINFO", 1);
  await using baton = await connect(url);
  assert.equal(way.left, 0, "The first look at the server was lost");
  const cars = baton.queue("cars");
  await cars.submit("car1", "paint", { id: "one" });
  for (const [word, look] of [
    ["report", () => cars.status()],
    ["find", () => cars.item("one")],
    ["SMEMBERS", () => baton.queues()],
  ] as const) {
    way.breakAt(word, 2);
    assert.ok((await look()) !== undefined);
    assert.equal(way.left, 0, `${word} was lost`);
  }
});
