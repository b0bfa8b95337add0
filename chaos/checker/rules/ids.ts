import type { Evidence, Submitted } from "../evidence.ts";
import type { Violation } from "../violation.ts";
import { receipts } from "./receipts.ts";

export function ids(evidence: Evidence): readonly Violation[] {
  const named = [...evidence.submitted.values()].filter(({ id }) => id !== undefined);
  const ofIds = [...Map.groupBy(named, ({ id }) => id ?? "")].flatMap(([id, same]) =>
    twoItems(id, same, evidence).concat(twoReceipts(id, same, evidence)),
  );
  return [...ofIds, ...receipts(evidence)];
}

/** Whatever was submitted under one id, one of them runs. */
function twoItems(id: string, same: readonly Submitted[], { leasesByItem, time }: Evidence): readonly Violation[] {
  const [first, second] = same.flatMap(({ item }) => leasesByItem.get(item)?.slice(0, 1) ?? []);
  if (first === undefined || second === undefined) return [];
  const text =
    `Two items ran under the id ${id}: ${first.item} was given to ${first.by} at ${time(first.grantedAt)}, ` +
    `and ${second.item} to ${second.by} at ${time(second.grantedAt)}.`;
  return [{ rule: "ids", key: second.key, at: second.grantedAt, text }];
}

/** After the first yes, everybody who comes with the id hears of the same item, and that it is known. */
function twoReceipts(id: string, same: readonly Submitted[], { time }: Evidence): readonly Violation[] {
  const yes = same
    .flatMap(({ answers }) => answers)
    .filter(({ outcome }) => outcome === "ok")
    .toSorted((a, b) => a.at - b.at);
  const [first] = yes;
  if (first?.receipt === undefined) return [];
  const { receipt } = first;
  const sentAt = new Map(same.map((one) => [one.item, one.sentAt]));
  return yes.slice(1).flatMap((answer) => {
    const other = answer.receipt;
    if (other === undefined) return [];
    const isSame = other.id === receipt.id && other.key === receipt.key && other.level === receipt.level;
    const isAfter = (sentAt.get(answer.item) ?? 0) > first.at;
    if (isSame && (other.duplicate || !isAfter)) return [];
    const text =
      `The id ${id} was accepted at ${time(first.at)} (${receipt.key}, ${receipt.level}) and again at ${time(answer.at)} ` +
      `(${other.key}, ${other.level}), ${other.duplicate ? "as if it had been another item" : "as a new item"}.`;
    return [{ rule: "ids" as const, key: other.key, at: answer.at, text }];
  });
}
