/** A producer or a worker process: opens the subject, then does one task after the other. */
import { findSubject } from "../subjects.ts";
import type { Client } from "../subject.ts";
import { type Call, type Reply, tasks } from "./tasks.ts";

const [name = "", location = "", exclusive = ""] = process.argv.slice(2);
const subject = await findSubject(name);
const opening = subject.open({ location, exclusive: exclusive === "exclusive" });

async function run({ task, input }: Call): Promise<Reply> {
  try {
    const client = await opening;
    // The main process takes name and input from the same type.
    const todo = tasks[task] as (client: Client, input: unknown) => Promise<unknown>;
    return { ok: true, result: await todo(client, input) };
  } catch (error) {
    return { ok: false, message: error instanceof Error ? error.message : String(error) };
  }
}

process.on("message", (call) => {
  void run(call as Call).then((reply) => process.send?.(reply));
});
// The main process is gone: so is the reason to live, whatever handles are open.
process.on("disconnect", () => process.exit());
