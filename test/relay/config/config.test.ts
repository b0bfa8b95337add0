import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { stringify } from "yaml";
import { ConfigInvalid, parseConfig, readConfig } from "../../../src/relay/config/read-config.ts";
import type { HttpSettings, RelaySettings } from "../../../src/relay/settings.ts";

const ORIGINAL = join(import.meta.dirname, "original");

const PLAIN = {
  sources: [{ type: "sqs", queue: "orders" }],
  processor: { type: "http", url: "http://localhost:5000/" },
};

function folderOf(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "baton-config-"));
  t.after(() => rmSync(folder, { recursive: true }));
  return folder;
}

/** `path: expected …; found …`, one per problem. */
async function problemsOf(value: unknown, environment: Record<string, string> = {}): Promise<readonly string[]> {
  try {
    await parseConfig(value, { environment });
  } catch (error) {
    assert.ok(error instanceof ConfigInvalid, String(error));
    for (const { path } of error.problems) assert.ok(error.message.includes(path));
    return error.problems.map(({ path, expected, found }) => `${path}: expected ${expected}; found ${found}`);
  }
  return [];
}

function only({ routes: [route, ...others] }: RelaySettings): RelaySettings["routes"][number] {
  assert.ok(route !== undefined && others.length === 0);
  return route;
}

function httpOf(settings: RelaySettings): HttpSettings {
  const { processor } = only(settings);
  assert.ok(processor.type === "http");
  return processor;
}

describe("the configuration", () => {
  test("needs little, and the rest has defaults", async () => {
    const settings = await parseConfig(PLAIN);
    const route = only(settings);
    assert.equal(route.sources[0]?.name, "orders");
    assert.equal(route.choice, "strict");
    assert.equal(route.concurrency, 10);
    assert.deepEqual(route.form, { type: "raw" });
    assert.deepEqual(httpOf(settings).target, { type: "url", url: "http://localhost:5000/" });
    assert.equal(settings.graceMs, 20_000);
    assert.equal(settings.admin, undefined);
  });

  test("is the same in JSON and in YAML", async (t) => {
    const folder = folderOf(t);
    writeFileSync(join(folder, "relay.json"), JSON.stringify(FULL));
    writeFileSync(join(folder, "relay.yaml"), stringify(FULL));
    const environment = { SECRET };
    const [json, yaml] = await Promise.all(
      ["relay.json", "relay.yaml"].map((name) => readConfig(join(folder, name), environment)),
    );
    // Functions are told apart by identity, and are looked at elsewhere.
    assert.equal(JSON.stringify(json), JSON.stringify(yaml));
  });

  test("has every field of the full form", async () => {
    const settings = await parseConfig(FULL, { file: "/etc/baton/relay.yaml", environment: { SECRET } });
    assert.deepEqual(
      settings.routes.map(({ name, sources }) => [name, sources.map((source) => source.name)]),
      [
        ["orders", ["high", "low-sub"]],
        ["mail", ["mail"]],
      ],
    );
    const [orders, mail] = settings.routes;
    assert.deepEqual(orders?.sources[0]?.retry, { attempts: Infinity, backoffMs: 2_000, maxBackoffMs: 60_000 });
    assert.deepEqual(orders?.sources[0]?.deadLetter, { to: "file", path: "/etc/baton/dead.jsonl" });
    assert.deepEqual(orders?.sources[1]?.deadLetter, { to: "queue", queue: "failed", store: "sqlite:dead.db" });
    assert.deepEqual(orders?.key, { from: "json", pointer: "/customer/id" });
    assert.deepEqual(orders?.form, {
      type: "cloudevents",
      mode: "binary",
      wrap: { source: "/orders", type: "com.example.order" },
    });
    assert.deepEqual(
      orders?.transforms.map(({ name }) => name),
      ["sns", "gzip", "pick"],
    );
    assert.deepEqual(orders?.processor, {
      type: "http",
      target: { type: "dapr-subscription", url: "http://localhost:5000/", pubsub: "p", topic: "t" },
      method: "PUT",
      headers: { "X-Team": "orders" },
      contentType: "application/json",
      timeoutMs: 7_200_000,
      connectTimeoutMs: 1_000,
      perHost: 50,
      fatal: { codes: [400, 422], action: "drop" },
      replies: "dapr",
      breaker: undefined,
      signingSecrets: [SECRET],
    });
    assert.deepEqual(mail?.processor, {
      type: "command",
      command: "./send",
      arguments: ["--now"],
      fatal: { codes: [2], action: "dead-letter" },
      timeoutMs: 60_000,
    });
    assert.deepEqual(settings.keys, {
      store: "nats://localhost",
      queue: "orders",
      leaseMs: 10_000,
      waiting: 5,
      waitMs: 1_000,
      awayMs: 2_000,
    });
    assert.deepEqual(settings.admin, { host: "127.0.0.1", port: 0, token: undefined });
    assert.equal(settings.graceMs, 5_000);
  });

  test("has every problem named at once, with its place", async () => {
    const problems = await problemsOf({
      sources: [
        { type: "sqs", visibility: 30, region: "" },
        { type: "kafka" },
        { type: "pubsub", subscription: "orders", weight: 0 },
        { type: "baton", store: "work.db", queue: "a b", retry: { attempts: "many" }, dead_letter: "nowhere" },
      ],
      choise: "strict",
      concurrency: "4",
      transforms: ["zip", { type: "pick", pointer: "a" }, { type: "module", path: "./no-such-module.mjs" }],
      key: { json: "customer" },
      processor: { type: "http", url: "localhost:5000", signing_secrets: ["hush"], headers: { "a b": "c", d: "e\nf" } },
      admin: { host: "0.0.0.0" },
    });
    assert.deepEqual(
      problems.map((problem) => problem.split(": expected")[0]),
      [
        "choise",
        "sources[0].queue",
        "sources[0].region",
        "sources[0].visibility",
        "sources[1].type",
        "sources[2].weight",
        "sources[2].subscription",
        "sources[3].retry.attempts",
        "sources[3].dead_letter",
        "sources[3].store",
        "sources[3].queue",
        "concurrency",
        "transforms[0]",
        "transforms[1].pointer",
        "key.json",
        "processor.url",
        'processor.headers["a b"]',
        "processor.headers.d",
        "processor.signing_secrets[0]",
        "admin.token",
        "transforms[2].path",
      ],
    );
    const text = problems.join("\n");
    assert.match(text, /choise: expected no such field in a relay; did you mean choice; found choise/);
    assert.match(text, /sources\[0\]\.queue: expected the name or the URL of a queue; found nothing/);
    assert.match(text, /sources\[0\]\.visibility: expected a length of time with its unit, such as 30s.*; found 30/);
    assert.match(text, /sources\[1\]\.type: expected one of sqs, pubsub, baton; found "kafka"/);
    assert.match(text, /attempts: expected unlimited, or a whole number, 1 or more; found "many"/);
    assert.doesNotMatch(text, /hush/, "a secret is not shown");
  });

  test("does not show secrets in what is wrong with it", async (t) => {
    const http = (more: object): object => ({ ...PLAIN, processor: { ...PLAIN.processor, ...more } });
    const values = [
      http({ url: "http://user:hunter2@host/" }),
      http({ url: "user:hunter2@host" }),
      http({ url: "http://user:hun/${X:-ter2}hunter2@host/" }),
      http({ headers: { Authorization: "Bearer hunter2\n" } }),
      http({ headers: "Authorization: hunter2" }),
      http({ headers: { Authorization: ["hunter2"] } }),
      http({ url: { password: "hunter2" } }),
      http({ signing_secrets: "whsec_hunter2" }),
      { ...PLAIN, admin: "hunter2" },
      { ...PLAIN, keys: { store: "//user:hunter2@host", queue: "q" } },
    ];
    for (const value of values) {
      const problems = (await problemsOf(value)).join("\n");
      assert.match(problems, /expected/);
      assert.doesNotMatch(problems, /hunter2/);
    }
    const folder = folderOf(t);
    writeFileSync(join(folder, "bad.json"), '{ "token": "hunter2", x }');
    writeFileSync(join(folder, "worse.json"), '{ "token": hunter2 }');
    writeFileSync(join(folder, "bad.yaml"), "token: [hunter2\nb: 2");
    for (const name of ["bad.json", "worse.json", "bad.yaml"]) {
      const failed = (error: Error): boolean => error.message.includes("is not") && !error.message.includes("hunter2");
      await assert.rejects(readConfig(join(folder, name)), failed, name);
    }
  });

  test("may be something else altogether", async () => {
    for (const value of [
      undefined,
      null,
      7,
      "text",
      [],
      {},
      { sources: 1 },
      { routes: [] },
      { queues: 1 },
      { routes: {} },
    ]) {
      assert.ok((await problemsOf(value)).length > 0, JSON.stringify(value));
    }
  });

  test("has names of sources that differ", async () => {
    const twice = { ...PLAIN, sources: [PLAIN.sources[0], PLAIN.sources[0]] };
    assert.match((await problemsOf(twice)).join(), /^sources\[1\]\.name: expected another name.*found orders/);
  });

  test("must say where it delivers to, in one way", async () => {
    const attribute = { name: "callback", hosts: ["*.example.com"] };
    const processors = [
      {},
      { url: "http://a", url_attribute: attribute },
      { dapr_subscription: { pubsub: "p", topic: "t" } },
    ];
    for (const fields of processors) {
      assert.match(
        (await problemsOf({ ...PLAIN, processor: { type: "http", ...fields } })).join(),
        /processor: expected url/,
      );
    }
    const settings = await parseConfig({ ...PLAIN, processor: { type: "http", url_attribute: attribute } });
    assert.deepEqual(httpOf(settings).target, {
      type: "attribute",
      plainHttp: false,
      privateAddresses: false,
      ...attribute,
    });
  });

  test("refuses headers that no delivery could be sent with", async () => {
    const names = ["Transfer-Encoding", "Upgrade", "Keep-Alive", "Content-Length", "expect", "Connection"];
    const headersOf = (list: readonly string[]): object => ({
      ...PLAIN,
      processor: { ...PLAIN.processor, headers: Object.fromEntries(list.map((name) => [name, "1"])) },
    });
    const problems = await problemsOf(headersOf(names));
    assert.deepEqual(
      problems.map((problem) => problem.split(": expected")[0]),
      names.map((name) => `processor.headers.${name}`),
    );
    assert.deepEqual(await problemsOf(headersOf(["Host", "Authorization", "X-Team"])), []);
  });

  test("takes a transform from a module beside it", async (t) => {
    const folder = folderOf(t);
    writeFileSync(join(folder, "own.mjs"), "export default ({ data }) => data;");
    const file = join(folder, "relay.json");
    writeFileSync(file, JSON.stringify({ ...PLAIN, transforms: [{ type: "module", path: "./own.mjs" }] }));
    assert.equal(only(await readConfig(file)).transforms[0]?.name, "./own.mjs");
    const missing = { ...PLAIN, transforms: ["sns", { type: "module", path: "./other.mjs" }] };
    assert.match((await problemsOf(missing)).join(), /^transforms\[1\]\.path: expected a module that can be loaded/);
  });

  test("that cannot be read, or parsed, is said", async (t) => {
    const folder = folderOf(t);
    writeFileSync(join(folder, "bad.json"), "{ nonsense");
    writeFileSync(join(folder, "bad.yaml"), "a: [1\nb: 2");
    await assert.rejects(readConfig(join(folder, "none.json")), { code: "NOT_FOUND", message: /could not be read/ });
    await assert.rejects(readConfig(join(folder, "bad.json")), { code: "INVALID_INPUT", message: /is not JSON/ });
    await assert.rejects(readConfig(join(folder, "bad.yaml")), { code: "INVALID_INPUT", message: /is not YAML/ });
  });
});

describe("the environment", () => {
  test("fills in texts, numbers and flags", async () => {
    const value = {
      ...PLAIN,
      concurrency: "${SLOTS}",
      grace: "${GRACE:-7s}",
      processor: {
        type: "http",
        url: "http://${HOST}:${PORT:-80}/$${x}",
        url_attribute: undefined,
        headers: { Authorization: "Bearer ${TOKEN:-}" },
      },
    };
    const settings = await parseConfig(value, { environment: { SLOTS: "3", HOST: "here", GRACE: "" } });
    assert.equal(only(settings).concurrency, 3);
    assert.equal(settings.graceMs, 7_000);
    assert.deepEqual(httpOf(settings).target, { type: "url", url: "http://here:80/${x}" });
    assert.equal(httpOf(settings).headers["Authorization"], "Bearer ");
  });

  test("is told when it lacks something, or has something else; values are not shown", async () => {
    const value = { ...PLAIN, concurrency: "${SLOTS}", processor: { type: "http", url: "${URL}${broken" } };
    assert.deepEqual(await problemsOf(value, { SLOTS: "classified" }), [
      'concurrency: expected a whole number from 1 to 100000; found "${SLOTS}"',
      "processor.url: expected the environment variable URL to be set, or a default: ${URL:-…}; found nothing",
      "processor.url: expected a variable as in ${NAME} or ${NAME:-default}, or $${ for the characters themselves; found ${broken",
    ]);
  });
});

describe("the original service's configuration", () => {
  test("is read as it stands", async () => {
    const settings = await readConfig(join(ORIGINAL, "aws_sqs_example_config.json"));
    const route = only(settings);
    assert.equal(route.concurrency, 4);
    assert.equal(route.choice, "strict");
    assert.deepEqual(
      route.sources.map(({ name, retry, deadLetter }) => [name, retry.attempts, deadLetter.to]),
      [
        ["high-priority", Infinity, "drop"],
        ["low-priority", Infinity, "drop"],
      ],
    );
    const http = httpOf(settings);
    assert.deepEqual(http.target, { type: "url", url: "http://localhost:5000/" });
    assert.equal(http.contentType, "text/plain");
    assert.equal(http.timeoutMs, 570_000);
    assert.deepEqual(http.fatal, { codes: [412, 450], action: "drop" });
    assert.deepEqual(route.transforms, []);
  });

  test("for Dapr: both versions mean the same", async () => {
    for (const name of ["dapr_aws_sqs_example_config.json", "dapr_aws_sqs_example_config.older.json"]) {
      const settings = await readConfig(join(ORIGINAL, name));
      assert.equal(only(settings).transforms[0]?.name, "dapr_aws");
      assert.equal(httpOf(settings).contentType, "application/json");
      assert.deepEqual(httpOf(settings).fatal.codes, [415, 450]);
    }
  });

  test("for Pub/Sub", async () => {
    const settings = await readConfig(join(ORIGINAL, "gcp_pubsub_example_config.json"));
    assert.deepEqual(
      only(settings).sources.map(({ name }) => name),
      ["high-priority-sub", "low-priority-sub"],
    );
  });

  test("in the spellings of its own page, with its defaults", async () => {
    const processor = { type: "http_raw", config: { subscriber_url: "http://localhost:5000/", method: "GET" } };
    const sqs = { type: "awssqs", config: [{ name: "a" }] };
    const settings = await parseConfig({ poll_concurrency: 7, queues: sqs, processor });
    assert.equal(only(settings).concurrency, 7);
    assert.deepEqual([httpOf(settings).timeoutMs, httpOf(settings).method], [120_000, "GET"]);
    const config = [
      { subscription_id: "projects/p/subscriptions/s", ack_deadline_seconds: 20, endpoint: "localhost:1" },
    ];
    await parseConfig({ queues: { type: "gcppubsub", config }, processor });
  });

  test("has problems too, and they are named", async () => {
    const problems = await problemsOf({
      queues: { type: "aws_sqs", config: [{ name: "a", visibility_timeout: "10m" }, {}] },
      processor: { type: "http_raw", config: { fatal_codes: [1000] } },
      transformer: { type: "dapr" },
    });
    assert.deepEqual(
      problems.map((problem) => problem.split(": expected")[0]),
      [
        "queues.config[0].visibility_timeout",
        "queues.config[1].name",
        "processor.config.subscriber_url",
        "processor.config.fatal_codes[0]",
        "transformer.type",
      ],
    );
  });
});

const SECRET = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;

const FULL = {
  routes: {
    orders: {
      sources: [
        {
          type: "sqs",
          name: "high",
          queue: "https://sqs.us-west-2.amazonaws.com/000000000000/high",
          region: "us-west-2",
          endpoint: "http://localhost:4566",
          visibility: "10m",
          dead_letter_queue: "dead",
          weight: 3,
          retry: { attempts: "unlimited", backoff: "2s", max_backoff: "1m" },
          dead_letter: { file: "dead.jsonl" },
        },
        {
          type: "pubsub",
          subscription: "projects/p/subscriptions/low-sub",
          endpoint: "localhost:8085",
          ack_deadline: "60s",
          dead_letter_topic: "projects/p/topics/dead",
          dead_letter: { queue: "failed", store: "sqlite:dead.db" },
        },
      ],
      choice: "weighted",
      concurrency: 16,
      transforms: ["sns", { type: "gzip", max_bytes: 1_000 }, { type: "pick", pointer: "/detail" }],
      key: { json: "/customer/id" },
      form: { type: "cloudevents", mode: "binary", wrap: { source: "/orders", type: "com.example.order" } },
      processor: {
        type: "http",
        url: "http://localhost:5000/",
        dapr_subscription: { pubsub: "p", topic: "t" },
        method: "PUT",
        headers: { "X-Team": "orders" },
        content_type: "application/json",
        timeout: "2h",
        connect_timeout: "1s",
        per_host: 50,
        fatal: { codes: [400, 422], action: "drop" },
        replies: "dapr",
        breaker: false,
        signing_secrets: ["${SECRET}"],
      },
    },
    mail: {
      sources: [{ type: "baton", store: "sqlite:work.db", queue: "mail", lease: "1m", dead_letter: "source" }],
      key: { attribute: "customer" },
      processor: { type: "command", command: ["./send", "--now"], fatal: { codes: [2] }, timeout: "1m" },
    },
  },
  keys: { store: "nats://localhost", queue: "orders", lease: "10s", waiting: 5, wait: "1s", away: "2s" },
  admin: { port: 0 },
  grace: "5s",
};
