import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import { SCHEMA_VERSION } from "../../src/engines/sqlite/schema.ts";
import { connect } from "../../src/index.ts";
import { Desk, type Refusal, refusal } from "./desk.ts";

describe("a file that Baton cannot use is refused and left as it is", () => {
  test("one of a newer version", async (context) => {
    const desk = new Desk(context);
    await fillStore(desk);
    const db = new DatabaseSync(desk.file);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    db.close();
    await refusedUntouched(desk, "STORE_TOO_NEW", /newer version of Baton.*Upgrade/);
  });

  test("one of a newer version whose last process was killed", async (context) => {
    const desk = new Desk(context);
    await fillStore(desk);
    const db = new DatabaseSync(desk.file);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION + 1}`);
    // What a killed process leaves: the change is in the log only.
    const [file, log] = [readFileSync(desk.file), readFileSync(`${desk.file}-wal`)];
    db.close();
    writeFileSync(desk.file, file);
    writeFileSync(`${desk.file}-wal`, log);
    await refusedUntouched(desk, "STORE_TOO_NEW", /newer version of Baton/);
    assert.deepEqual(readFileSync(`${desk.file}-wal`), log);
  });

  test("one from before the first release", async (context) => {
    const desk = new Desk(context);
    await fillStore(desk);
    const db = new DatabaseSync(desk.file);
    db.exec(`PRAGMA user_version = ${SCHEMA_VERSION - 1}`);
    db.close();
    await refusedUntouched(desk, "STORE_TOO_OLD", /before its first release.*Nothing was changed.*name another file/);
  });

  test("a database of somebody else's", async (context) => {
    const desk = new Desk(context);
    const db = new DatabaseSync(desk.file);
    db.exec("CREATE TABLE customer (name TEXT); INSERT INTO customer VALUES ('Ada')");
    db.close();
    await refusedUntouched(desk, "STORE_CORRUPT", /not one of Baton's.*Nothing was changed/);
    assert.deepEqual(readdirSync(desk.folder), ["store.db"]);
  });

  test("random bytes", async (context) => {
    const desk = new Desk(context);
    writeFileSync(desk.file, randomBytes(10_000));
    await refusedUntouched(desk, "STORE_CORRUPT", /damaged, or is no Baton store/);
    assert.deepEqual(readdirSync(desk.folder), ["store.db"]);
  });

  test("a text", async (context) => {
    const desk = new Desk(context);
    writeFileSync(desk.file, "my notes\n");
    await refusedUntouched(desk, "STORE_CORRUPT", /damaged, or is no Baton store/);
  });

  test("a folder", async (context) => {
    const desk = new Desk(context);
    mkdirSync(desk.file);
    const { code, message } = await refusal(desk.connect());
    assert.equal(code, "STORE_UNAVAILABLE");
    assert.match(message, /is a folder/);
  });
});

test("a file in a folder that is not there is refused, and the folder is not made", async (context) => {
  const desk = new Desk(context);
  const missing = join(desk.folder, "missing", "store.db");
  const { code, message } = await refusal(connect(`sqlite:${missing}`));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(message, /folder exists/);
  assert.equal(existsSync(dirname(missing)), false, "no folder was made");
});

test("an empty file becomes a store", async (context) => {
  const desk = new Desk(context);
  writeFileSync(desk.file, "");
  const baton = await desk.connect();
  await baton.queue("cars").submit("car1", null);
});

describe("a damaged store is reported, not guessed at", () => {
  test("one that was cut off in the middle", async (context) => {
    const desk = new Desk(context);
    await fillStore(desk);
    truncateSync(desk.file, Math.floor(statSync(desk.file).size / 8_192) * 4_096);
    await assertReportedCorrupt(desk);
  });

  test("one with a page of rubbish", async (context) => {
    const desk = new Desk(context);
    await fillStore(desk);
    const bytes = readFileSync(desk.file);
    // The first page only says what the file is; those behind it hold the tables.
    bytes.fill(0xa5, 4_096, 20 * 4_096);
    writeFileSync(desk.file, bytes);
    await assertReportedCorrupt(desk);
  });

  async function assertReportedCorrupt(desk: Desk): Promise<void> {
    const { code, message } = await refusal(useEverything(desk));
    assert.equal(code, "STORE_CORRUPT");
    assert.match(message, /damaged.*restore a backup/);
  }

  /** Damage is met where it is; by the time everything was read it is met. */
  async function useEverything(desk: Desk): Promise<void> {
    const cars = (await desk.connect()).queue("cars");
    await cars.submit("car1", null);
    await cars.keys({ limit: 1_000_000 });
    for (const id of Array.from({ length: ITEMS }, (_, index) => `item${index}`)) await cars.item(id);
  }
});

describe("what may not be written is refused", () => {
  test("a file", async (context) => {
    const desk = await closedDesk(context);
    if (desk === undefined) return;
    chmodSync(desk.folder, 0o777);
    chmodSync(desk.file, 0o444);
    const { code, message } = await desk.start("unprivileged", desk.url).next<Refusal>();
    assert.equal(code, "STORE_READ_ONLY");
    assert.match(message, /cannot be written.*Nothing was changed.*permissions/);
  });

  test("a file in a folder that may not be written", async (context) => {
    const desk = await closedDesk(context);
    if (desk === undefined) return;
    chmodSync(desk.file, 0o666);
    chmodSync(desk.folder, 0o555);
    const { code, message } = await desk.start("unprivileged", desk.url).next<Refusal>();
    assert.ok(code === "STORE_READ_ONLY" || code === "STORE_UNAVAILABLE", String(code));
    assert.match(message, /folder/);
  });

  test("a new file in a folder that may not be written", async (context) => {
    const desk = await closedDesk(context);
    if (desk === undefined) return;
    chmodSync(desk.folder, 0o555);
    const { code } = await desk.start("unprivileged", `${desk.url}2`).next<Refusal>();
    assert.equal(code, "STORE_UNAVAILABLE");
  });

  /** A store that nobody has open, to be looked at by another user: for the one who runs the tests may be root. */
  async function closedDesk(context: TestContext): Promise<Desk | undefined> {
    if (process.platform === "win32") {
      context.skip("permissions are another matter on Windows");
      return undefined;
    }
    if (process.getuid?.() === 0 && (statSync(import.meta.dirname).mode & 0o005) !== 0o005) {
      context.skip("the sources are not readable for the user that a process of root would have to become");
      return undefined;
    }
    const desk = new Desk(context);
    await fillStore(desk);
    return desk;
  }
});

const ITEMS = 500;

/** A store with a few hundred pages, closed. */
async function fillStore(desk: Desk): Promise<void> {
  const baton = await desk.connect();
  const items = Array.from({ length: ITEMS }, (_, index) => ({
    key: `car${index}`,
    payload: "x".repeat(2_000),
    id: `item${index}`,
  }));
  await baton.queue("cars").submitMany(items);
  await baton.close();
}

async function refusedUntouched(desk: Desk, code: string, message: RegExp): Promise<void> {
  const before = readFileSync(desk.file);
  const refused = await refusal(desk.connect());
  assert.equal(refused.code, code);
  assert.match(refused.message, message);
  assert.ok(readFileSync(desk.file).equals(before), "The file is the same, byte for byte");
}
