import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, test, type TestContext } from "node:test";
import { stringify } from "yaml";
import { checkSettings } from "../../../src/relay/check-settings.ts";
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
    checkSettings(await parseConfig(value, { environment }));
  } catch (error) {
    assert.ok(error instanceof ConfigInvalid, String(error));
    for (const { path } of error.problems) assert.ok(error.message.includes(path));
    for (const { message } of error.problems) assert.ok(error.message.includes(message));
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
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
    const settings = checkSettings(await parseConfig(FULL, { file: "/etc/baton/relay.yaml", environment: { SECRET } }));
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

  test("refuses stores that have no queues, wherever one is named", async () => {
    for (const store of ["consul://localhost:8500", "kafka://localhost"]) {
      const problems = await problemsOf({
        sources: [{ type: "baton", store, queue: "q", dead_letter: { store, queue: "d" } }],
        processor: { type: "command", command: ["true"] },
        key: { attribute: "k" },
        keys: { store, queue: "k" },
      });
      assert.deepEqual(
        problems.map((problem) => problem.split(": ")[0]),
        ["sources[0].dead_letter.store", "sources[0].store", "keys.store"],
      );
    }
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
      problems.map((problem) => problem.split(/: (?:expected|unknown)/)[0]),
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
    assert.match(text, /^choise: unknown field "choise"; did you mean "choice"\?$/m);
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

  test("refuses bounds of which one would cut the other in silence, and names both", async () => {
    const source = { type: "sqs", queue: "orders" };
    const retried = (retry: object, type: object = source): object => ({ ...PLAIN, sources: [{ ...type, retry }] });
    const subscription = { type: "pubsub", subscription: "projects/p/subscriptions/s" };
    const http = { type: "http", url: "http://127.0.0.1:1" };
    const cases: readonly (readonly [object, RegExp])[] = [
      [retried({ backoff: "1h", max_backoff: "5m" }), /retry\.backoff: expected no more than max_backoff, which is 5m/],
      [retried({ delay: "10s", backoff: "1s" }), /retry\.delay: expected either a fixed delay, or backoff/],
      [retried({ delay: "13h" }), /sources\[0\]\.retry: expected waits of at most 720 minutes.*; found one of 780/],
      [
        retried({ backoff: "11m" }, subscription),
        /sources\[0\]\.retry: expected waits of at most 10 minutes.*; found one of 11/,
      ],
      [
        { ...PLAIN, processor: { ...http, timeout: "2s", connect_timeout: "3s" } },
        /connect_timeout: expected no more than timeout, which is 2s/,
      ],
      [
        { ...PLAIN, concurrency: 5_000, processor: http },
        /^concurrency: expected no more than per_host of its processor, which is 1000; found 5000$/,
      ],
    ];
    for (const [value, message] of cases) assert.match((await problemsOf(value)).join(), message);
  });

  test("raises the bound that was left out", async () => {
    const retryOf = async (retry: object): Promise<unknown> =>
      (await parseConfig({ ...PLAIN, sources: [{ type: "sqs", queue: "orders", retry }] })).routes[0]?.sources[0]
        ?.retry;
    assert.deepEqual(await retryOf({ backoff: "1h" }), { attempts: 5, backoffMs: 3_600_000, maxBackoffMs: 3_600_000 });
    assert.deepEqual(await retryOf({ delay: "10s" }), {
      attempts: 5,
      backoffMs: 10_000,
      maxBackoffMs: 10_000,
      delayMs: 10_000,
    });
    const short = { type: "http", url: "http://127.0.0.1:1", timeout: "2s" };
    const { routes } = await parseConfig({ ...PLAIN, processor: short });
    assert.equal(routes[0]?.processor.type === "http" && routes[0].processor.connectTimeoutMs, 2_000);
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

describe("a file", () => {
  test("may begin with a byte order mark, and may not have a name twice in one object", async (t) => {
    const folder = folderOf(t);
    const write = (name: string, text: string): string => {
      writeFileSync(join(folder, name), text);
      return join(folder, name);
    };
    for (const name of ["bom.json", "bom.yaml"]) await readConfig(write(name, `\uFEFF${JSON.stringify(PLAIN)}`));
    const text = JSON.stringify(PLAIN, undefined, 2);
    const twice = text.replace('"processor"', '"sources": [{ "a": "\\"b\\": {" }],\n  "processor"');
    await assert.rejects(readConfig(write("twice.json", twice)), {
      code: "INVALID_INPUT",
      message: /line 8, column 3: "sources" stands here a second time/,
    });
    await assert.rejects(readConfig(write("twice.yaml", twice)), {
      code: "INVALID_INPUT",
      message: /keys must be unique at line 8, column 3/,
    });
    await readConfig(write("nested.json", JSON.stringify({ ...PLAIN, admin: { port: 0 }, keys: undefined })));
  });

  test("in YAML may share what is the same by merge keys", async (t) => {
    const file = join(folderOf(t), "relay.yaml");
    writeFileSync(
      file,
      `sources:
  - &orders { type: sqs, queue: orders, region: us-west-2, retry: { attempts: 8 } }
  - { <<: *orders, queue: reports }
processor: { type: http, url: "http://localhost:5000/" }
`,
    );
    const { sources } = only(await readConfig(file));
    assert.deepEqual(
      sources.map(({ name, retry }) => [name, retry.attempts]),
      [
        ["orders", 8],
        ["reports", 8],
      ],
    );
  });

  test("may keep what it shares under names of its own, which begin with x-", async (t) => {
    const file = join(folderOf(t), "relay.yaml");
    writeFileSync(
      file,
      `x-place: &place { type: sqs, region: us-west-2 }
x-patience: &patience { retry: { attempts: 8 } }
sources:
  - { <<: [*place, *patience], queue: orders }
processor: { type: http, url: "http://localhost:5000/" }
`,
    );
    const { sources } = only(await readConfig(file));
    assert.deepEqual([sources[0]?.name, sources[0]?.retry.attempts], ["orders", 8]);
    assert.deepEqual(await problemsOf({ ...PLAIN, "x-note": 1 }), []);
    assert.equal((await problemsOf({ ...PLAIN, sources: [{ ...PLAIN.sources[0], "x-note": 1 }] })).length, 1);
  });

  test("that is no relay at all is told what one is", async () => {
    for (const value of [[], "text", null]) {
      const [problem] = await problemsOf(value);
      assert.match(problem ?? "", /^: expected an object with sources and a processor, or with routes; found/);
    }
    const [problem] = await problemsOf({ ...PLAIN, sources: [{ type: "sqs", queue: "a", vissibility: "1m" }] });
    assert.equal(problem, 'sources[0].vissibility: unknown field "vissibility"; did you mean "visibility"?');
    const [odd] = await problemsOf({ ...PLAIN, grace: "5s", admin: { colour: "red" } });
    assert.equal(odd, 'admin.colour: unknown field "colour"; the fields of admin settings are host, port, token');
  });

  test("for a Dapr application honours its answers without being told to", async () => {
    const { sources, processor } = PLAIN;
    const repliesOf = async (more: object, replies?: string): Promise<string> =>
      httpOf(await parseConfig({ sources, ...more, processor: { ...processor, ...(replies && { replies }) } })).replies;
    assert.equal(await repliesOf({}), "status");
    assert.equal(await repliesOf({ transforms: ["dapr_aws"] }), "dapr");
    assert.equal(await repliesOf({ form: { type: "dapr", pubsub: "p", topic: "t" } }), "dapr");
    assert.equal(await repliesOf({ transforms: ["dapr_aws"] }, "status"), "status");
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

  test("takes what the original took: texts for numbers, nothing for the default, one for a list", async () => {
    const settings = await parseConfig({
      poller: { Type: "", concurrency: "4" },
      queues: { type: "aws_sqs", config: { name: 7, visibility_timeout: 0, endpoint: "", region: "us-west-2" } },
      processor: {
        type: "http_raw",
        config: {
          subscriber_url: "http://user:p%20w@localhost:5000/",
          method: "",
          timeout: "0x3c",
          fatal_codes: "412",
          content_type: "",
          comment: "ours",
        },
      },
      transformer: { type: "" },
    });
    const { concurrency, sources, transforms } = only(settings);
    assert.deepEqual([concurrency, sources[0]?.name, transforms.length], [4, "7", 0]);
    const { timeoutMs, fatal, method, contentType, headers, target } = httpOf(settings);
    assert.deepEqual([timeoutMs, fatal.codes, method, contentType], [60_000, [412], "POST", "text/plain"]);
    assert.deepEqual(target, { type: "url", url: "http://localhost:5000/" });
    assert.equal(headers["authorization"], `Basic ${Buffer.from("user:p w").toString("base64")}`);
    assert.deepEqual(settings.warnings?.length, 1);
    assert.match(settings.warnings?.[0] ?? "", /^processor\.config\.comment: unknown field, which is passed over/);
    for (const [type, field] of [
      ["aws_sqs", { name: "a", visibility_timeout: -1 }],
      ["gcp_pubsub", { subscription_id: "projects/p/subscriptions/s", ack_deadline: "10m" }],
    ] as const) {
      const processor = { type: "http_raw", config: { subscriber_url: "http://localhost:5000/" } };
      assert.equal((await problemsOf({ queues: { type, config: [field] }, processor })).length, 1);
    }
  });

  test("may write its names in any case, and is told of one that stands twice", async () => {
    const settings = await parseConfig({
      Queues: { Type: "aws_sqs", Config: [{ Name: "b", name: "a", REGION: "r" }] },
      Processor: { TYPE: "http", Config: { Subscriber_URL: "http://localhost:5000/" } },
      Transformer: { Type: "dapr_aws" },
    });
    assert.deepEqual(
      only(settings).sources.map(({ name }) => name),
      ["a"],
    );
    assert.deepEqual(settings.warnings, [
      "queues.config[0].Name: stands here a second time as name, and is passed over",
    ]);
  });

  test("honours a Dapr application's answers, and takes replies and grace", async () => {
    const queues = { type: "aws_sqs", config: [{ name: "a" }] };
    const config = { subscriber_url: "http://localhost:5000/" };
    const read = async (more: object, type = "http", extra: object = {}): Promise<RelaySettings> =>
      await parseConfig({ queues, processor: { type, config: { ...config, ...extra } }, ...more });
    const transformer = { type: "dapr_aws" };
    assert.equal(httpOf(await read({})).replies, "status");
    assert.equal(httpOf(await read({ transformer })).replies, "dapr-body");
    assert.equal(httpOf(await read({}, "http_dapr")).replies, "dapr-body");
    assert.equal(httpOf(await read({}, "http", { replies: "dapr" })).replies, "dapr");
    assert.equal(httpOf(await read({ transformer }, "http", { replies: "status" })).replies, "status");
    assert.equal((await read({ grace: 90 })).graceMs, 90_000);
    assert.equal((await read({ grace: "2m" })).graceMs, 120_000);
  });

  test("has problems too, and they are named", async () => {
    const problems = await problemsOf({
      queues: { type: "aws_sqs", config: [{ name: "a", visibility_timeout: "10m" }, {}] },
      processor: { type: "http_raw", config: { fatal_codes: ["all"] } },
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
