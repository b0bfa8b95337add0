import { setTimeout as wait } from "node:timers/promises";
import { MemoryStore } from "../../../src/engines/memory/index.ts";
import { ManualClock } from "../../manual-clock.ts";
import { isSame } from "./answers.ts";
import { Handles } from "./handles.ts";
import { Player } from "./player.ts";
import { type Burst, QUEUES, type Script } from "./script.ts";
import type { Store } from "./store.ts";
import { Timeline } from "./timeline.ts";

export type Verdict =
  | { readonly type: "same" }
  /** The machine was slow: what follows the burst of this number says nothing. */
  | { readonly type: "late"; readonly burst: number }
  | Difference;

export interface Difference {
  readonly type: "different";
  /** The number of the burst; of a wait, what was seen before it; as many as there are: what was seen at the end. */
  readonly burst: number;
  readonly toleranceMs: number;
  readonly model: unknown;
  readonly store: unknown;
}

let played = 0;

const SEEN_MS = 2_000;
const LOOK_MS = 50;
/** On a machine that is too slow for the usual units, scripts are played with longer ones, by so much at most. */
const SLOWEST = 8;
/** So many that were late are no accident. */
const MANY = 5;

/** Plays scripts on the model and on the store. */
export class Comparisons {
  readonly #store: Store;
  readonly #shared: Handles;
  #slower = 1;
  /** At that pace. */
  #played = 0;
  #late = 0;

  constructor(store: Store, shared: Handles) {
    this.#store = store;
    this.#shared = shared;
  }

  /** Plays one on both, step by step, and says where they first answer differently. */
  async compare(script: Script): Promise<Verdict> {
    const slower = this.#slower;
    const verdict = await compareOnce({ ...this.#store, unitMs: this.#store.unitMs * slower }, this.#shared, script);
    // One that was late says much until then; only where many are is the time better spent on fewer that are played to their end.
    if (slower === this.#slower) {
      this.#played += 1;
      if (verdict.type === "late") this.#late += 1;
      if (this.#late >= MANY && this.#late * 3 > this.#played && slower < SLOWEST) {
        this.#slower = slower * 2;
        this.#played = 0;
        this.#late = 0;
      }
    }
    return verdict;
  }

  /** The same until it was in time. */
  async compareToTheEnd(script: Script): Promise<Verdict> {
    for (;;) {
      const slower = this.#slower;
      const verdict = await this.compare(script);
      if (verdict.type !== "late" || slower === SLOWEST) return verdict;
      this.#slower = Math.max(this.#slower, slower * 2);
    }
  }
}

async function compareOnce(store: Store, shared: Handles, script: Script): Promise<Verdict> {
  const handles = script.ownHandles
    ? await Handles.opened(script.handles, store.apart?.() ?? (() => store.open()))
    : shared;
  try {
    return await new Comparison(store, handles, script).play();
  } finally {
    if (script.ownHandles) await handles.close();
  }
}

class Comparison {
  readonly #store: Store;
  readonly #handles: Handles;
  readonly #script: Script;
  readonly #clock = new ManualClock();
  readonly #timeline: Timeline;
  /** In these queues the order of ready keys is open: in which order they became ready is a matter of milliseconds. */
  readonly #scattered: Set<number>;

  constructor(store: Store, handles: Handles, script: Script) {
    this.#store = store;
    this.#handles = handles;
    this.#script = script;
    this.#timeline = new Timeline(store);
    this.#scattered = new Set(store.isOrdered ? [] : Array.from({ length: QUEUES }, (_, queue) => queue));
  }

  async play(): Promise<Verdict> {
    const { levels, handles } = this.#script;
    const memory = new MemoryStore({ clock: this.#clock });
    const { looseTimes } = this.#store;
    const common = {
      looseTimes,
      runs: this.#handles.at(0).runs === true,
      prefix: `random${(played += 1)}`,
      levels,
      ms: this.#timeline.ms.bind(this.#timeline),
      dueMs: this.#timeline.dueMs.bind(this.#timeline),
    };
    const model = new Player({
      ...common,
      handles: await Handles.opened(handles, async () => memory.connect()),
      zero: this.#clock.wall(),
    });
    const store = new Player({ ...common, handles: this.#handles, zero: this.#timeline.zero });
    await this.#store.gate.enter();
    try {
      await model.begin();
      await store.begin();
      await this.#begin();
      return await this.#playBursts(model, store);
    } finally {
      this.#store.gate.leave();
    }
  }

  async #playBursts(model: Player, store: Player): Promise<Verdict> {
    const { bursts } = this.#script;
    for (const [number, written] of bursts.entries()) {
      const burst = isWait(written) && this.#store.comesWhenAsked ? [...written, ...ASK_ALL] : written;
      if (isWait(burst)) {
        const verdict = await this.#look(number, model, store);
        if (verdict !== undefined) return verdict;
        await this.#pass(burst[0].units);
      }
      this.#timeline.ask();
      const expected = await model.play(burst, this.#scattered, []);
      this.#noteTimes(burst);
      if (expected.includes("requested")) this.#timeline.noteCancel();
      const answers = await store.play(burst, this.#scattered, expected).catch((error: unknown) => [error]);
      const verdict = this.#judge(number, expected, answers);
      if (verdict !== undefined) return verdict;
    }
    return (await this.#look(bursts.length, model, store)) ?? { type: "same" };
  }

  async #look(burst: number, model: Player, store: Player): Promise<Verdict | undefined> {
    const expected = await model.look(undefined);
    const end = performance.now() + SEEN_MS;
    for (;;) {
      const verdict = this.#judge(burst, expected, await store.look(expected));
      // What a store has fetched for a worker before it asks goes back in a moment.
      if (verdict?.type !== "different" || performance.now() > end) return verdict;
      await wait(LOOK_MS);
    }
  }

  #judge(burst: number, model: unknown, store: unknown): Verdict | undefined {
    if (!this.#timeline.isClear()) return { type: "late", burst };
    const toleranceMs = this.#timeline.longestMs + this.#timeline.driftMs + this.#store.lateMs;
    return isSame(model, store, toleranceMs) ? undefined : { type: "different", burst, toleranceMs, model, store };
  }

  async #pass(units: number): Promise<void> {
    this.#timeline.end();
    this.#store.gate.leave();
    await this.#timeline.pass(units);
    await this.#store.gate.enter();
    if (await this.#begin()) for (let queue = 0; queue < QUEUES; queue += 1) this.#scattered.add(queue);
  }

  /** The model's clock shows when the part began. */
  async #begin(): Promise<boolean> {
    const before = this.#timeline.at;
    while (!this.#timeline.isQuiet()) {
      // Others play meanwhile.
      this.#store.gate.leave();
      await this.#timeline.quiet();
      await this.#store.gate.enter();
    }
    const hasCome = this.#timeline.begin();
    await this.#clock.stall(this.#timeline.at - before);
    return hasCome;
  }

  #noteTimes(burst: Burst): void {
    const timeline = this.#timeline;
    for (const step of burst) {
      if (step.do === "submit") {
        for (const { delay, keep } of step.entries) {
          timeline.note(delay);
          timeline.noteKept(keep);
        }
      } else if (step.do === "claim" || step.do === "hold") timeline.noteLease(step.lease);
      else if (step.do === "renew") for (const { time } of step.entries) timeline.noteLease(time);
      else if (step.do === "settle")
        for (const { ending } of step.entries) if (ending.type === "retry") timeline.note(ending.delay);
      if (ENDS.has(step.do)) timeline.noteEnd();
    }
  }
}

/** Takes whatever there is of each queue. */
const ASK_ALL: Burst = Array.from({ length: QUEUES }, (_, queue) => ({
  do: "claim",
  by: queue,
  queue,
  max: 1,
  lease: "far",
  stirs: true,
}));

const ENDS: ReadonlySet<string> = new Set(["settle", "renew", "cancel", "submit", "revive"]);

function isWait(
  burst: Burst,
): burst is readonly [{ readonly by: number; readonly do: "wait"; readonly units: number }] {
  return burst[0]?.do === "wait";
}
