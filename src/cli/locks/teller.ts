import { type BatonEvent, describeWarning, type LockBusy, type LockReport } from "../../index.ts";
import { openStandardError } from "../guard/standard-error.ts";
import { printJson } from "../output.ts";
import { printable, printableLines } from "../printable.ts";
import { roughly } from "../times.ts";

export interface TellerOptions {
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Says what becomes of a lock: to programs on standard output, to people on standard error. */
export class LockTeller {
  readonly #options: TellerOptions;
  readonly #stderr: NodeJS.WritableStream = openStandardError();

  constructor(options: TellerOptions) {
    this.#options = options;
  }

  /** Events of the connection: of these, only warnings are worth a person's while. */
  hear(event: BatonEvent): void {
    const warning = describeWarning(event);
    if (warning !== undefined) this.#stderr.write(`baton: ${printableLines(warning)}\n`);
  }

  /** One event, as fields for a program and as a sentence for people. */
  tell(event: string, fields: object, sentence?: string): void {
    if (this.#options.json) printJson({ event, at: Date.now(), ...fields });
    else if (sentence !== undefined && !this.#options.quiet) this.#stderr.write(`baton: ${printable(sentence)}\n`);
  }

  waiting(name: string, report: LockReport): void {
    const { holders, waiting } = report;
    this.tell("waiting", { lock: name, holders, waiting }, `waiting for lock ${name}${why(report)}`);
  }

  refused({ lock, why: reason, holders }: LockBusy): void {
    this.tell("refused", { lock, why: reason, holders });
  }
}

function why({ holders: [holder], retiredUntil, delayedUntil }: LockReport): string {
  const now = Date.now();
  if (holder !== undefined) return `, held by ${holder.owner} for ${roughly(now - holder.since)}`;
  if (retiredUntil !== undefined) return `, whose work is done, for ${roughly(retiredUntil - now)} more`;
  if (delayedUntil === undefined) return "";
  return `, whose last holder vanished, for ${roughly(delayedUntil - now)} more`;
}
