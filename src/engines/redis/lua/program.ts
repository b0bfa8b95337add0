import { CLAIM } from "./claim.ts";
import { ENDINGS } from "./endings.ts";
import { INSPECT } from "./inspect.ts";
import { LEASES } from "./leases.ts";
import { LINE } from "./line.ts";
import { MAIN } from "./main.ts";
import { OPERATE } from "./operate.ts";
import { SETTLE } from "./settle.ts";
import { STORE } from "./store.ts";
import { SUBMIT } from "./submit.ts";

/** Everything that is done to a queue, in one script: whatever is asked for at a time is done in one step. */
export const QUEUE_PROGRAM: string = [STORE, LINE, ENDINGS, LEASES, SETTLE, SUBMIT, CLAIM, INSPECT, OPERATE, MAIN].join(
  "",
);
