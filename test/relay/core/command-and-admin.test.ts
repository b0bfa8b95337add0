import assert from "node:assert/strict";
import { get } from "node:http";
import { connect as connectTcp } from "node:net";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { DEFAULT_COMMAND, type CommandSettings } from "../../../src/relay/index.ts";
import { ScriptedSource } from "./scripted-source.ts";
import { until } from "../../kit/until.ts";
import { fromSource, play, route, settingsOf, toFunction } from "./stage.ts";
import { freePort } from "../../../servers/free-port.ts";

const LATER = { attempts: 3, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 };

function shell(script: string, more: Partial<CommandSettings> = {}): CommandSettings {
  return { ...DEFAULT_COMMAND, command: "sh", arguments: ["-c", script], ...more };
}

describe("a command", () => {
  test("has the data on its input and the rest in its environment, and its exit code decides", async (context) => {
    const source = new ScriptedSource("cars");
    const script = `
      data=$(cat)
      [ "$BATON_QUEUE $BATON_KEY $BATON_ATTEMPT $BATON_FENCE" = "cars car 1 1 7" ] || exit 99
      echo "$BATON_ID says $data" >&2
      exit "$data"`;
    const { events } = await play(
      context,
      settingsOf(
        route([fromSource(source, { retry: LATER })], shell(script, { fatal: { codes: [66], action: "dead-letter" } })),
      ),
    );
    for (const code of ["0", "1", "65", "66", "75"])
      source.put(`e${code}`, { key: "car 1", fence: 7, data: Buffer.from(code) });
    await until(() => source.told.length === 5, "all of them");
    const ends = Object.fromEntries(events.flatMap((one) => ("id" in one ? [[one.id, one.type]] : [])));
    assert.deepEqual(ends, { e0: "done", e1: "retry", e65: "dead", e66: "dead", e75: "retry" });
    const retry = events.find((one) => one.type === "retry" && one.id === "e1");
    assert.ok(retry?.type === "retry");
    assert.equal(retry.reason, "The command exited with code 1: e1 says 1");
  });

  test("that takes too long is ended with everything it started; one that is not there costs no attempt", async (context) => {
    const source = new ScriptedSource("cars");
    const { events } = await play(
      context,
      settingsOf([
        route([fromSource(source, { retry: LATER })], shell("sleep 60 & wait", { timeoutMs: 200 })),
        route([fromSource(new ScriptedSource("none"), { retry: LATER })], shell(""), { name: "other" }),
      ]),
    );
    source.put("slow");
    await until(() => source.told.length === 1, "its end");
    const retry = events.find(({ type }) => type === "retry");
    assert.ok(retry?.type === "retry");
    assert.match(retry.reason, /longer than 200ms/);

    const missing = new ScriptedSource("missing");
    const played = await play(
      context,
      settingsOf(route([fromSource(missing, { retry: LATER })], shell("", { command: "/no/such/program" }))),
    );
    missing.put("a");
    await until(() => missing.told.length === 1, "its end");
    assert.ok(played.events.some((one) => one.type === "unreachable" && one.reason.includes("could not be started")));
  });
});

interface Answer {
  readonly status: number | undefined;
  readonly body: string;
}

function ask(url: string, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    get(url, { headers, agent: false }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (part: string) => (body += part));
      response.on("end", () => resolve({ status: response.statusCode, body }));
    }).on("error", reject);
  });
}

describe("the admin surface", () => {
  test("says how the relay is, and what it has done, without a label per key", async (context) => {
    const source = new ScriptedSource("cars");
    const admin = { host: "127.0.0.1", port: 0, token: undefined };
    const { relay } = await play(
      context,
      settingsOf(
        route(
          [source],
          toFunction(() => undefined),
        ),
        { admin },
      ),
    );
    const url = relay.adminUrl ?? "";
    source.put("a", { key: "secret-key" });
    await until(() => source.told.length === 1, "its end");
    assert.deepEqual(await ask(`${url}/healthz`), { status: 200, body: '{"state":"running"}' });
    assert.equal((await ask(`${url}/readyz`)).status, 200);
    const { body } = await ask(`${url}/metrics`);
    assert.match(body, /^baton_relay_messages_total\{source="cars",outcome="done"\} 1$/m);
    assert.match(body, /^baton_relay_slots\{route="main"\} 2$/m);
    assert.match(body, /^baton_relay_delivery_seconds_bucket\{source="cars",le="\+Inf"\} 1$/m);
    assert.ok(!body.includes("secret-key"));
    assert.equal((await ask(`${url}/nothing`)).status, 404);
    // A page elsewhere whose name was made to lead here.
    assert.equal((await ask(`${url}/metrics`, { host: "evil.example" })).status, 421);

    source.before = () => Promise.reject(new Error("away"));
    source.put("b");
    await until(() => relay.report().routes[0]?.failing.length === 1, "the source to fail");
    assert.equal((await ask(`${url}/readyz`)).status, 503);
  });

  test("asks for its token where it has one, and wants one where others can reach it", async (context) => {
    const settings = settingsOf(
      route(
        [new ScriptedSource("cars")],
        toFunction(() => undefined),
      ),
    );
    const token = "0123456789abcdef0123456789abcdef";
    const { relay } = await play(context, { ...settings, admin: { host: "127.0.0.1", port: 0, token } });
    const url = `${relay.adminUrl ?? ""}/metrics`;
    assert.equal((await ask(url)).status, 401);
    assert.equal((await ask(url, { authorization: "Bearer wrong" })).status, 401);
    assert.equal((await ask(url, { authorization: `Bearer ${token}` })).status, 200);
    assert.equal((await ask(url, { authorization: `bearer  ${token}` })).status, 200);
    assert.equal((await ask(url, { authorization: `Basic ${token}` })).status, 401);
    assert.equal((await ask(`${url}x`)).status, 401, "not even what there is not");
    await assert.rejects(
      play(context, { ...settings, admin: { host: "0.0.0.0", port: 0, token: undefined } }),
      /admin\.token/,
    );
  });

  test("answers probes without its token, and tells them no names", async (context) => {
    const source = new ScriptedSource("secret-source");
    const settings = settingsOf(
      route(
        [source],
        toFunction(() => undefined),
      ),
    );
    const token = "0123456789abcdef0123456789abcdef";
    const { relay } = await play(context, { ...settings, admin: { host: "127.0.0.1", port: 0, token } });
    const url = relay.adminUrl ?? "";
    assert.deepEqual(await ask(`${url}/healthz`), { status: 200, body: '{"state":"running"}' });
    assert.deepEqual(await ask(`${url}/readyz`), { status: 200, body: '{"state":"running"}' });
    assert.match((await ask(`${url}/readyz`, { authorization: `Bearer ${token}` })).body, /"routes"/);
    source.before = () => Promise.reject(new Error("away"));
    source.put("b");
    await until(() => relay.report().routes[0]?.failing.length === 1, "the source to fail");
    const { status, body } = await ask(`${url}/readyz`);
    assert.deepEqual([status, body.includes("secret-source")], [503, false]);
  });

  test("refuses a request with two hosts", async (context) => {
    const settings = settingsOf(
      route(
        [new ScriptedSource("cars")],
        toFunction(() => undefined),
      ),
    );
    const { relay } = await play(context, { ...settings, admin: { host: "127.0.0.1", port: 0, token: undefined } });
    const { port } = new URL(relay.adminUrl ?? "");
    const askRaw = async (head: string): Promise<string> => {
      const socket = connectTcp(Number(port), "127.0.0.1");
      socket.write(`GET /healthz HTTP/1.1\r\n${head}connection: close\r\n\r\n`);
      return (await text(socket)).split("\r\n")[0] ?? "";
    };
    assert.equal(await askRaw("Host: localhost\r\n"), "HTTP/1.1 200 OK");
    for (const second of ["evil.example", "localhost"])
      assert.equal(await askRaw(`Host: localhost\r\nHost: ${second}\r\n`), "HTTP/1.1 400 Bad Request");
  });

  test("changes its token at a reload, where it listens", async (context) => {
    const source = new ScriptedSource("cars");
    const settings = settingsOf(
      route(
        [source],
        toFunction(() => undefined),
      ),
    );
    const [first, second] = ["a".repeat(32), "a pass phrase of more than a few words"];
    const port = await freePort();
    const admin = { host: "127.0.0.1", port, token: first };
    const { relay } = await play(context, { ...settings, admin });
    const url = `http://127.0.0.1:${port}/metrics`;
    const statuses = async (): Promise<unknown[]> => [
      (await ask(url, { authorization: `Bearer ${first}` })).status,
      (await ask(url, { authorization: `Bearer ${second}` })).status,
    ];
    assert.deepEqual(await statuses(), [200, 401]);
    await relay.reload({ ...settings, admin: { ...admin, token: second } });
    assert.deepEqual(await statuses(), [401, 200]);
    // Settings that are refused for another reason change nothing.
    const broken = fromSource(source, { open: () => Promise.reject(new Error("away")) });
    await assert.rejects(
      relay.reload({
        ...settings,
        routes: [
          route(
            [broken],
            toFunction(() => undefined),
          ),
        ],
        admin,
      }),
    );
    assert.deepEqual(await statuses(), [401, 200]);
  });
});
