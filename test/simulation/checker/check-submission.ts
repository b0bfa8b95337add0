import type { Happening, StoreSubmission, SubmitAnswer } from "../history.ts";
import type { Settings } from "../settings.ts";
import type { ModelItem, StoreModel } from "./store-model.ts";
import type { Findings } from "./violation.ts";

type AcceptedAnswer = Extract<SubmitAnswer, { ok: true }>;

/** One submission at the store: a known id, a justified refusal, or a new item. */
export function checkSubmission(
  model: StoreModel,
  settings: Settings,
  findings: Findings,
  { at, wall }: Extract<Happening, { type: "store-submit" }>,
  entry: StoreSubmission,
): void {
  const { answer, token, id, key: keyName } = entry;
  if (answer === undefined) return;
  const known = id === undefined ? undefined : model.byId.get(id);
  if (known !== undefined) {
    if (!answer.ok || !isReceiptOf(answer, known, settings)) {
      findings.add("G9 idempotent", at, keyName, `id ${known.id} was known, but its first receipt did not come back`);
    }
    return;
  }
  const key = model.key(keyName);
  const behind = model.behind(key);
  const replaceable = behind.filter((item) => !model.isCovered(item));
  const expected = expectedRefusal(model, settings, entry, { behind: behind.length, replaceable: replaceable.length });
  if (!answer.ok) {
    if (answer.code !== expected) {
      findings.add(
        "G10 bounded",
        at,
        keyName,
        `item ${token} was refused with ${answer.code}, expected ${expected ?? "none"}`,
      );
    }
    return;
  }
  if (expected !== undefined)
    findings.add("G10 bounded", at, keyName, `item ${token} was accepted instead of ${expected}`);
  if (answer.duplicate) findings.add("G9 idempotent", at, keyName, `new item ${token} was called a duplicate`);
  const replaced = entry.mode === "latest" ? replaceable : [];
  const wrong =
    answer.replaced.length !== replaced.length || replaced.some((item) => !answer.replaced.includes(item.id));
  if (wrong) findings.add("G4 nothing lost", at, keyName, `item ${token} replaced others than those that waited`);
  for (const item of replaced) model.end(item, "replaced");
  model.accept({
    token,
    id: answer.id,
    key,
    level: settings.levels.indexOf(entry.level),
    order: model.items.size,
    kept: entry.kept,
    acceptedAt: answer.acceptedAt,
    delayed: entry.delayMs > 0,
    state: entry.delayMs > 0 ? "delayed" : "waiting",
    attempts: 0,
    losses: 0,
    yielded: false,
    cancelRequested: false,
    due: entry.delayMs > 0 ? { wall: wall + entry.delayMs, at: at + entry.delayMs } : undefined,
  });
}

function expectedRefusal(
  model: StoreModel,
  settings: Settings,
  { mode, key }: StoreSubmission,
  { behind, replaceable }: { readonly behind: number; readonly replaceable: number },
): string | undefined {
  if (mode === "strict" && (behind > 0 || model.key(key).lease !== undefined)) return "KEY_BUSY";
  if (mode === "fifo" && behind >= settings.keyLimit) return "KEY_FULL";
  if (mode === "latest" && replaceable > 0) return undefined;
  return model.behindInAll() >= settings.queueLimit ? "QUEUE_FULL" : undefined;
}

export function isReceiptOf(answer: AcceptedAnswer, item: ModelItem, settings: Settings): boolean {
  return (
    answer.duplicate &&
    answer.id === item.id &&
    answer.key === item.key.name &&
    answer.level === settings.levels[item.level] &&
    answer.acceptedAt === item.acceptedAt
  );
}
