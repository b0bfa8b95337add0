import { describeFailure, isFatal, retryAfterMs } from "../../domain/failure.ts";
import { DONE, type Outcome, shorten } from "../outcome.ts";
import type { FunctionSettings, RelayHandler, RelayMessage } from "../settings.ts";
import type { Processor } from "./processor.ts";

/** Runs a function of the program that the relay is part of. */
export function functionProcessor({ run }: FunctionSettings): Processor {
  return {
    most: Infinity,
    room: Infinity,
    openCircuits: [],
    unreachable: [],
    process: (message) => call(run, message),
    close: () => Promise.resolve(),
  };
}

async function call(run: RelayHandler, message: RelayMessage): Promise<Outcome> {
  try {
    await run(message);
    return DONE;
  } catch (thrown) {
    const reason = shorten(describeFailure(thrown).message);
    if (isFatal(thrown)) return { type: "dead", reason };
    const delayMs = retryAfterMs(thrown);
    return delayMs === undefined ? { type: "retry", reason } : { type: "retry", reason, delayMs };
  }
}
