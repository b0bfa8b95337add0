/** Locks on a real server, whose connections lose replies, break and fall silent. */
import { after } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import type { Locks } from "../../src/locks/port.ts";
import { started } from "../started.ts";
import { addLockTests } from "./add-lock-tests.ts";
import { connectLossy, type LossyHandle } from "./nats-handles.ts";

const handles = new Map<Locks, LossyHandle>();
after(() => Promise.allSettled(Array.from(handles.values(), ({ engine }) => engine.close())));
const running = started(() => startNatsServer());

function handleOf(locks: Locks): LossyHandle {
  const handle = handles.get(locks);
  if (handle === undefined) throw new Error("These locks were not opened here.");
  return handle;
}

addLockTests("locks on NATS", {
  name: "nats",
  async open() {
    const handle = await connectLossy([running().port]);
    handles.set(handle.engine.locks(), handle);
    return handle.engine.locks();
  },
  async crash(locks) {
    handleOf(locks).wire.kill();
  },
  loseReply: (locks) => handleOf(locks).wire.loseReply(".c.cell."),
  async restart() {
    await running().kill();
    await running().restart();
  },
  // Servers count in whole seconds, and look for what is over once a second.
  leaseMs: 2_000,
  slackMs: 8_000,
});
