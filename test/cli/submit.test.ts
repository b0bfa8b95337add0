import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { Desk } from "./baton-command.ts";

describe("baton submit", { concurrency: 4, timeout: 120_000 }, () => {
  test("submit prints the receipt and exits 0", async (context) => {
    const desk = new Desk(context);
    const { code, stdout, stderr } = await desk.run(["submit", "cars", "car1", "paint", "--level", "high"]);
    assert.equal(stderr, "");
    assert.match(stdout, /^accepted @\S+ car1 high\n$/);
    assert.equal(code, 0);
  });

  test("a second submission of an id is the first one", async (context) => {
    const desk = new Desk(context);
    const words = ["submit", "cars", "car1", "paint", "--id", "order-17"];
    const first = await desk.json(words);
    assert.ok(typeof first === "object" && first !== null && "at" in first);
    const { at } = first;
    const receipt = { accepted: true, queue: "cars", id: "order-17", key: "car1", level: "normal", at, replaced: [] };
    assert.deepEqual(first, { ...receipt, duplicate: false });
    assert.deepEqual(await desk.json(words), { ...receipt, duplicate: true });
    const { stdout } = await desk.run(words);
    assert.equal(stdout, "accepted order-17 car1 normal duplicate\n");
  });

  test("a refusal exits 3 and says what to do", async (context) => {
    const desk = new Desk(context);
    await desk.run(["submit", "cars", "car1", "one"]);
    const refused = await desk.run(["submit", "cars", "car1", "two", "--mode", "strict"]);
    assert.equal(refused.code, 3);
    assert.match(refused.stderr, /^baton: Key "car1" of queue "cars" is busy\..* Submit it again later/);
    const asJson = await desk.run(["--json", "submit", "cars", "car1", "two", "--mode", "strict"]);
    assert.equal(asJson.code, 3);
    assert.match(asJson.stdout, /^\{"accepted":false,"queue":"cars","key":"car1","code":"KEY_BUSY","message":/);
    const replaced = await desk.run(["submit", "cars", "car1", "two", "--mode", "latest"]);
    assert.match(replaced.stdout, /^accepted @\S+ car1 normal replaced @\S+\n$/);
  });

  test("a mistake exits 1, names the field and the rule, and changes nothing", async (context) => {
    const desk = new Desk(context);
    const mistakes: readonly (readonly [readonly string[], RegExp])[] = [
      [["submit", "cars", "car1", "--level", "urgent"], /^baton: --level: expected high, normal, low; found "urgent"/],
      [["submit", "my cars", "car1"], /^baton: queue: expected 1 to 64 letters, digits/],
      [["submit", "cars", ""], /^baton: key: expected a non-empty text/],
      [
        ["submit", "cars", "car1", "--delay", "soon"],
        /^baton: option '--delay <time>' argument 'soon' is invalid\. Expected a length of time/,
      ],
      [["submit", "cars", "car1", "--mode", "fast"], /Allowed choices are fifo, latest, strict/],
      [["submit", "cars", "car1", "{bad", "--type", "application/json"], /^baton: payload: expected valid JSON/],
      [["submit", "cars"], /^baton: missing required argument 'key'\nSee: baton submit --help\n$/],
      [["submit", "cars", "car1", "x", "--store", "memory:"], /^baton: store: expected a store that outlives/],
      [["submit", "cars", "car1", "x", "--store", "carrier-pigeon:"], /^baton: There is no engine for carrier-pigeon:/],
    ];
    for (const [words, expected] of mistakes) {
      const { code, stdout, stderr } = await desk.run(words);
      assert.match(stderr, expected);
      assert.doesNotMatch(stderr, /\n\s+at /, "no stack trace");
      assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
    }
    const [cars] = (await desk.json(["status"])) as { waiting: number }[];
    assert.equal(cars?.waiting ?? 0, 0);
  });

  test("payloads: none, an argument, standard input, bytes, JSON as it was written", async (context) => {
    const desk = new Desk(context);
    const json = `{"big": 12345678901234567890}`;
    // Standard input is there each time, and is read only when asked for.
    const input = Buffer.from([0, 255, 10, 7]);
    await desk.run(["submit", "q", "none"], { input });
    await desk.run(["submit", "q", "text", "grün"], { input });
    await desk.run(["submit", "q", "stdin", "-"], { input: "from\nstdin\n" });
    await desk.run(["submit", "q", "bytes", "-"], { input });
    await desk.run(["submit", "q", "json", "-", "--type", "application/json"], { input: json });
    await desk.run(["submit", "q", "dash", "--", "--level"]);
    const work = ["work", "q", "--attempts", "1", "--until-empty", "--"];
    const { code } = await desk.run([...work, "sh", "-c", `cat > "$BATON_KEY"; exit 65`]);
    assert.equal(code, 0);
    assert.equal(desk.read("none"), "");
    assert.equal(desk.read("text"), "grün");
    assert.equal(desk.read("stdin"), "from\nstdin\n");
    assert.equal(desk.read("json"), json);
    assert.equal(desk.read("dash"), "--level");
    assert.deepEqual(desk.bytes("bytes"), input);
    const letters = (await desk.json(["dead", "q", "list"])) as { key: string; payload: object }[];
    const payloads = Object.fromEntries(letters.map(({ key, payload }) => [key, payload]));
    assert.deepEqual(payloads["text"], { type: "text/plain", text: "grün" });
    assert.deepEqual(payloads["bytes"], { type: "application/octet-stream", base64: input.toString("base64") });
    assert.deepEqual(payloads["json"], { type: "application/json", text: json });
  });

  test("the default store is in the data folder, which is made; looking does not make it", async (context) => {
    const desk = new Desk(context);
    const env = { BATON_URL: "", XDG_DATA_HOME: desk.path("data of mine?") };
    const before = await desk.run(["status"], { env });
    assert.match(before.stdout, /^No queues: there is no store yet/);
    const doctor = await desk.run(["doctor"], { env });
    assert.match(doctor.stdout, /does not exist yet/);
    assert.equal(doctor.code, 0);
    assert.deepEqual(desk.list(), []);
    assert.equal((await desk.run(["submit", "cars", "car1"], { env })).code, 0);
    assert.ok(desk.list("data of mine?/baton").includes("baton.db"));
    const { stdout } = await desk.run(["status"], { env });
    assert.match(stdout, /^QUEUE .*\ncars /);
  });
});
