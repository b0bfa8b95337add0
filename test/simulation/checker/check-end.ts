import type { Happening, LastWords } from "../history.ts";
import type { Settings } from "../settings.ts";
import type { StoreModel } from "./store-model.ts";
import type { Findings } from "./violation.ts";

/** When all is over: everything accepted has ended, the store says so too, and nothing lingers. */
export function checkEnd(model: StoreModel, last: LastWords, at: number, findings: Findings): void {
  for (const item of model.items.values()) {
    if (item.key.items.has(item)) {
      findings.add(
        "G4 nothing lost",
        at,
        item.key.name,
        `item ${item.token} (${item.id}) was accepted and never ended: ${item.state}`,
      );
    }
  }
  for (const [id, { found, outcome }] of last.items) {
    const item = model.byId.get(id);
    if (found === item?.state && outcome === item?.state) continue;
    const says = `item ${id} ended ${item?.state ?? "never, for it was not accepted"}; the store found it ${found ?? "nowhere"} with outcome ${outcome ?? "none"}`;
    findings.add("G4 nothing lost", at, item?.key.name, says);
  }
  const { waiting, delayed, running, dead } = last.counts;
  if (!last.drained || waiting + delayed + running > 0 || last.keys.length > 0) {
    const left = `${waiting} waiting, ${delayed} delayed, ${running} running, keys ${last.keys.join(", ")}`;
    findings.add("G6 no blocking", at, undefined, `not drained long after the last fault: ${left}`);
  }
  const deadIds = [...model.items.values()].filter(({ state }) => state === "dead").map(({ id }) => id);
  if (dead !== deadIds.length || !isSameSet(deadIds, last.dead)) {
    findings.add(
      "G4 nothing lost",
      at,
      undefined,
      `dead letters: expected ${deadIds.join(", ")}; found ${last.dead.join(", ")}`,
    );
  }
  for (const what of last.unfinished) findings.add("stop", at, undefined, `never ended: ${what}`);
}

/** What submitters were told agrees with what became of their items. */
export function checkSubmitters(
  happenings: readonly Happening[],
  model: StoreModel,
  settings: Settings,
  findings: Findings,
): void {
  const told = new Set<string>();
  for (const happening of happenings) {
    if (happening.type === "told" && happening.what === "done" && happening.id !== undefined) {
      const { at, process, key, id } = happening;
      if (told.has(id)) findings.add("endings", at, key, `${process} told once more that item ${id} is done`);
      if (model.byId.get(id)?.state !== "done")
        findings.add("endings", at, key, `${process} told that item ${id} is done, and it is not`);
      told.add(id);
    }
    if (happening.type === "outcome") {
      const item = model.byId.get(happening.id);
      if (item?.state === happening.state) continue;
      const says = `somebody was told that ${happening.id} ended ${happening.state}; it ended ${item?.state ?? "never"}`;
      findings.add("G4 nothing lost", happening.at, item?.key.name, says);
    }
    if (happening.type !== "submitted") continue;
    const { at, token, answer } = happening;
    if (!answer.ok) {
      if (model.items.has(token))
        findings.add("G4 nothing lost", at, undefined, `item ${token} was refused and accepted all the same`);
      continue;
    }
    const item = model.byId.get(answer.id);
    const same =
      item !== undefined &&
      item.key.name === answer.key &&
      settings.levels[item.level] === answer.level &&
      item.acceptedAt === answer.acceptedAt &&
      (answer.duplicate || item.token === token);
    if (!same)
      findings.add("G9 idempotent", at, answer.key, `the receipt for ${answer.id} is not that of its first submission`);
  }
}

function isSameSet(a: readonly string[], b: readonly string[]): boolean {
  return new Set(a).size === new Set([...a, ...b]).size && a.length === b.length;
}
