/**
 * Imported by every entry point before anything else, for what it does: an older Node would stop much later, at the first thing that
 * it does not have, and name only that ("No such built-in module: node:sqlite").
 */
import { BatonError } from "./errors.ts";

/** As package.json has it under `engines`, and the command in `cli/main.ts`, which imports nothing before it knows. */
const NEEDED = 24;
const found: string = process.versions.node;

if (Number.parseInt(found, 10) < NEEDED) {
  throw new BatonError(
    "NODE_TOO_OLD",
    `Baton needs Node ${NEEDED} or newer; this is Node ${found} (${process.execPath}). Nothing was done. ` +
      `Install Node ${NEEDED} from https://nodejs.org or with your version manager.`,
  );
}
