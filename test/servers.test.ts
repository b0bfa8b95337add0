import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { sourcesOf } from "../servers/debian-sources.ts";
import { isNewEnough } from "../servers/nats-binary.ts";
import { startNatsCluster } from "../servers/nats-cluster.ts";
import { ask, ping, serverInfo } from "../servers/nats-probe.ts";
import { PortTakenError, startNatsServer } from "../servers/nats-server.ts";

const LOOK_MS = 20;
const STREAM = { name: "KEPT", subjects: ["kept"] };

test("a server keeps its port and its data over a kill and a restart", { timeout: 30_000 }, async () => {
  const server = await startNatsServer({ sync: "always" });
  const { port, folder, pid } = server;
  assert.ok(isNewEnough((await serverInfo(port)).version));
  await ask(port, "$JS.API.STREAM.CREATE.KEPT", STREAM);

  await server.kill();
  await assert.rejects(ping(port));
  await server.restart();
  assert.notEqual(server.pid, pid);
  assert.equal(server.port, port);
  assert.deepEqual(await streams(port), ["KEPT"]);
  assert.match(server.log(), /Server is ready/);

  await server.stop();
  await assert.rejects(ping(port));
  assert.equal(existsSync(folder), false, "the folder is gone with the server");
});

test("a paused server keeps silent, answers when resumed, and can be stopped while paused", async () => {
  await using server = await startNatsServer();
  await server.pause();
  await assert.rejects(ping(server.port), /does not answer/);
  server.resume();
  await ping(server.port);
  await server.pause();
});

test("a server that does not start says why", async () => {
  await assert.rejects(startNatsServer({ config: "no_such_setting: 1" }), /no_such_setting/);
  await using server = await startNatsServer();
  await assert.rejects(startNatsServer({ port: server.port }), PortTakenError);
  await ping(server.port);
});

test("a server that demands a password is ready without ours", async () => {
  await using server = await startNatsServer({ config: 'authorization { user: "a", password: "b" }' });
  await assert.rejects(ping(server.port), /Authorization/);
});

test("a cluster of three forms, and takes a killed server back", { timeout: 60_000 }, async () => {
  await using cluster = await startNatsCluster();
  const [first, second, third] = cluster.servers;
  assert.ok(first !== undefined && second !== undefined && third !== undefined);
  assert.equal(cluster.url, `nats://127.0.0.1:${first.port},127.0.0.1:${second.port},127.0.0.1:${third.port}`);
  for (const { port } of cluster.servers) assert.deepEqual(await streams(port), []);
  await ask(first.port, "$JS.API.STREAM.CREATE.KEPT", { ...STREAM, num_replicas: 3 });
  await third.kill();
  await third.restart();
  await cluster.ready();
  assert.deepEqual(await streams(third.port), ["KEPT"]);
});

for (const way of ["is killed", "ends"]) {
  test(`a process that ${way} leaves no server behind`, { timeout: 30_000 }, async () => {
    const script = join(import.meta.dirname, "servers/hold-server.ts");
    const stdio = ["ignore", "pipe", "inherit"] as const;
    const child = spawn(process.execPath, [script, way === "ends" ? "" : "stay"], { stdio: [...stdio] });
    const exited = once(child, "exit");
    assert.ok(child.stdout !== null);
    const [told] = (await once(child.stdout, "data")) as [Buffer];
    const { port, folder } = JSON.parse(told.toString()) as { readonly port: number; readonly folder: string };
    if (way === "is killed") {
      await ping(port);
      child.kill("SIGKILL");
    }
    await exited;
    while ((await isAnswering(port)) || existsSync(folder)) await wait(LOOK_MS);
  });
}

test("an old server is to be had as well", { timeout: 60_000 }, async () => {
  await using server = await startNatsServer({ version: "old" });
  const { version } = await serverInfo(server.port);
  assert.match(version, /^2\.9\./);
  assert.equal(isNewEnough(version), false, "the version is too old");
});

test("the versions that will do", () => {
  const accepted = ["2.12.8", "2.12.10", "2.14.0", "2.15.1", "3.0.0"];
  const refused = ["2.9.10", "2.11.30", "2.12.7", "2.13.0", "2.14.0-RC.1", "1.20.0", "unknown"];
  assert.deepEqual([...accepted, ...refused].filter(isNewEnough), accepted);
});

test("apt sources of either format are turned to another suite of the same archive", () => {
  const list = [
    "# deb http://commented.example/debian stable main",
    "deb [arch=amd64 signed-by=/keys/one.gpg] http://one.example/debian stable main contrib",
    "deb-src http://one.example/debian stable main",
    "deb http://one.example/debian-security stable-security main",
    "deb http://two.example/apt stable main",
  ];
  const sources = [
    "Types: deb deb-src",
    "# a comment within",
    "URIs: http://three.example/debian/ http://three.example/debian-security",
    "Suites: stable stable-updates",
    "Components: main",
    "Signed-By:",
    " -----BEGIN KEY-----",
    " .",
    " abc",
    "",
    "Types: deb",
    "Enabled: no",
    "URIs: http://four.example/debian",
    "Suites: stable",
  ];
  const files = [
    { name: "sources.list", text: list.join("\n") },
    { name: "more.sources", text: sources.join("\n") },
  ];
  const common = "Suites: sid\nComponents: main\nTargets: Packages\n";
  assert.equal(
    sourcesOf("sid", files),
    `Types: deb\nURIs: http://one.example/debian\n${common}Signed-By: /keys/one.gpg\n\n` +
      `Types: deb\nURIs: http://three.example/debian/\n${common}Signed-By: \n -----BEGIN KEY-----\n .\n abc\n`,
  );
  assert.throws(() => sourcesOf("sid", []), /no apt source/);
});

async function streams(port: number): Promise<readonly string[]> {
  const { streams: names } = (await ask(port, "$JS.API.STREAM.NAMES")) as {
    readonly streams: readonly string[] | null;
  };
  return names ?? [];
}

function isAnswering(port: number): Promise<boolean> {
  return ping(port).then(
    () => true,
    () => false,
  );
}
