import { type HistoryRecord, type Killed, LEVELS, type Started } from "./history.ts";

/** Something worth telling, in a sentence. */
export interface News {
  readonly kind: "start" | "urgent" | "kill" | "takeover";
  readonly at: number;
  readonly text: string;
}

/** A car that a killed worker held, and who went on with it. */
export interface Takeover {
  readonly killed: Killed;
  readonly before: Started;
  readonly after: Started;
}

export function newsOf(history: readonly HistoryRecord[]): readonly News[] {
  const takeovers = takeoversOf(history);
  return history.flatMap((record): News[] => {
    if (record.type === "kill") return [killNews(history, record)];
    if (record.type !== "start") return [];
    const takeover = takeovers.find(({ after }) => after === record);
    return [takeover === undefined ? startNews(history, record) : takeoverNews(takeover)];
  });
}

export function takeoversOf(history: readonly HistoryRecord[]): readonly Takeover[] {
  return history
    .filter((record) => record.type === "kill")
    .flatMap((killed) => {
      const before = heldAtDeath(history, killed);
      const after = history.find(
        (record) => record.type === "start" && record.item === before?.item && record.at > killed.at,
      );
      return before === undefined || after?.type !== "start" ? [] : [{ killed, before, after }];
    });
}

/** What a killed worker had begun and not ended. */
export function heldAtDeath(history: readonly HistoryRecord[], { worker, at }: Killed): Started | undefined {
  return history
    .filter((record) => record.type === "start")
    .findLast(
      (start) =>
        start.worker === worker &&
        start.at <= at &&
        !history.some((end) => end.type === "end" && end.worker === worker && end.item === start.item),
    );
}

function killNews(history: readonly HistoryRecord[], killed: Killed): News {
  const held = heldAtDeath(history, killed);
  const text = `${killed.worker} was killed (SIGKILL)${held === undefined ? "" : ` while it worked on ${held.car}`}`;
  return { kind: "kill", at: killed.at, text };
}

function takeoverNews({ killed, before, after }: Takeover): News {
  const seconds = ((after.at - killed.at) / 1_000).toFixed(1);
  const text = `${after.worker} took over ${after.car} ${seconds} s later, fence ${after.fence} after ${before.fence}`;
  return { kind: "takeover", at: after.at, text };
}

function startNews(history: readonly HistoryRecord[], start: Started): News {
  const { at, worker, item, car, level, fence } = start;
  const passed = overtaken(history, start);
  if (passed === 0) return { kind: "start", at, text: `${worker} works on ${car} (${item}, ${level}, fence ${fence})` };
  const text = `${worker} works on ${car} (${item}, ${level}, before ${passed} that came earlier)`;
  return { kind: "urgent", at, text };
}

/** Items of the car that came earlier, are less urgent, and still wait. */
function overtaken(history: readonly HistoryRecord[], start: Started): number {
  const cameAt = history.find((record) => record.type === "submit" && record.item === start.item)?.at ?? 0;
  const began = new Set(
    history
      .filter((record) => record.type === "start" && record.at <= start.at)
      .map((record) => "item" in record && record.item),
  );
  return history.filter(
    (record) =>
      record.type === "submit" &&
      record.car === start.car &&
      record.at < cameAt &&
      LEVELS.indexOf(record.level) > LEVELS.indexOf(start.level) &&
      !began.has(record.item),
  ).length;
}
