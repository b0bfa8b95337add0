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

/** What is told of some of the answers. */
interface Part {
  /** How many answers are its own. */
  readonly count: number;
  readonly tell: (results: readonly unknown[], moment: Moment) => void;
}

export function makeCall(operations: readonly Operation[], levels: readonly string[]): Call {
  const args: string[] = [];
  const parts: Part[] = [];
  let submitting: Operation[] = [];
  const push = (asked: readonly string[]): void => {
    args.push(asked[0] ?? "", String(asked.length - 1));
    for (let at = 1; at < asked.length; at += 1) args.push(asked[at] ?? "");
  };
  const finish = (): void => {
    if (submitting.length === 0) return;
    const groups = submitArguments(
      submitting.flatMap(({ submissions = [] }) => submissions),
      levels,
    );
    for (const group of groups) push(group);
    parts.push(submissionsPart(submitting, groups.length));
    submitting = [];
  };
  for (const operation of operations) {
    if (operation.submissions !== undefined) submitting.push(operation);
    else {
      finish();
      push(operation.args);
      parts.push({ count: 1, tell: ([result], moment) => operation.answer(result, moment) });
    }
  }
  finish();
  return {
    args,
    tell(results, moment) {
      let at = 0;
      for (const { count, tell } of parts) tell(results.slice(at, (at += count)), moment);
    },
  };
}

function submissionsPart(operations: readonly Operation[], count: number): Part {
  return {
    count,
    tell(results, moment) {
      const answers = results.flatMap(list);
      let at = 0;
      for (const { submissions = [], answer } of operations)
        answer(answers.slice(at, (at += submissions.length)), moment);
    },
  };
}
