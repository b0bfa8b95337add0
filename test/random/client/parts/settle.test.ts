import type { Timer } from "../../../../src/domain/clock.ts";
import { BatonError, Closed } from "../../../../src/domain/errors.ts";
import type { SettleResult } from "../../../../src/engine/port.ts";
import { memoryEngine } from "../../../../src/engines/memory/index.ts";
import { Outages } from "../../../../src/worker/outages.ts";
import { isCertain, settleUntilCertain } from "../../../../src/worker/settle.ts";
import type { Random } from "../../../kit/random.ts";
import { ManualClock } from "../../../manual-clock.ts";
import { ScriptedEngine } from "../../../scripted-engine.ts";
import { agoInstant, grantedRun } from "./granted-run.ts";
import { addScriptTest, difference } from "./play-scripts.ts";

const LEASE_MS = 3_000;
/** The lease without its margin. */
const USABLE_MS = 2_500;

interface Setting {
  /** How old the leases are that are settled together. */
  readonly agesMs: readonly number[];
  readonly chance: number;
}

/** One try to settle: how long it takes, and how it ends. */
interface Try {
  readonly ms: number;
  readonly ends: "answered" | "away" | "refused" | "closed";
  /** Somebody else gets an answer so long after this one failed. */
  readonly heardMs: number | undefined;
}

function drawTry(random: Random): Try {
  return {
    ms: random.pick([0, random.between(0, 100), random.between(0, 1_500)]),
    ends: random.chance(0.05)
      ? "closed"
      : random.pick(["away", "away", "away", "away", "away", "away", "refused", "answered"]),
    heardMs: random.chance(0.2) ? random.between(1, 300) : undefined,
  };
}

/** When each try begins, and with what the whole ends. */
function expected({ agesMs, chance }: Setting, tries: readonly Try[], begunAt: number): readonly string[] {
  const story: string[] = [];
  let now = begunAt;
  let pauseMs = 100;
  let isAway = false;
  const certainUntil = begunAt - Math.min(...agesMs) + USABLE_MS - 100;
  for (const { ms, ends, heardMs } of tries) {
    story.push(`${now} try`);
    now += ms;
    if (ends === "closed") return [...story, `${now} unknown`];
    if (ends === "answered") return [...story, `${now} settled`];
    if (now >= certainUntil) return [...story, `${now} unknown`];
    const waitMs = Math.min(pauseMs * (0.5 + chance / 2), certainUntil - now);
    pauseMs = Math.min(2 * pauseMs, 1_000);
    // An answer that others get wakes those who pause, once for each time that the store was away.
    isAway ||= ends === "away";
    const isHeard = heardMs !== undefined && heardMs <= waitMs;
    now += isHeard && isAway ? heardMs : waitMs;
    if (isHeard) isAway = false;
  }
  return [...story, `${now} try`];
}

addScriptTest("what is settled is tried again for as long as one of the leases is certain", {
  setting: (random): Setting => ({
    agesMs: Array.from({ length: random.between(1, 3) }, () => random.between(0, 2_800)),
    chance: random.pick([0, 1]),
  }),
  deed: drawTry,
  longest: 12,
  play: async (setting, tries) => {
    const clock = new ManualClock();
    const engine = new ScriptedEngine(memoryEngine({ clock }));
    const outages = new Outages(clock, () => undefined);
    const story: string[] = [];
    const tell = (what: string): void => void story.push(`${clock.monotonic()} ${what}`);
    const left = [...tries];
    let heard: Timer | undefined;
    const runs = setting.agesMs.map((ageMs, index) =>
      grantedRun(`k${index}`, agoInstant(clock, ageMs), LEASE_MS, clock),
    );
    engine.onSettle = async (settlements) => {
      tell("try");
      heard?.cancel();
      const next = left.shift();
      // The script is over: this try has no answer.
      if (next === undefined) return await new Promise<readonly SettleResult[]>(() => undefined);
      await new Promise<void>((resolve) => clock.setTimer(next.ms, resolve));
      if (next.ends === "answered") return settlements.map(() => "settled");
      if (next.ends === "closed") throw new Closed();
      const { heardMs } = next;
      if (heardMs !== undefined) heard = clock.setTimer(heardMs, () => outages.worked("asking for work"));
      throw new BatonError(next.ends === "away" ? "STORE_UNAVAILABLE" : "STORE_FULL", "No.");
    };
    const expectedStory = expected(setting, tries, clock.monotonic());
    const settling = settleUntilCertain(
      { engine, outages, random: () => setting.chance },
      runs.map((held) => ({ held, settlement: { lease: held.grant.lease, ending: { type: "done" } } })),
    );
    void settling.then((results) => {
      tell([...new Set(results.map((result) => (typeof result === "object" ? "gone on" : result)))].join());
      if (results.length !== runs.length) tell(`${results.length} results for ${runs.length}`);
    });
    await clock.pass(20_000);
    const wrong = difference(story, expectedStory);
    if (wrong !== undefined) return wrong;
    if (runs.some((run) => isCertain(run))) return "a lease is certain for ever";
    return undefined;
  },
});

addScriptTest("a lease lasts for another try until a tenth of a second before its end", {
  setting: (random) => random.between(0, 3_000),
  deed: (random) => random.between(0, 1_000),
  longest: 5,
  play: async (ageMs, passes) => {
    const clock = new ManualClock();
    const run = grantedRun("k", agoInstant(clock, ageMs), LEASE_MS, clock);
    let leftMs = USABLE_MS - ageMs;
    for (const ms of [0, ...passes]) {
      await clock.pass(ms);
      leftMs -= ms;
      if (isCertain(run) !== leftMs > 100) return `with ${leftMs} ms left it is ${isCertain(run) ? "" : "not "}certain`;
    }
    return undefined;
  },
});
