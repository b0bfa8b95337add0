/** What the program can be asked for, as it wants its arguments: see `lua/main.ts`. */
import { briefFailure, type Failure } from "../../domain/failure.ts";
import type { Body, Payload } from "../../domain/payload.ts";
import type { Ending, Renewal, Settlement, Submission } from "../../engine/port.ts";
import { haveSameTerms } from "../../engine/submissions.ts";

/** A text, or bytes as base64: replies are text. */
export function writeBody(body: Body): { readonly form: string; readonly text: string } {
  if (typeof body === "string") return { form: "t", text: body };
  return { form: "b", text: Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString("base64") };
}

export function readPayload(kind: string, form: string, text: string): Payload {
  return { type: kind, body: form === "b" ? new Uint8Array(Buffer.from(text, "base64")) : text };
}

/** Submissions in a row with the same terms travel together. */
export function submitArguments(submissions: readonly Submission[], levels: readonly string[]): readonly string[][] {
  const groups: Submission[][] = [];
  for (const one of submissions) {
    const group = groups.at(-1);
    if (group?.[0] !== undefined && haveOneForm(group[0], one)) group.push(one);
    else groups.push([one]);
  }
  return groups.flatMap((group) => (group[0] === undefined ? [] : [groupArguments(group[0], group, levels)]));
}

function groupArguments(terms: Submission, group: readonly Submission[], levels: readonly string[]): string[] {
  const { level, payload, delayMs, mode, keyLimit, queueLimit, keepMs, id, headers } = terms;
  const args = [
    "submit",
    String(group.length),
    String(levels.indexOf(level) + 1),
    payload.type,
    typeof payload.body === "string" ? "t" : "b",
    microseconds(delayMs),
    mode,
    String(Math.min(keyLimit, Number.MAX_SAFE_INTEGER)),
    String(Math.min(queueLimit, Number.MAX_SAFE_INTEGER)),
    String(Math.ceil(keepMs)),
    id === undefined ? "0" : "1",
    headers === undefined ? "0" : "1",
  ];
  for (const one of group) {
    args.push(one.key, typeof one.payload.body === "string" ? one.payload.body : writeBody(one.payload.body).text);
    if (id !== undefined) args.push(one.id ?? "");
    if (headers !== undefined) args.push(JSON.stringify(one.headers));
  }
  return args;
}

function haveOneForm(one: Submission, other: Submission): boolean {
  return (
    haveSameTerms(one, other) &&
    typeof one.payload.body === typeof other.payload.body &&
    (one.id === undefined) === (other.id === undefined) &&
    (one.headers === undefined) === (other.headers === undefined)
  );
}

export function settleArguments(settlements: readonly Settlement[]): string[] {
  return reportArguments("settle", settlements, (args, { ending }) => pushEnding(args, ending));
}

export function renewArguments(renewals: readonly Renewal[]): string[] {
  return reportArguments("renew", renewals, (args, { leaseMs, progress }) =>
    args.push(microseconds(leaseMs), progress === undefined ? "" : String(progress)),
  );
}

/** The keys, then what is said of the lease of each. */
function reportArguments<R extends Renewal | Settlement>(
  name: string,
  reports: readonly R[],
  pushTerms: (args: string[], report: R) => void,
): string[] {
  const args = [name, String(reports.length), ...reports.map(({ lease }) => lease.key)];
  for (const report of reports) {
    const { lease, ended } = report;
    args.push(String(lease.fence));
    if (ended !== undefined) args.push("ended", String(ended.length));
    for (const { id, ending } of ended ?? []) {
      args.push(id);
      pushEnding(args, ending);
    }
    pushTerms(args, report);
  }
  return args;
}

function pushEnding(args: string[], ending: Ending): void {
  switch (ending.type) {
    case "done": {
      if (ending.resultMissing !== undefined) return void args.push("missing", ending.resultMissing);
      if (ending.result === undefined) return void args.push("done");
      const { form, text } = writeBody(ending.result.body);
      return void args.push("result", ending.result.type, form, text);
    }
    case "retry":
      return void args.push("retry", microseconds(ending.delayMs), ending.place, briefOf(ending.failure));
    case "dead":
      return void args.push("dead", JSON.stringify(ending.failure), briefOf(ending.failure));
    case "cancelled":
    case "release":
      return void args.push(ending.type);
  }
}

/** As the history of attempts has it. */
function briefOf(failure: Failure): string {
  return JSON.stringify(briefFailure(failure));
}

/** Longer than any store lives, and still exact. */
const LONGEST_US = 4e15;

export function microseconds(ms: number): string {
  return String(Math.min(Math.ceil(ms * 1_000), LONGEST_US));
}
