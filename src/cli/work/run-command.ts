import type { HeldLease, WorkItem } from "../../index.ts";
import type { Guard } from "../guard/guard.ts";
import { failureOf } from "./command-failure.ts";

/** Between SIGTERM and SIGKILL. The guard makes it shorter when the lease ends sooner: exclusivity goes first. */
const KILL_AFTER_MS = 5_000;

export interface Command {
  readonly command: string;
  readonly commandArguments: readonly string[];
  readonly fatalCodes: ReadonlySet<number>;
}

/** The handler of `baton work`: one run of the command for one item. */
export async function runCommand(
  guard: Guard,
  { command, commandArguments, fatalCodes }: Command,
  item: WorkItem<unknown>,
  lease: HeldLease,
): Promise<void> {
  lease.check();
  const input = typeof item.body === "string" ? Buffer.from(item.body) : item.body;
  const request = { command, commandArguments, environment: environmentOf(item, lease), input };
  const end = await guard.run(request, lease, KILL_AFTER_MS);
  const failure = failureOf(end, command, fatalCodes);
  if (failure !== undefined) throw failure;
}

function environmentOf(item: WorkItem<unknown>, lease: HeldLease): Record<string, string> {
  return {
    BATON_QUEUE: item.queue,
    BATON_KEY: item.key,
    BATON_ID: item.id,
    BATON_LEVEL: item.level,
    BATON_ATTEMPT: String(item.attempt),
    BATON_FENCE: String(lease.fence),
  };
}
