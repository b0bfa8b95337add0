import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lockCases } from "../../src/conformance/index.ts";
import { systemClock } from "../../src/domain/clock.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";
import { MemoryCells, MemoryRegister } from "../../src/engines/memory/register.ts";
import { addLockTests } from "./add-lock-tests.ts";
import { registerTarget } from "./register-target.ts";

// State in memory cannot outlive its process: a restart shows that nothing depends on the connection.
const restart = async (): Promise<void> => undefined;

const cells = new MemoryCells(systemClock);
addLockTests(
  "locks in memory",
  registerTarget({ name: "memory", openRegister: async () => new MemoryRegister(cells), restart }),
);

const store = new MemoryStore();
const ofEngine = "The engine's own connection has no place for troubles; the cases run on its register.";
addLockTests("locks of the memory engine", {
  name: "memory engine",
  open: async () => store.connect().locks(),
  crash: ofEngine,
  loseReply: ofEngine,
  restart,
});

describe("the cases of locks", () => {
  test("their names differ", () => {
    const names = lockCases.map(({ name }) => name);
    assert.equal(new Set(names).size, names.length);
  });
});
