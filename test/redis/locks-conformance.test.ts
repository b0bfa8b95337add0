import { startRedisServer } from "../../servers/redis-server.ts";
import type { Register } from "../../src/locks/register.ts";
import { addLockTests } from "../locks/add-lock-tests.ts";
import { registerTarget } from "../locks/register-target.ts";
import { openRedis } from "./handles.ts";
import { started } from "../started.ts";

const running = started(() => startRedisServer());

/** A handle of its own for each, as every process has one: it ends with its register. */
async function openRegister(): Promise<Register> {
  const engine = await openRedis(running().url);
  const { register } = engine;
  return {
    read: (name) => register.read(name),
    write: (request) => register.write(request),
    watch: (name, changed) => register.watch(name, changed),
    listen: (name, told) => register.listen(name, told),
    list: (prefix) => register.list(prefix),
    close: () => engine.close(),
  };
}

async function restart(): Promise<void> {
  await running().kill();
  await running().restart();
}

// Long enough for a process that is kept waiting by others to get into line within one.
const times = { leaseMs: 2_500, slackMs: 8_000 };
addLockTests("locks on Redis", registerTarget({ name: "redis", openRegister, restart, ...times }), { concurrency: 12 });
