import type { SourceCase } from "./case.ts";
import { kept } from "./cases/kept.ts";
import { ordered } from "./cases/ordered.ts";
import { received } from "./cases/received.ts";
import { settled } from "./cases/settled.ts";

/** All of it. A source passes every case, or says which one it leaves out, and why. */
export const sourceCases: readonly SourceCase[] = [...received, ...kept, ...settled, ...ordered];
