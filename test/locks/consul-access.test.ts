/** Consul as it is run in earnest: tokens with the policy of the documentation, certificates on both sides. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findConsul } from "../../servers/consul-binary.ts";
import { type ConsulServer, startConsulServer } from "../../servers/consul-server.ts";
import { freePort } from "../../servers/free-port.ts";
import { consulLocks, openConsulUrl } from "../../src/consul/index.ts";
import { ask, openSession, takeLock, tryLock } from "./consul-desk.ts";

const MASTER = "b1f8d2f0-6c0f-4b1e-9a3e-0d5f3f0c1a2b";
const READ_ONLY = 'key_prefix "" { policy = "read" }';
const PAGE = join(import.meta.dirname, "../../docs/locks/consul.md");

test("a token with the documented policy is enough, and one without it is refused", { timeout: 60_000 }, async () => {
  const acl = { enabled: true, default_policy: "deny", tokens: { master: MASTER, agent: MASTER } };
  await using server = await startConsulServer({ config: { acl, primary_datacenter: "dc1" } });
  const token = await tokenWith(server, documentedPolicy());
  const locks = await consulLocks({ address: server.address, token });
  const session = await openSession(locks, "allowed");
  const hold = await takeLock(locks, session, "guarded", { delayAfterLossMs: 1_000 });
  assert.deepEqual(await tryLock(locks, session, "guarded"), { ok: false, why: "held" });
  assert.ok((await locks.renewSession(session)) !== undefined);
  assert.equal((await locks.list()).length, 1);
  const reader = await consulLocks({ address: server.address, token: await tokenWith(server, READ_ONLY) });
  assert.deepEqual(await reader.list(), await locks.list());
  await reader.close();
  assert.equal(await locks.release({ hold, retireMs: 1 }), true);
  await locks.closeSession(session);
  await locks.close();

  // Only the locks of its own prefix.
  const elsewhere = await consulLocks({ address: server.address, token, prefix: "elsewhere" });
  const other = await openSession(elsewhere, "elsewhere");
  await assert.rejects(takeLock(elsewhere, other, "guarded"), { code: "STORE_UNAVAILABLE", message: /token/ });
  await elsewhere.close();

  const nobody = await consulLocks({ address: server.address });
  await assert.rejects(openSession(nobody, "nobody"), { code: "STORE_UNAVAILABLE", message: /token/ });
  await nobody.close();
});

test("a token file is read anew when it is replaced", { timeout: 60_000 }, async () => {
  const acl = { enabled: true, default_policy: "deny", tokens: { master: MASTER, agent: MASTER } };
  await using server = await startConsulServer({ config: { acl, primary_datacenter: "dc1" } });
  using folder = temporaryFolder();
  const tokenFile = join(folder.path, "token");
  writeFileSync(tokenFile, "00000000-0000-0000-0000-00000000dead\n");
  const opened = await consulLocks({ address: server.address, tokenFile }).catch((error: unknown) => error);
  assert.ok(opened instanceof Error && "code" in opened && opened.code === "STORE_UNAVAILABLE");
  writeFileSync(tokenFile, `${await tokenWith(server, documentedPolicy())}\n`);
  const locks = await consulLocks({ address: server.address, tokenFile });
  await takeLock(locks, await openSession(locks, "rotated"), "rotated");
  await locks.close();
});

test("certificates on both sides", { timeout: 60_000 }, async () => {
  using folder = temporaryFolder();
  const { program } = await findConsul();
  for (const kind of ["ca", "cert -server", "cert -client"]) {
    const [what = "", ...options] = kind.split(" ");
    execFileSync(program, ["tls", what, "create", ...options], { cwd: folder.path, stdio: "ignore" });
  }
  const file = (name: string): string => join(folder.path, name);
  const port = await freePort();
  await using _server = await startConsulServer({
    config: {
      ports: { https: port },
      verify_incoming_https: true,
      ca_file: file("consul-agent-ca.pem"),
      cert_file: file("dc1-server-consul-0.pem"),
      key_file: file("dc1-server-consul-0-key.pem"),
    },
  });
  const files = {
    ca: file("consul-agent-ca.pem"),
    cert: file("dc1-client-consul-0.pem"),
    key: file("dc1-client-consul-0-key.pem"),
  };
  const query = new URLSearchParams(files).toString();
  const locks = await openConsulUrl(`consul+https://localhost:${port}/secret?${query}`);
  await takeLock(locks, await openSession(locks, "known"), "locked");
  await locks.close();

  const address = `localhost:${port}`;
  // Without a certificate of its own, and without knowing who signs those of the server.
  await assert.rejects(consulLocks({ address, tls: { ca: files.ca } }), { code: "STORE_UNAVAILABLE" });
  await assert.rejects(consulLocks({ address, tls: { cert: files.cert, key: files.key } }), {
    code: "STORE_UNAVAILABLE",
  });
  await assert.rejects(consulLocks({ address, tls: { ca: "/no/such/file" } }), /no\/such\/file/);
});

/** The block of the page that readers copy. */
function documentedPolicy(): string {
  const policy = /```hcl\n([^`]*session_prefix[^`]*)```/.exec(readFileSync(PAGE, "utf8"))?.[1];
  assert.ok(policy !== undefined);
  return policy;
}

async function tokenWith(server: ConsulServer, rules: string): Promise<string> {
  const name = `policy-${randomUUID()}`;
  await make(server, "/acl/policy", { Name: name, Rules: rules });
  const token = await make(server, "/acl/token", { Policies: [{ Name: name }] });
  return (token as { readonly SecretID: string }).SecretID;
}

/** Servers take tokens a moment after they have a leader. */
async function make(server: ConsulServer, path: string, what: object): Promise<unknown> {
  for (;;) {
    const headers = { "X-Consul-Token": MASTER };
    const made = await ask(server, path, { method: "PUT", headers, body: JSON.stringify(what) });
    if (made.ok) return await made.json();
    await made.arrayBuffer();
    await sleep(50);
  }
}

function temporaryFolder(): { readonly path: string } & Disposable {
  const path = mkdtempSync(join(tmpdir(), "baton-consul-files-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}
