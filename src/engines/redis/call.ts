/**
 * One call of the program, put together from what was asked for: its arguments, and who is told what of its answers. Submissions next to each
 * other travel together, whoever asked for them: their terms are then said, read and kept once, and not for each item.
 */
import type { Instant } from "../../domain/clock.ts";
import type { Submission } from "../../engine/port.ts";
import { submitArguments } from "./operations.ts";
import { list } from "./replies.ts";

/** When something was done. */
export interface Moment {
  /** By the clocks of this process, before it was asked for. */
  readonly since: Instant;
  /** By the server's clock, in milliseconds. */
  readonly at: number;
}

export interface Operation {
  readonly what: string;
  readonly args: readonly string[];
  /** How much it asks for; by default one. */
  readonly entries?: number;
  /** It makes the store larger, which a store that is full refuses. */
  readonly grows?: boolean;
  /** It changes nothing, and is asked again when its reply was lost. */
  readonly looks?: boolean;
  /** It is sent in a call of its own, in which nothing comes after it. */
  readonly alone?: boolean;
  /** It submits these. */
  readonly submissions?: readonly Submission[];
  readonly answer: (result: unknown, moment: Moment) => void;
  readonly fail: (error: unknown) => void;
}

export interface Call {
  readonly args: readonly string[];
  tell(results: readonly unknown[], moment: Moment): void;
}

export function makeCall(operations: readonly Operation[], levels: readonly string[]): Call {
  const args: string[] = [];
  const parts: Part[] = [];
  let together: Submissions | undefined;
  const finish = (): void => {
    if (together !== undefined) for (const one of together.arguments(levels)) args.push(one);
    together = undefined;
  };
  for (const operation of operations) {
    if (operation.submissions === undefined) {
      finish();
      for (const one of operation.args) args.push(one);
      parts.push({ count: 1, tell: ([result], moment) => operation.answer(result, moment) });
    } else {
      if (together === undefined) parts.push((together = new Submissions()));
      together.add(operation, operation.submissions);
    }
  }
  finish();
  return {
    args,
    tell(results, moment) {
      let at = 0;
      for (const part of parts) part.tell(results.slice(at, (at += part.count)), moment);
    },
  };
}

interface Part {
  /** How many answers are its own. */
  readonly count: number;
  tell(results: readonly unknown[], moment: Moment): void;
}

class Submissions implements Part {
  readonly #operations: Operation[] = [];
  readonly #submissions: Submission[] = [];
  count = 0;

  add(operation: Operation, submissions: readonly Submission[]): void {
    this.#operations.push(operation);
    for (const one of submissions) this.#submissions.push(one);
  }

  arguments(levels: readonly string[]): readonly string[] {
    const groups = submitArguments(this.#submissions, levels);
    this.count = groups.length;
    return groups.flat();
  }

  tell(results: readonly unknown[], moment: Moment): void {
    const answers = results.flatMap(list);
    let at = 0;
    for (const { submissions = [], answer } of this.#operations)
      answer(answers.slice(at, (at += submissions.length)), moment);
  }
}
