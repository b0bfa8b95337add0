import { CLAIM } from "./claim.ts";
import { ENDINGS } from "./endings.ts";
import { INSPECT } from "./inspect.ts";
import { LEASES } from "./leases.ts";
import { LINE } from "./line.ts";
import { MAIN } from "./main.ts";
import { OPERATE } from "./operate.ts";
import { RUNS } from "./runs.ts";
import { SETTLE } from "./settle.ts";
import { STORE } from "./store.ts";
import { SUBMIT } from "./submit.ts";

const WORK = [STORE, LINE, ENDINGS, RUNS, LEASES, SETTLE, SUBMIT, CLAIM].join("");

/** What work consists of: submit, claim, hold, renew, settle. Whatever is asked for at a time is done in one step. */
export const WORK_PROGRAM: string = `${WORK}${MAIN}`;

/** The same, and everything else that can be asked of a queue. Its own, because each call pays for what it could do. */
export const WHOLE_PROGRAM: string = `${WORK}${INSPECT}${OPERATE}${MAIN}`;
