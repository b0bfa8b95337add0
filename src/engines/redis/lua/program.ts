import { CLAIM } from "./claim.ts";
import { ENDINGS } from "./endings.ts";
import { INSPECT } from "./inspect.ts";
import { LEASES } from "./leases.ts";
import { LINE } from "./line.ts";
import { MAIN } from "./main.ts";
import { OPERATE } from "./operate.ts";
import { RUNS } from "./runs.ts";
import { SETTLE } from "./settle.ts";
import { KEY_FIELDS, STORE } from "./store.ts";
import { SUBMIT } from "./submit.ts";

const WORK = [STORE, LINE, ENDINGS, RUNS, LEASES, SETTLE, SUBMIT, CLAIM].join("");

/** What work consists of: submit, claim, hold, renew, settle. Whatever is asked for at a time is done in one step. */
export const WORK_PROGRAM: string = withPlaces(`${WORK}${MAIN}`);

/** The same, and everything else that can be asked of a queue. Its own, because each call pays for what it could do. */
export const WHOLE_PROGRAM: string = withPlaces(`${WORK}${INSPECT}${OPERATE}${MAIN}`);

/** `k.head` is the field of a key, `FIELD.head` its place. */
function withPlaces(program: string): string {
  return program.replaceAll(/\b(k|FIELD)\.(\w+)/g, (written, table, field) => {
    const place = KEY_FIELDS.indexOf(String(field)) + 1;
    if (place === 0) throw new TypeError(`No key has the field of ${written}.`);
    return table === "k" ? `k[${place}]` : String(place);
  });
}
