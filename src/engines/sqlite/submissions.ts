import type { Submission, SubmitResult } from "../../engine/port.ts";
import { haveSameTerms, refusalOf } from "../../engine/submissions.ts";
import { assignedId } from "./assigned-id.ts";
import type { SubmitAnswer, SubmitEntry, SubmitGroup, SubmitTerms } from "./messages.ts";
import type { ThreadLink } from "./thread-link.ts";

/** So many are sent at once, without waiting for the end of the turn: the thread works while others are prepared. */
const SEND_EARLY = 64;

interface Waiting {
  readonly count: number;
  readonly resolve: (results: readonly SubmitResult[]) => void;
  readonly reject: (error: unknown) => void;
}

/** Submissions of one turn of the event loop travel as one call: most have the same terms, which are then sent once. */
export class Submissions {
  readonly #link: ThreadLink;
  #gathered: Submission[] = [];
  #waiting: Waiting[] = [];
  #sendScheduled = false;

  constructor(link: ThreadLink) {
    this.#link = link;
  }

  submit(submissions: readonly Submission[]): Promise<readonly SubmitResult[]> {
    return new Promise((resolve, reject) => {
      for (const submission of submissions) this.#gathered.push(submission);
      this.#waiting.push({ count: submissions.length, resolve, reject });
      if (this.#gathered.length >= SEND_EARLY) this.send(true);
      else if (!this.#sendScheduled) {
        this.#sendScheduled = true;
        setImmediate(() => {
          this.#sendScheduled = false;
          this.send(true);
        });
      }
    });
  }

  /** Puts what was gathered in line; `now` also sees it off. */
  send(now = false): void {
    if (this.#waiting.length === 0) return;
    const gathered = this.#gathered;
    const waiting = this.#waiting;
    this.#gathered = [];
    this.#waiting = [];
    const groups = groupByTerms(gathered);
    const call = now ? this.#link.callNow("submit", groups) : this.#link.call("submit", groups);
    call.then(
      ({ at, answers }) => {
        let from = 0;
        for (const { count, resolve } of waiting) {
          const to = from + count;
          resolve(gathered.slice(from, to).map((submission, index) => resultOf(submission, answers[from + index], at)));
          from = to;
        }
      },
      (error: unknown) => {
        for (const { reject } of waiting) reject(error);
      },
    );
  }
}

const NOTHING: readonly string[] = [];

function resultOf(submission: Submission, answer: SubmitAnswer | undefined, at: number): SubmitResult {
  if (answer === undefined) throw new Error("The store did not answer to every submission.");
  if (typeof answer === "number") {
    const { key, level, id = assignedId(answer) } = submission;
    return { ok: true, accepted: { id, key, level, at, duplicate: false, replaced: NOTHING } };
  }
  return "id" in answer ? { ok: true, accepted: answer } : { ok: false, error: refusalOf(submission, ...answer) };
}

/** Submissions in a row with the same terms travel together. */
function groupByTerms(submissions: readonly Submission[]): readonly SubmitGroup[] {
  const groups: (readonly [SubmitTerms, SubmitEntry[]])[] = [];
  let first: Submission | undefined;
  let entries: SubmitEntry[] = [];
  for (const submission of submissions) {
    if (first === undefined || !haveSameTerms(submission, first)) {
      first = submission;
      entries = [];
      groups.push([termsOf(first), entries]);
    }
    const { key, payload, id, headers } = submission;
    entries.push([key, ownBytes(payload.body), id, headers === undefined ? undefined : JSON.stringify(headers)]);
  }
  return groups;
}

function termsOf({ queue, level, payload, delayMs, mode, keyLimit, queueLimit, keepMs }: Submission): SubmitTerms {
  return { queue, level, type: payload.type, delayMs, mode, keyLimit, queueLimit, keepMs };
}

/** A view of a larger buffer would be sent with all of that buffer. */
function ownBytes(body: string | Uint8Array): string | Uint8Array {
  return typeof body === "string" || body.byteLength === body.buffer.byteLength ? body : new Uint8Array(body);
}
