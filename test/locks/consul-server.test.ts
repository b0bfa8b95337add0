import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { startConsulServer } from "../../servers/consul-server.ts";
import { ask } from "./consul-desk.ts";

test("a server keeps its port and its data over a kill and a restart", { timeout: 60_000 }, async () => {
  const server = await startConsulServer();
  const { port, folder, pid } = server;
  await ask(server, "/kv/kept", { method: "PUT", body: "yes" });
  await server.kill();
  await assert.rejects(ask(server, "/kv/kept"));
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(server.port, port);
  assert.equal(await (await ask(server, "/kv/kept?raw")).text(), "yes");
  await server.stop();
  await assert.rejects(ask(server, "/kv/kept"));
  assert.equal(existsSync(folder), false, "the folder is gone with the server");
});

test("a server that does not start says why", async () => {
  await assert.rejects(startConsulServer({ config: { no_such_setting: 1 } }), /no_such_setting/);
});
