/** The part of the rule about ids that is about every item: it is what its receipt says, and is given out as that. */
import type { SubmitAnswered } from "../../history/fact.ts";
import type { Evidence, Submitted } from "../evidence.ts";
import type { Lease } from "../lease.ts";
import type { Violation } from "../violation.ts";

export function receipts(evidence: Evidence): readonly Violation[] {
  const { submitted, leases, time } = evidence;
  /** By the id that the store gave. */
  const given = new Map<string, Submitted>();
  const found: Violation[] = [];
  for (const one of submitted.values()) {
    if (one.isCopy) continue;
    for (const answer of one.answers) {
      const { receipt } = answer;
      if (receipt === undefined) continue;
      const other = given.get(receipt.id);
      const text =
        wrong(one, receipt) ??
        (other === undefined || other === one ? undefined : `has the same id as the one for ${other.item}`);
      given.set(receipt.id, other ?? one);
      if (text !== undefined) found.push(told(one, answer, text, time));
    }
  }
  return [...found, ...leases.flatMap((lease) => otherwise(lease, submitted.get(lease.item), time))];
}

function wrong({ id, key, level }: Submitted, receipt: NonNullable<SubmitAnswered["receipt"]>): string | undefined {
  if (id !== undefined && receipt.id !== id) return `names the id ${receipt.id}, not ${id}`;
  if (receipt.key !== key) return `names ${receipt.key}`;
  if (receipt.level !== level) return `names the level ${receipt.level}, not ${level}`;
  // With an id it may have been submitted before, without an answer.
  if (id === undefined && receipt.duplicate) return "says that it was known, although it has no id";
  return undefined;
}

function told(one: Submitted, { at }: SubmitAnswered, text: string, time: Evidence["time"]): Violation {
  return {
    rule: "ids",
    key: one.key,
    at,
    text: `The receipt for ${one.item} of ${one.key} (${time(at)}) ${text}.`,
  };
}

/** Given out as something else than what was submitted. */
function otherwise(lease: Lease, one: Submitted | undefined, time: Evidence["time"]): readonly Violation[] {
  if (one === undefined) return [];
  const id = one.id ?? one.answers.find(({ receipt }) => receipt !== undefined)?.receipt?.id ?? lease.id;
  const differences = [
    { found: lease.key, expected: one.key },
    { found: lease.level, expected: one.level },
    { found: lease.id, expected: id },
  ].flatMap(({ found, expected }) => (found === expected ? [] : [`${found}, not ${expected}`]));
  if (differences.length === 0) return [];
  const text =
    `${lease.by} was given ${lease.item} at ${time(lease.grantedAt)} (fence ${lease.fence}) as something else than what was ` +
    `submitted: ${differences.join("; ")}.`;
  return [{ rule: "ids", key: lease.key, at: lease.grantedAt, text }];
}
