/** Servers as strangers run them: too old, without JetStream, locked, encrypted, with streams of somebody else's. */
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { connect as connectNats, nkeys } from "@nats-io/transport-node";
import { freePort } from "../../servers/free-port.ts";
import { findNatsServer } from "../../servers/nats-binary.ts";
import { ask, serverInfo } from "../../servers/nats-probe.ts";
import { startNatsServer } from "../../servers/nats-server.ts";
import { type NatsOptions, natsEngine, natsEngineOn } from "../../src/engines/nats/index.ts";
import { connect } from "../../src/index.ts";
import { until } from "../kit/until.ts";
import { refusal, streamInfo, streamNames } from "./desk.ts";
import { issueCredentials } from "./credentials.ts";

describe("a server that Baton cannot use is refused before anything is written", () => {
  test("one that is too old, by name of what was found and what is needed", async () => {
    await using server = await startNatsServer({ version: "old" });
    const { code, message } = await refusal(connect(server.url));
    assert.equal(code, "STORE_TOO_OLD");
    assert.ok(message.includes(server.version), message);
    assert.match(message, /needs 2\.12\.8, or 2\.14\.0 and later.*Nothing was written/);
    assert.deepEqual(await streamNames(server.port), []);
  });

  test("one without JetStream", async (context) => {
    const { program } = await findNatsServer();
    const port = await freePort();
    const child = spawn(program, ["-a", "127.0.0.1", "-p", String(port)], { stdio: "ignore" });
    context.after(async () => {
      child.kill("SIGKILL");
      await once(child, "exit");
    });
    await until(() => serverInfo(port).catch(() => undefined), "a server");
    const { code, message } = await refusal(connect(`nats://127.0.0.1:${port}`));
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.match(message, /without JetStream.*Nothing was written.*--jetstream/);
  });

  test("one that is not there", async () => {
    const port = await freePort();
    const { code, message } = await refusal(connect(`nats://127.0.0.1:${port}`));
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.ok(message.includes(`127.0.0.1:${port}`), message);
  });
});

describe("whoever has the key to a server gets in, and nobody else", () => {
  test("user and password", async () => {
    await using server = await startNatsServer({ config: 'authorization { user: "ada", password: "p@ss:w/rd" }' });
    const at = `127.0.0.1:${server.port}`;
    await isRefused({ servers: [at] });
    await isRefused({ servers: [at], user: "ada", password: "wrong" });
    await works({ servers: [at], user: "ada", password: "p@ss:w/rd" });
    await using baton = await connect(`nats://ada:${encodeURIComponent("p@ss:w/rd")}@${at}`);
    assert.deepEqual(await baton.queue("cars").levels(), ["high", "normal", "low"]);
  });

  test("a wrong password is not repeated in the error", async () => {
    await using server = await startNatsServer({ config: 'authorization { user: "ada", password: "right" }' });
    const { code, message } = await refusal(connect(`nats://ada:swordfish@127.0.0.1:${server.port}`));
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.match(message, /[Aa]uthorization/);
    assert.doesNotMatch(message, /swordfish/);
  });

  test("a token", async () => {
    await using server = await startNatsServer({ config: 'authorization { token: "s3cret" }' });
    const at = `127.0.0.1:${server.port}`;
    await isRefused({ servers: [at], token: "wrong" });
    await works({ servers: [at], token: "s3cret" });
    await using baton = await connect(`nats://s3cret@${at}`);
    await baton.queue("cars").levels();
  });

  test("an nkey", async (context) => {
    const user = nkeys.createUser();
    const file = join(folder(context), "user.nk");
    writeFileSync(file, `${new TextDecoder().decode(user.getSeed())}\n`);
    const config = `authorization { users: [ { nkey: "${user.getPublicKey()}" } ] }`;
    await using server = await startNatsServer({ config });
    const at = `127.0.0.1:${server.port}`;
    await isRefused({ servers: [at] });
    await works({ servers: [at], nkey: file });
    await using baton = await connect(`nats://${at}?nkey=${encodeURIComponent(file)}`);
    await baton.queue("cars").levels();
  });

  test("a file with a JWT and its seed", async (context) => {
    const { config, creds } = issueCredentials();
    const file = join(folder(context), "user.creds");
    writeFileSync(file, creds);
    await using server = await startNatsServer({ config });
    const at = `127.0.0.1:${server.port}`;
    await isRefused({ servers: [at] });
    await works({ servers: [at], creds: file });
  });

  test("a secret that cannot be read is named", async () => {
    for (const what of ["nkey", "creds"] as const) {
      const { code, message } = await refusal(natsEngine({ servers: ["127.0.0.1:1"], [what]: "/no/such/file" }));
      assert.equal(code, "STORE_UNAVAILABLE");
      assert.match(message, /\/no\/such\/file/);
    }
  });

  test("an encrypted connection, by the certificate that signed the server's", async (context) => {
    const { cert, key } = selfSigned(folder(context));
    const config = `tls { cert_file: "${cert}", key_file: "${key}" }`;
    await using server = await startNatsServer({ config });
    const at = `127.0.0.1:${server.port}`;
    await isRefused({ servers: [at], tls: {} });
    await works({ servers: [at], tls: { ca: cert } });
    await using baton = await connect(`tls://${at}?ca=${encodeURIComponent(cert)}`);
    await baton.queue("cars").levels();
  });

  test("a client certificate, where the server asks for one", async (context) => {
    const { cert, key } = selfSigned(folder(context));
    const config = `tls { cert_file: "${cert}", key_file: "${key}", ca_file: "${cert}", verify: true }`;
    await using server = await startNatsServer({ config });
    const at = `127.0.0.1:${server.port}`;
    await works({ servers: [at], tls: { ca: cert, cert, key } });
  });
});

test("a connection of the application's stays open when the engine on it is closed", async () => {
  await using server = await startNatsServer();
  const connection = await connectNats({ servers: [server.url] });
  const heard: string[] = [];
  connection.subscribe("mine", { callback: (_, message) => void heard.push(message.string()) });
  const baton = await connect(await natsEngineOn(connection));
  const receipt = await baton.queue<string>("cars").submit("car1", "wash", { id: "one" });
  const worker = baton.queue<string>("cars").work(({ payload }) => `${payload}ed`);
  assert.equal((await receipt.outcome({ timeout: "5s" })).state, "done");
  await worker.stop();
  await baton.close();
  assert.equal(connection.isClosed(), false, "the connection of the application stays open");
  connection.publish("mine", "still here");
  await connection.flush();
  assert.deepEqual(heard, ["still here"]);
  await connection.close();
});

describe("a stream of somebody else's is reported and left as it is", () => {
  for (const name of ["baton", "baton-cars"]) {
    test(name, async () => {
      await using server = await startNatsServer();
      await ask(server.port, `$JS.API.STREAM.CREATE.${name}`, { name, subjects: ["theirs.>"], max_msgs: 100 });
      await ask(server.port, "theirs.letter", { kept: true });
      const before = await streamInfo(server.port, name);
      await using baton = await connect(server.url);
      const { code, message } = await refusal(baton.queue("cars").submit("car1", null));
      assert.equal(code, "STORE_UNAVAILABLE");
      assert.match(message, new RegExp(`${name} exists, but was not made for Baton.*subjects.*Nothing was changed`));
      const after = await streamInfo(server.port, name);
      assert.deepEqual(after.config, before.config);
      assert.deepEqual(after.state, before.state);
    });
  }

  test("one that lies on Baton's subjects", async () => {
    await using server = await startNatsServer();
    await ask(server.port, "$JS.API.STREAM.CREATE.all", { name: "all", subjects: ["baton.>"] });
    await using baton = await connect(server.url);
    const { code, message } = await refusal(baton.queue("cars").submit("car1", null));
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.match(message, /overlap/);
    assert.deepEqual(await streamNames(server.port), ["all"]);
  });

  test("another prefix makes room for both", async () => {
    await using server = await startNatsServer();
    await ask(server.port, "$JS.API.STREAM.CREATE.baton", { name: "baton", subjects: ["theirs.>"] });
    await works({ servers: [`127.0.0.1:${server.port}`], store: { prefix: "ours" } });
    assert.deepEqual([...(await streamNames(server.port))].toSorted(), ["baton", "ours", "ours-cars"]);
  });
});

describe("an account that may not do everything says what is missing", () => {
  test("JetStream is not enabled for the account", async () => {
    const config = 'accounts { plain { users: [ { user: "ada", password: "x" } ] } }';
    await using server = await startNatsServer({ config });
    const { code, message } = await refusal(
      useOnce({ servers: [`127.0.0.1:${server.port}`], user: "ada", password: "x" }),
    );
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.match(message, /JetStream/);
  });
});

async function isRefused(options: NatsOptions): Promise<void> {
  const { code } = await refusal(natsEngine(options));
  assert.equal(code, "STORE_UNAVAILABLE");
}

async function works(options: NatsOptions): Promise<void> {
  assert.equal(await useOnce(options), "done");
}

async function useOnce(options: NatsOptions): Promise<string> {
  await using baton = await connect(await natsEngine(options));
  const cars = baton.queue("cars");
  const receipt = await cars.submit("car1", null, { id: "one" });
  const worker = cars.work(() => undefined);
  const { state } = await receipt.outcome({ timeout: "5s" });
  await worker.stop();
  return state;
}

function folder(context: TestContext): string {
  const made = mkdtempSync(join(tmpdir(), "baton-nats-secrets-"));
  context.after(() => rmSync(made, { recursive: true, force: true }));
  return made;
}

function selfSigned(into: string): { readonly cert: string; readonly key: string } {
  const [cert, key] = [join(into, "cert.pem"), join(into, "key.pem")];
  const request = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
  const names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"];
  execFileSync("openssl", [...request, ...names, "-keyout", key, "-out", cert], { stdio: "pipe" });
  return { cert, key };
}
