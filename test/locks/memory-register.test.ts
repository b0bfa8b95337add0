import { describe } from "node:test";
import { systemClock } from "../../src/domain/clock.ts";
import { MemoryCells, MemoryRegister } from "../../src/engines/memory/register.ts";
import { testRegister } from "./register-contract.ts";

const cells = new MemoryCells(systemClock);

describe("the register in memory", () => {
  testRegister({ open: async () => new MemoryRegister(cells), outlived: false, lateMs: 1_000 });
});
