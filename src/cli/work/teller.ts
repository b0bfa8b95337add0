import { describeWarning, type Item, type QueueReport, type StopReport, type BatonEvent } from "../../index.ts";
import { openStandardError } from "../guard/standard-error.ts";
import { printJson } from "../output.ts";
import { printable, printableLines, summary } from "../printable.ts";
import { roughly } from "../times.ts";

export interface TellerOptions {
  readonly json: boolean;
  readonly quiet: boolean;
}

/** Says what a worker does: to programs on standard output, to people on standard error. */
export class WorkTeller {
  readonly #options: TellerOptions;
  readonly #stderr: NodeJS.WritableStream = openStandardError();
  /** Somebody is watching. A log has what went wrong, and is not filled with what went well. */
  readonly #watched: boolean = process.stderr.isTTY;

  constructor(options: TellerOptions) {
    this.#options = options;
  }

  tell(event: BatonEvent): void {
    if (this.#options.json) printJson(eventFields(event));
    const warning = describeWarning(event);
    if (warning !== undefined) this.#write(`baton: ${printableLines(warning)}`);
    else if (!this.#options.json && !this.#options.quiet) this.#tellPeople(event);
  }

  started(report: QueueReport, worker: string): void {
    const { queue, waiting, delayed, running, paused } = report;
    const at = Date.now();
    if (this.#options.json) printJson({ event: "waiting", at, queue, worker, waiting, delayed, running, paused });
    this.say(`working on ${queue} as ${printable(worker)}: ${stateOf(report)}. Ctrl-C stops.`);
    if (paused) this.say(`queue ${queue} is paused: nothing begins until baton resume ${queue}`);
  }

  /** The queue was not there before. It may be misspelt: the sentence says what else may have been meant. */
  made(queue: string, others = ""): void {
    if (this.#options.json) printJson({ event: "queue-made", at: Date.now(), queue });
    const undo = `If the name is a mistake: baton queue delete ${queue}`;
    this.say(["this made the queue: there was none of that name.", others, undo].filter(Boolean).join(" "));
  }

  stopped(report: StopReport): void {
    if (this.#options.json) printJson({ event: "stopped", at: Date.now(), ...report });
  }

  say(text: string): void {
    if (!this.#options.quiet && !this.#options.json) this.#write(`baton: ${text}`);
  }

  #tellPeople(event: BatonEvent): void {
    switch (event.type) {
      case "started":
        return this.#watched ? this.#line("started", event.item, `attempt ${event.item.attempt}`) : undefined;
      case "done":
      case "released":
        return this.#watched ? this.#line(event.type, event.item) : undefined;
      case "cancelling":
      case "cancelled":
        return this.#line(event.type, event.item);
      case "retry":
        return this.#line("retry", event.item, `in ${roughly(event.delayMs)}: ${summary(event.failure.message)}`);
      case "dead":
        return this.#line("dead", event.item, `after attempt ${event.item.attempt}: ${summary(event.failure.message)}`);
      case "lost":
        return this.#line(
          "lost",
          event.item,
          event.why === "taken" ? "the store no longer has the lease" : "the lease ran out",
        );
      case "discarded":
        return this.#line("discarded", event.item, "its handler ended after the lease was lost");
      case "wakes-back":
        return this.#write(`baton: wake-ups are carried again, after ${roughly(event.afterMs)}`);
      case "result-not-kept":
      case "wakes-lost":
      case "stalled":
      case "trouble":
      case "recovered":
      case "failed":
      case "locked":
      case "unlocked":
      case "lock-lost":
      case "lock-foreign":
      case "session-lost":
      case "session-stalled":
      case "elected":
      case "deposed":
        return undefined;
    }
  }

  #line(what: string, item: Item, more = ""): void {
    this.#write(`${what.padEnd(9)} ${printable(item.key)}  ${printable(item.id)}  ${more}`.trimEnd());
  }

  #write(line: string): void {
    this.#stderr.write(`${line}\n`);
  }
}

function stateOf({ waiting, delayed, running }: QueueReport): string {
  if (waiting + delayed + running === 0) return "it is empty, and waits for items";
  return `${waiting} waiting, ${delayed} delayed, ${running} running`;
}

/** One event as JSON: what happened, when, and the item without its payload. */
function eventFields(event: BatonEvent): object {
  const { type, ...rest } = event;
  const at = Date.now();
  if ("error" in rest) {
    const { error, ...more } = rest;
    return { event: type, at, ...more, message: error instanceof Error ? error.message : String(error) };
  }
  if (!("item" in rest)) return { event: type, at, ...rest };
  const { item, ...more } = rest;
  const { queue, key, id, level, attempt } = item;
  return { event: type, at, queue, key, id, level, attempt, ...more };
}
