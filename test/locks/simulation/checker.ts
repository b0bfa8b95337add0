/**
 * Judges a history. Shares no code with the product: it knows only what locks promise, and the times at which things were
 * said and heard.
 */
import type { Happening } from "./history.ts";
import type { Settings } from "./settings.ts";

export type Promised =
  | "exclusive"
  | "fenced"
  | "served"
  | "prompt"
  | "nothing left"
  | "delayed"
  | "retired"
  | "answers"
  | "surprise";

export interface Violation {
  readonly promise: Promised;
  readonly at: number;
  readonly says: string;
}

interface Hold {
  readonly call: number;
  readonly lock: string;
  readonly session: string;
  readonly fence: number;
  readonly askedAt: number;
  readonly from: number;
  readonly delayMs: number;
  readonly mode: string;
  /** When its owner stopped trusting it: released, closed, lost, crashed, or past its own deadline. */
  until: number;
  isReleasing: boolean;
  releasedAt: number | undefined;
  isReleased: boolean;
  retireMs: number | undefined;
  retiredAt: number | undefined;
}

interface Life {
  readonly process: string;
  /** Of the last sign of life that was answered in time. */
  since: number;
  endedAt: number | undefined;
  how: "lost" | "closing" | "crashed" | undefined;
}

/** As the library documents it: what is kept in hand of every lease. */
function marginMs(leaseMs: number): number {
  return Math.min(Math.max(leaseMs * 0.1, 500), leaseMs * 0.25);
}

/** A hand-over takes a few messages of 10 ms at most, and a few lost races. */
const PROMPT_MS = 300;
/** Stores and wall clocks count whole milliseconds. */
const ROUNDING_MS = 2;

export function check(settings: Settings, settledAt: number, history: readonly Happening[]): readonly Violation[] {
  const { holds, lives, violations } = read(settings, history);
  for (const [lock, slots] of settings.locks) {
    const here = holds.filter((hold) => hold.lock === lock);
    checkExclusive(lock, slots, here, violations);
    checkFences(lock, slots, here, violations);
    if (slots === 1) checkPauses(settings, here, lives, violations);
    if (slots === 1) checkPrompt(settledAt, here, lives, history, violations);
  }
  return violations.toSorted((a, b) => a.at - b.at);
}

interface Reading {
  readonly holds: readonly Hold[];
  readonly lives: ReadonlyMap<string, Life>;
  readonly violations: Violation[];
}

function read(settings: Settings, history: readonly Happening[]): Reading {
  const { leaseMs } = settings;
  const lives = new Map<string, Life>();
  const asked = new Map<number, { at: number; mode: string }>();
  const holds = new Map<number, Hold>();
  const violations: Violation[] = [];
  const deadline = ({ since }: Life): number => since + leaseMs - marginMs(leaseMs);
  const blame = (promise: Promised, at: number, says: string): void => void violations.push({ promise, at, says });
  for (const one of history) {
    const { at } = one;
    switch (one.type) {
      case "session":
        lives.set(one.session, { process: one.process, since: one.since, endedAt: undefined, how: undefined });
        break;
      case "renewed": {
        const life = lives.get(one.session);
        if (life !== undefined && life.endedAt === undefined && at < deadline(life)) {
          life.since = Math.max(life.since, one.since);
        }
        break;
      }
      case "ended": {
        const life = lives.get(one.session);
        if (life !== undefined && life.endedAt === undefined) Object.assign(life, { endedAt: at, how: one.how });
        break;
      }
      case "process":
        if (one.what !== "crashes") break;
        for (const life of lives.values()) {
          if (life.process === one.process && life.endedAt === undefined)
            Object.assign(life, { endedAt: at, how: "crashed" });
        }
        break;
      case "asking":
        asked.set(one.call, { at, mode: one.mode });
        break;
      case "granted": {
        const { call, lock, session, fence, delayMs } = one;
        const asking = asked.get(call);
        const rest = {
          until: Infinity,
          isReleasing: false,
          releasedAt: undefined,
          isReleased: false,
          retireMs: undefined,
          retiredAt: undefined,
        };
        holds.set(call, {
          call,
          lock,
          session,
          fence,
          delayMs,
          from: at,
          askedAt: asking?.at ?? 0,
          mode: asking?.mode ?? "",
          ...rest,
        });
        break;
      }
      case "releasing": {
        const hold = holds.get(one.call);
        if (hold !== undefined) Object.assign(hold, { until: at, isReleasing: true, retireMs: one.retireMs });
        break;
      }
      case "released": {
        const hold = holds.get(one.call);
        if (hold === undefined) break;
        hold.releasedAt = at;
        hold.isReleased = one.isTrue;
        const life = lives.get(hold.session);
        const isCertain = life !== undefined && life.endedAt === undefined && at < deadline(life);
        if (!one.isTrue && isCertain) {
          blame("answers", at, `releasing call ${one.call} on ${hold.lock} was denied while its session lived`);
        }
        break;
      }
      case "refused":
        if (asked.get(one.call)?.mode === "for ever") {
          blame("answers", at, `call ${one.call} was refused as ${one.why} though it waits for ever`);
        }
        break;
      case "failed":
        if (!["SESSION_LOST", "OUTCOME_UNKNOWN", "STORE_UNAVAILABLE"].includes(one.why)) {
          blame("answers", at, `call ${one.call} failed: ${one.why}`);
        }
        break;
      case "unanswered":
        blame("served", at, `call ${one.call} was never answered`);
        break;
      case "left":
        blame("nothing left", at, `${one.lock} keeps a place for session ${one.session} that nobody knows of`);
        break;
      case "last try":
        if (!one.isGranted) blame("nothing left", at, `lock ${one.lock} could not be had when all had gone`);
        break;
      case "last cells":
        if (one.names.length > 0) blame("nothing left", at, `cells are left: ${one.names.join(", ")}`);
        break;
      case "surprise":
        blame("surprise", at, one.says);
        break;
      case "fault":
      case "calm":
        break;
    }
  }
  for (const hold of holds.values()) {
    const life = lives.get(hold.session);
    if (life !== undefined) hold.until = Math.min(hold.until, deadline(life), life.endedAt ?? Infinity);
  }
  return { holds: [...holds.values()], lives, violations };
}

/** Never more who trust their hold than there are slots. */
function checkExclusive(lock: string, slots: number, holds: readonly Hold[], violations: Violation[]): void {
  const trusted = holds.filter(({ from, until }) => from < until).toSorted((a, b) => a.from - b.from);
  for (const hold of trusted) {
    const others = trusted.filter(({ from, until }) => from <= hold.from && until > hold.from);
    if (others.length <= slots) continue;
    const says = others.map(({ call, fence, until }) => `call ${call} (fence ${fence}, until ${until.toFixed(2)})`);
    violations.push({
      promise: "exclusive",
      at: hold.from,
      says: `${lock} of ${slots} is held by ${says.join(" and ")}`,
    });
  }
}

/** Greater than every fence of which anybody had heard before the call was made; and of one holder, in their order. */
function checkFences(lock: string, slots: number, holds: readonly Hold[], violations: Violation[]): void {
  const inOrder = holds.toSorted((a, b) => a.from - b.from);
  for (const [index, hold] of inOrder.entries()) {
    for (const earlier of inOrder.slice(0, index)) {
      const isTrusted = slots === 1 && hold.from < hold.until && earlier.from < earlier.until;
      const mustRise = earlier.from <= hold.askedAt || isTrusted;
      if (earlier.fence !== hold.fence && (!mustRise || earlier.fence < hold.fence)) continue;
      const says = `${lock}: fence ${hold.fence} of call ${hold.call} came after fence ${earlier.fence} of call ${earlier.call}`;
      violations.push({ promise: "fenced", at: hold.from, says });
    }
  }
}

/** After a crash, the lease and the delay pass; after a retirement, its time. By the wall clock, so only where it is right. */
function checkPauses(
  settings: Settings,
  holds: readonly Hold[],
  lives: ReadonlyMap<string, Life>,
  violations: Violation[],
): void {
  const byFence = holds.toSorted((a, b) => a.fence - b.fence);
  for (const [index, next] of byFence.entries()) {
    const hold = byFence[index - 1];
    if (hold === undefined) continue;
    const life = lives.get(hold.session);
    const isCrashed =
      !hold.isReleasing && hold.until > hold.from && life?.how === "crashed" && life.endedAt === hold.until;
    const delayMs = settings.areClocksWrong ? 0 : hold.delayMs;
    const afterLoss = (life?.since ?? 0) + settings.leaseMs + delayMs - ROUNDING_MS;
    if (isCrashed && next.from < afterLoss) {
      const says = `${hold.lock} went on to call ${next.call} before lease and delay of call ${hold.call} had passed`;
      violations.push({ promise: "delayed", at: next.from, says });
    }
    if (settings.areClocksWrong || hold.retireMs === undefined || !hold.isReleased) continue;
    if (next.from < hold.until + hold.retireMs - ROUNDING_MS) {
      const says = `${hold.lock} was given to call ${next.call} while it was retired by call ${hold.call}`;
      violations.push({ promise: "retired", at: next.from, says });
    }
  }
}

/** When all is well, one who waits hears at once that it is its turn. */
function checkPrompt(
  settledAt: number,
  holds: readonly Hold[],
  lives: ReadonlyMap<string, Life>,
  history: readonly Happening[],
  violations: Violation[],
): void {
  // One who crashed in line may be handed the lock, and then its delay counts.
  if (history.some((one) => one.type === "process" && one.what === "crashes")) return;
  const byFence = holds.toSorted((a, b) => a.fence - b.fence);
  for (const [index, next] of byFence.entries()) {
    const hold = byFence[index - 1];
    if (hold === undefined || hold.retireMs !== undefined) continue;
    const life = lives.get(hold.session);
    // Closing takes a few messages more: first whatever the session asks for must have its answer.
    const isClosed = !hold.isReleasing && life?.how === "closing" && life.endedAt === hold.until;
    if (!hold.isReleased && !isClosed) continue;
    if (hold.askedAt < settledAt || next.askedAt < settledAt) continue;
    const tookMs = next.from - Math.max(hold.releasedAt ?? hold.until, next.askedAt);
    if (tookMs <= PROMPT_MS * (isClosed ? 2 : 1)) continue;
    const says = `call ${next.call} waited ${tookMs.toFixed(0)} ms for ${hold.lock} after call ${hold.call} had let it go`;
    violations.push({ promise: "prompt", at: next.from, says });
  }
}
