import type { WakeCase } from "./case.ts";
import { budgeted } from "./cases/budgeted.ts";
import { heard } from "./cases/heard.ts";
import { lasting } from "./cases/lasting.ts";
import { shared } from "./cases/shared.ts";

/** All of it. A carrier passes every case, or says in its documentation which one it leaves out, and why. */
export const wakeCases: readonly WakeCase[] = [...heard, ...budgeted, ...shared, ...lasting];
