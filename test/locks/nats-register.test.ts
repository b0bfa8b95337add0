import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import type { Register } from "../../src/locks/register.ts";
import { refusal } from "../sqlite/desk.ts";
import { type LossyWire, openLossy, openNats } from "./nats-handles.ts";
import { newName, testRegister, written } from "./register-contract.ts";
import { started } from "../started.ts";

const running = started(() => startNatsServer());

describe("the register of NATS", () => {
  testRegister({
    open: async (context) => (await openNats(context, [running().port])).register,
    async restart() {
      await running().kill();
      await running().restart();
    },
    outlived: true,
    // Servers look for messages whose time is up about once a second.
    lateMs: 3_000,
  });
});

interface Pair {
  readonly register: Register;
  readonly wire: LossyWire;
  /** Another process. */
  readonly other: Register;
}

async function pair(context: TestContext): Promise<Pair> {
  const { engine, wire } = await openLossy(context, [running().port]);
  const { register: other } = await openNats(context, [running().port]);
  // The stream is there before anything is lost.
  await engine.register.read(newName());
  return { register: engine.register, wire, other };
}

const CELL = ".c.cell.test.";

describe("a reply that the register of NATS does not get", () => {
  test("to a creation, a change, a removal: each was made once", async (context) => {
    const { register, wire, other } = await pair(context);
    const name = newName();
    wire.loseReply(CELL);
    const made = written(await register.write({ name, expected: 0, value: "a" }));
    assert.deepEqual(await other.read(name), { name, version: made, value: "a" });
    wire.loseReply(CELL);
    const changed = written(await register.write({ name, expected: made, value: "b", ttlMs: 60_000 }));
    assert.deepEqual(await other.read(name), { name, version: changed, value: "b" });
    wire.loseReply(CELL);
    const removed = written(await register.write({ name, expected: changed, value: undefined }));
    assert.ok(removed > changed);
    assert.equal(await other.read(name), undefined);
    // The tombstone is known, and taken by somebody else meanwhile.
    const taken = written(await other.write({ name, expected: 0, value: "c" }));
    wire.loseReply(CELL);
    assert.equal((await refusal(register.write({ name, expected: 0, value: "d" }))).code, "OUTCOME_UNKNOWN");
    assert.deepEqual(await other.read(name), { name, version: taken, value: "c" });
    assert.equal(wire.lost, 4);
  });

  test("to two tries in a row", async (context) => {
    const { register, wire, other } = await pair(context);
    const name = newName();
    for (const part of [CELL, "DIRECT.GET", CELL]) wire.loseReply(part);
    const made = written(await register.write({ name, expected: 0, value: "a" }));
    assert.equal((await other.read(name))?.version, made);
    assert.equal(wire.lost, 2, "A write that is found to have happened is not tried again");
    wire.forget();
  });

  test("and somebody changes the cell before it is looked at: nobody knows", async (context) => {
    const { register, wire, other } = await pair(context);
    const name = newName();
    const made = written(await register.write({ name, expected: 0, value: "a" }));
    wire.loseReply(CELL, async () => {
      const cell = await other.read(name);
      written(await other.write({ name, expected: cell?.version ?? 0, value: "theirs" }));
    });
    const refused = await refusal(register.write({ name, expected: made, value: "b" }));
    assert.equal(refused.code, "OUTCOME_UNKNOWN");
    assert.equal((await register.read(name))?.value, "theirs");
  });

  test("and somebody removes the cell before it is looked at: nobody knows", async (context) => {
    const { register, wire, other } = await pair(context);
    const name = newName();
    wire.loseReply(CELL, async () => {
      const cell = await other.read(name);
      written(await other.write({ name, expected: cell?.version ?? 0, value: undefined }));
    });
    assert.equal((await refusal(register.write({ name, expected: 0, value: "b" }))).code, "OUTCOME_UNKNOWN");
    assert.equal(await register.read(name), undefined);
  });
});

test("the register of NATS makes its stream when nobody has", async (context) => {
  const { register } = await openNats(context, [running().port], { prefix: "fresh" });
  const name = newName();
  assert.deepEqual(await register.list("test/"), []);
  written(await register.write({ name, expected: 0, value: "a" }));
  assert.equal((await register.list("test/")).length, 1);
});
