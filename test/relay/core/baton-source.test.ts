/** Baton queues as sources of the relay: on a memory store, and on a file that several handles share. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";
import { systemClock } from "../../../src/domain/clock.ts";
import { MemoryStore } from "../../../src/engines/memory/index.ts";
import { connect } from "../../../src/index.ts";
import { addSourceTests } from "./add-source-tests.ts";
import { batonTarget } from "./baton-target.ts";

/** A lease that is kept over a thread must outlive what a busy machine makes of a second. */
const SLOW_STORE_HOLD_MS = 2_500;

const memory = new MemoryStore({ clock: systemClock });
addSourceTests(
  "a queue in memory",
  batonTarget("memory", () => connect(memory.connect())),
);

const folder = await mkdtemp(join(tmpdir(), "baton-relay-"));
after(() => rm(folder, { recursive: true, force: true }));
addSourceTests(
  "a queue in SQLite",
  batonTarget("sqlite", () => connect(`sqlite:${join(folder, "work.db")}?synchronous=off`), SLOW_STORE_HOLD_MS),
);
