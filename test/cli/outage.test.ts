/** What the command does while its store is away: a watch goes on, and a command that is told to wait does. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { startPostgres } from "../../servers/postgres.ts";
import type { PrivateServer } from "../../servers/private-server.ts";
import { startRedisServer } from "../../servers/redis-server.ts";
import { until } from "../kit/until.ts";
import { Desk, type Started } from "./baton-command.ts";

type Server = PrivateServer & { readonly url: string };

const STORES: readonly (readonly [name: string, start: () => Promise<Server>])[] = [
  ["PostgreSQL", () => startPostgres()],
  ["Redis", () => startRedisServer()],
  ["NATS", () => startNatsServer()],
];

/** What it has said so far. */
function listen({ child }: Started): { out: string; err: string } {
  const heard = { out: "", err: "" };
  child.stdout?.on("data", (text: string) => (heard.out += text));
  child.stderr?.on("data", (text: string) => (heard.err += text));
  return heard;
}

for (const [name, start] of STORES) {
  describe(`while ${name} is away`, { timeout: 180_000 }, () => {
    test("baton status --watch stays, says so, and says when it is over", async (context) => {
      const server = await start();
      context.after(() => server.stop());
      const desk = new Desk(context, server.url);
      assert.equal((await desk.run(["submit", "cars", "car1", "paint"])).code, 0);
      const watching = desk.start(["status", "--watch", "--json"]);
      const heard = listen(watching);
      await until(() => heard.out.includes(`"waiting":1`), "the first look");
      await server.kill();
      await until(() => heard.err.includes("Looking again until the store answers"), "word of the outage");
      await server.restart();
      await until(() => heard.err.includes("the store is there again, after"), "word that it is over");
      watching.child.kill("SIGINT");
      const { code, stderr } = await watching.finished;
      assert.equal(code, 0, stderr);
      const said = stderr.split("\n").filter((line) => line.startsWith("baton: "));
      assert.equal(said.length, 2, stderr);
    });

    test("and does not refuse but says nothing, baton status --watch says so within seconds", async (context) => {
      const server = await start();
      context.after(() => server.stop());
      const desk = new Desk(context, server.url);
      assert.equal((await desk.run(["submit", "cars", "car1", "paint"])).code, 0);
      const watching = desk.start(["status", "--watch", "--json"]);
      const heard = listen(watching);
      await until(() => heard.out.includes(`"waiting":1`), "the first look");
      await server.pause();
      await until(() => heard.err.includes("Looking again until the store answers"), "word of the outage");
      server.resume();
      await until(() => heard.err.includes("the store is there again, after"), "word that it is over");
      watching.child.kill("SIGINT");
      const { code, stderr } = await watching.finished;
      assert.equal(code, 0, stderr);
      assert.match(stderr, /The store has not answered for 2/);
    });

    test("baton work with nothing to do says so within seconds, and when it is over", async (context) => {
      const server = await start();
      context.after(() => server.stop());
      const desk = new Desk(context, server.url);
      const working = desk.start(["work", "cars", "--concurrency", "64", "--", "echo", "painted"]);
      const heard = listen(working);
      await until(() => heard.err.includes("working on cars"), "the worker");
      await server.kill();
      await until(() => heard.err.includes("Trying again."), "word of the outage");
      await server.restart();
      await until(() => heard.err.includes("is over. It lasted"), "word that it is over");
      assert.equal((await desk.run(["submit", "cars", "car1", "paint"])).code, 0);
      await until(() => (heard.out + heard.err).includes("painted"), "the item");
      working.child.kill("SIGTERM");
      const { code, stderr } = await working.finished;
      assert.equal(code, 0, stderr);
      assert.equal(stderr.match(/rouble/g)?.length, 2, stderr);
    });

    test("--wait-for-store waits for it, and a command without it says at once that it is away", async (context) => {
      const server = await start();
      context.after(() => server.stop());
      const desk = new Desk(context, server.url);
      await server.kill();
      const hasty = await desk.run(["status"]);
      assert.equal(hasty.code, 1);
      assert.match(hasty.stderr, /^baton: /);
      const patient = desk.start(["submit", "cars", "car1", "paint", "--wait-for-store", "2m"]);
      const heard = listen(patient);
      await until(() => heard.err.includes("Trouble connecting"), "word of the outage");
      await server.restart();
      const { code, stdout, stderr } = await patient.finished;
      assert.equal(code, 0, stderr);
      assert.match(stdout, /^accepted /);
      const gone = await desk.run(["status", "--wait-for-store", "1ms"], { env: { BATON_URL: "nats://127.0.0.1:9" } });
      assert.equal(gone.code, 1);
    });
  });
}
