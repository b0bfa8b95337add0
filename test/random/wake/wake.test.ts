/**
 * Processes that come and go, listen and tell, over a carrier that is lost and comes back, again and again: those who
 * were promised a wake get it, work wakes as many as there is work and no more, and nothing listens in vain.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { lazyWake } from "../../../src/wake/lazy.ts";
import { MemoryWakes } from "../../../src/wake/memory.ts";
import type { WakeEvent } from "../../../src/wake/outage.ts";
import type { Sleepers } from "../../../src/wake/slots.ts";
import { Wake, type LostLease, type Untold } from "../../../src/wake/wake.ts";
import { Random } from "../../kit/random.ts";
import { again, Seeds, seedTimeoutMs } from "../../kit/seeds.ts";
import { shrink } from "../../kit/shrink.ts";
import { aftermath, ManualClock } from "../../manual-clock.ts";
import { TroubledAdapter } from "./troubled-adapter.ts";

type Step =
  | { readonly step: "sleep"; readonly process: number; readonly queue: string; readonly count: number }
  | { readonly step: "leave"; readonly process: number; readonly queue: string }
  | { readonly step: "watch"; readonly process: number; readonly what: "ended" | "lost" }
  | { readonly step: "unwatch"; readonly process: number; readonly what: "ended" | "lost" }
  | { readonly step: "work" | "all-work"; readonly process: number; readonly queue: string; readonly count: number }
  | { readonly step: "stir" | "elsewhere"; readonly process: number; readonly queue: string }
  | { readonly step: "ended"; readonly process: number; readonly queue: string; readonly ids: number }
  | { readonly step: "lost"; readonly process: number }
  | { readonly step: "pass"; readonly ms: number }
  | { readonly step: "lose" | "find"; readonly process: number }
  | { readonly step: "hints"; readonly process: number; readonly mood: "well" | "refuses" | "hangs" };

interface Plan {
  readonly seed: number;
  readonly processes: number;
  readonly isLazy: boolean;
  /** The carrier is not there at first. */
  readonly isAwayFirst: boolean;
  readonly hasSlowHints: boolean;
  readonly script: readonly Step[];
}

const QUEUES = ["cars", "vans"];
/** A subscription is gone so long after the last one left: the page says five seconds. */
const GONE_MS = 5_000;
/** An empty budget is forgotten after this. */
const BUDGET_MS = 60_000;
/** Work waits so long for a budget that is not answered, and the work that comes meanwhile waits with it. */
const HINT_MS = 1_000;
/** More ids than this in one turn are told as "some". */
const MOST_IDS = 500;

function drawPlan(seed: number): Plan {
  const random = new Random(seed);
  const processes = random.between(2, 4);
  const isTroubled = random.chance(0.6);
  const script = Array.from({ length: random.between(10, 40) }, (): readonly Step[] => {
    if (isTroubled && random.chance(0.12)) return drawOutage(random, processes);
    return [drawStep()];
  }).flat();
  function drawStep(): Step {
    const process = random.between(0, processes - 1);
    const queue = random.pick(QUEUES);
    const what = random.pick(["ended", "lost"] as const);
    const quiet = ["sleep", "sleep", "sleep", "leave", "watch", "unwatch", "work", "work", "work", "all-work"] as const;
    const troubles = isTroubled ? (["lose", "find", "find", "hints"] as const) : [];
    const step = random.pick([
      ...quiet,
      "stir",
      "elsewhere",
      "ended",
      "lost",
      "pass",
      "pass",
      "pass",
      ...troubles,
    ] as const);
    switch (step) {
      case "sleep":
        return { step, process, queue, count: random.between(0, 4) };
      case "work":
      case "all-work":
        return { step, process, queue, count: random.between(1, 6) };
      case "ended":
        return { step, process, queue, ids: random.pick([1, 3, MOST_IDS, MOST_IDS + 1]) };
      case "watch":
      case "unwatch":
        return { step, process, what };
      case "pass":
        return { step, ms: random.pick([100, 1_000, 3_000, 6_000, 61_000]) };
      case "hints":
        return { step, process, mood: random.pick(["well", "well", "refuses", "hangs"]) };
      case "lost":
      case "lose":
      case "find":
        return { step, process };
      default:
        return { step, process, queue };
    }
  }
  const isAwayFirst = isTroubled && random.chance(0.3);
  return { seed, processes, isLazy: random.chance(0.4), isAwayFirst, hasSlowHints: random.chance(0.3), script };
}

/** Somebody begins to listen while the carrier is away, for as long as it stays so. */
function drawOutage(random: Random, processes: number): readonly Step[] {
  const process = random.between(0, processes - 1);
  const leave = QUEUES.map((queue): Step => ({ step: "leave", process, queue }));
  const away: Step[] = [
    { step: "lose", process },
    { step: "sleep", process, queue: "cars", count: 1 },
    { step: "pass", ms: random.pick([10, 1_000, 20_000]) },
    { step: "find", process },
  ];
  return [...leave, { step: "pass", ms: GONE_MS + 1 }, ...away];
}

/** Claims of one process that wait in one queue. */
class Bed implements Sleepers {
  asleep = 0;
  woken = 0;
  stirred = 0;

  idle(): number {
    return this.asleep;
  }

  wake(count: number): void {
    // Some may have got up by themselves since it was asked how many sleep.
    const woken = Math.min(count, this.asleep);
    this.woken += woken;
    this.asleep -= woken;
  }

  stir(): void {
    this.stirred += 1;
    this.wake(this.asleep);
  }
}

interface Joined {
  readonly bed: Bed;
  readonly leave: () => void;
}

class Process {
  readonly adapter: TroubledAdapter;
  readonly wake: Wake;
  readonly beds = new Map<string, Joined>();
  readonly ended: (readonly string[] | undefined)[] = [];
  readonly lost: LostLease[] = [];
  readonly untold: Untold[] = [];
  readonly events: WakeEvent[] = [];
  readonly watching = new Map<"ended" | "lost", () => void>();
  /** When it last had somebody for this channel; Infinity while it has. */
  readonly neededUntil = new Map<string, number>();
  foundAt = 0;
  downMs = 0;
  lostAt = 0;
  /** Until then a budget may not be answered that was asked for before. */
  hangsUntil = 0;
  opens = 0;

  constructor(carrier: MemoryWakes, clock: ManualClock, { isLazy, isAwayFirst, hasSlowHints }: Plan) {
    const adapter = new TroubledAdapter(carrier.connect());
    adapter.isDown = isAwayFirst;
    adapter.hasSlowHints = hasSlowHints;
    this.lostAt = clock.monotonic();
    this.adapter = adapter;
    const open = async (): Promise<TroubledAdapter> => {
      this.opens += 1;
      if (adapter.isDown) throw new Error("The carrier is down.");
      return adapter;
    };
    this.wake = new Wake(isLazy ? lazyWake("troubled", open, clock) : adapter, {
      clock,
      onEvent: (event) => this.events.push(event),
    });
    this.wake.onUntold = (untold) => this.untold.push(...untold);
  }
}

class World {
  readonly #plan: Plan;
  readonly #clock = new ManualClock();
  readonly #processes: readonly Process[];
  /** What the budget of each queue should have left, and until when. */
  readonly #budgets = new Map<string, { left: number; until: number }>();
  /** Budgets are as the model has them: nothing was in trouble since they were last empty. */
  #budgetsUnsureUntil = 0;
  #number = 0;

  constructor(plan: Plan) {
    this.#plan = plan;
    const carrier = new MemoryWakes({ clock: this.#clock });
    this.#processes = Array.from({ length: plan.processes }, () => new Process(carrier, this.#clock, plan));
    if (plan.isAwayFirst) this.#budgetsUnsureUntil = Infinity;
  }

  async play(): Promise<string | undefined> {
    for (const step of this.#plan.script) {
      const problem = (await this.#take(step)) ?? this.#judgeListening() ?? this.#judgeEvents();
      if (problem !== undefined) return problem;
    }
    return await this.#finish();
  }

  async #take(step: Step): Promise<string | undefined> {
    if (step.step === "pass") {
      await this.#clock.pass(step.ms);
      return undefined;
    }
    const process = this.#processes[step.process];
    if (process === undefined) return undefined;
    const { wake, adapter, watching } = process;
    switch (step.step) {
      case "sleep":
        await this.#sleep(process, step.queue, step.count);
        return undefined;
      case "leave":
        process.beds.get(step.queue)?.leave();
        // Said twice, it was said.
        process.beds.get(step.queue)?.leave();
        process.beds.delete(step.queue);
        if (process.beds.size === 0) this.#noNeed(process, "baton.work");
        await aftermath();
        return undefined;
      case "watch":
        if (watching.has(step.what)) return undefined;
        process.neededUntil.set(`baton.${step.what}`, Infinity);
        watching.set(
          step.what,
          step.what === "ended"
            ? wake.onEnded("cars", (ids) => process.ended.push(ids))
            : wake.onLost((lost) => process.lost.push(lost)),
        );
        await aftermath();
        return undefined;
      case "unwatch":
        if (!watching.has(step.what)) return undefined;
        watching.get(step.what)?.();
        watching.delete(step.what);
        this.#noNeed(process, `baton.${step.what}`);
        return undefined;
      case "work":
        return await this.#work(step.queue, new Map([[process, step.count]]));
      case "all-work":
        return await this.#work(step.queue, new Map(this.#processes.map((one) => [one, step.count])));
      case "elsewhere":
        return await this.#work(step.queue, new Map([[process, 1]]), true);
      case "stir":
        return await this.#stir(process, step.queue);
      case "ended":
        return await this.#ended(process, step.queue, step.ids);
      case "lost":
        return await this.#lost(process);
      case "lose":
        if (!adapter.isDown) process.lostAt = this.#clock.monotonic();
        this.#budgetsUnsureUntil = Infinity;
        adapter.lose();
        await aftermath();
        return undefined;
      case "find":
        return await this.#find(process);
      case "hints":
        if (adapter.hintMood === "hangs") process.hangsUntil = this.#clock.monotonic() + HINT_MS;
        adapter.hintMood = step.mood;
        this.#budgetsUnsureUntil = step.mood === "well" ? this.#clock.monotonic() + BUDGET_MS + 7_000 : Infinity;
        return undefined;
    }
  }

  async #sleep(process: Process, queue: string, count: number): Promise<void> {
    let joined = process.beds.get(queue);
    if (joined === undefined) {
      const bed = new Bed();
      process.neededUntil.set("baton.work", Infinity);
      joined = { bed, leave: process.wake.onWork(queue, bed) };
      process.beds.set(queue, joined);
      // Another one that comes and goes concerns nobody.
      process.wake.onWork(queue, new Bed())();
      // Whoever sleeps has registered before, and looked once messages arrived.
      await aftermath();
    }
    joined.bed.asleep = count;
  }

  #noNeed(process: Process, channel: string): void {
    if (process.neededUntil.get(channel) === Infinity) process.neededUntil.set(channel, this.#clock.monotonic());
  }

  get #isWell(): boolean {
    const now = this.#clock.monotonic();
    return this.#processes.every(
      ({ adapter, foundAt }) => !adapter.isDown && adapter.hintMood === "well" && now - foundAt > 16_000,
    );
  }

  /**
   * As many wake in all as there is work, and as the budget has left from before. Several may tell of work at the same
   * moment.
   */
  async #work(queue: string, senders: ReadonlyMap<Process, number>, isElsewhere = false): Promise<string | undefined> {
    const now = this.#clock.monotonic();
    const isSure = this.#isWell && now > this.#budgetsUnsureUntil;
    if (!this.#isWell) this.#budgetsUnsureUntil = Infinity;
    const beds = this.#processes.flatMap((process) => {
      const bed = process.beds.get(queue)?.bed;
      return bed === undefined ? [] : [{ process, bed }];
    });
    const lefts = new Map<Process, number>();
    for (const [sender, count] of senders) {
      const own = sender.beds.get(queue)?.bed;
      const ownIdle = isElsewhere ? 0 : (own?.asleep ?? 0);
      const before = own?.woken ?? 0;
      sender.untold.length = 0;
      if (isElsewhere) sender.wake.elsewhere(queue);
      else if (count < 3) sender.wake.work(queue, count);
      else {
        // In two parts of one turn.
        sender.wake.work(queue, 1);
        sender.wake.work(queue, count - 1);
      }
      const ownWoken = Math.min(count, ownIdle);
      if (own !== undefined && own.woken - before !== ownWoken)
        return `${own.woken - before} of the sender's own were woken, and ${ownWoken} should have been.`;
      lefts.set(sender, count - ownWoken);
    }
    // What is left is for those who sleep now.
    const sleeping = beds.map(({ process, bed }) => {
      const offered = [...lefts].reduce((sum, [sender, left]) => sum + (sender === process ? 0 : left), 0);
      return { bed, asleep: bed.asleep, offered, before: bed.woken };
    });
    // Each of the hints may take a turn.
    for (let turn = 0; turn < (this.#plan.hasSlowHints ? 8 : 1); turn += 1) await aftermath();
    for (const [sender, left] of lefts) {
      const isHeldUp = sender.adapter.hintMood === "hangs" || now <= sender.hangsUntil;
      if (left === 0 || !sender.adapter.isDown || isHeldUp) continue;
      if (!sender.untold.some((one) => one.type === "work" && one.queue === queue))
        return `Work in ${queue} could not be told, and the store was not told so.`;
    }
    const left = [...lefts.values()].reduce((sum, one) => sum + one, 0);
    if (!isSure || left === 0) return undefined;
    const budget = this.#budgets.get(queue);
    const inBudget = (budget !== undefined && budget.until > now ? budget.left : 0) + left;
    const wanted = sleeping.reduce((sum, { asleep, offered }) => sum + Math.min(offered, asleep), 0);
    const expected = Math.min(inBudget, wanted);
    this.#budgets.set(queue, { left: inBudget - expected, until: now + BUDGET_MS });
    const woken = sleeping.reduce((sum, { bed, before }) => sum + bed.woken - before, 0);
    if (woken === expected) return undefined;
    const asleep = sleeping.map((one) => one.asleep).join(" + ");
    return `${woken} were woken for ${left} pieces of work in ${queue}; ${asleep} slept, and the budget had ${inBudget}: ${expected} should have been.`;
  }

  async #stir(sender: Process, queue: string): Promise<string | undefined> {
    const isSure = this.#isWell;
    sender.wake.stir(queue);
    await aftermath();
    for (const process of isSure ? this.#processes : [sender]) {
      const asleep = process.beds.get(queue)?.bed.asleep ?? 0;
      if (asleep > 0) return `${asleep} slept on when ${queue} was stirred.`;
    }
    return undefined;
  }

  async #ended(sender: Process, queue: string, count: number): Promise<string | undefined> {
    const isSure = this.#isWell;
    const ids = Array.from({ length: count }, (_, index) => `id${(this.#number += 1)}-${index}`);
    for (const process of this.#processes) process.ended.length = 0;
    sender.wake.ended(queue, ids);
    await aftermath();
    for (const process of this.#processes) {
      if (!process.watching.has("ended")) continue;
      const heard = process.ended;
      if (queue !== "cars" && heard.length > 0) return "Somebody heard of the end of an item of another queue.";
      if (queue !== "cars" || (!isSure && process !== sender)) continue;
      const isForAll = process !== sender && count > MOST_IDS;
      const named = heard.includes(undefined) ? undefined : heard.flatMap((one) => one ?? []);
      if (isForAll ? named !== undefined : named?.toSorted().join() !== ids.toSorted().join())
        return `Of ${count} items that ended, ${named?.length ?? "some"} were heard of.`;
    }
    return undefined;
  }

  async #lost(sender: Process): Promise<string | undefined> {
    const isSure = this.#isWell;
    const lost = { queue: "cars", key: "car1", fence: (this.#number += 1) };
    sender.wake.lost(lost);
    await aftermath();
    for (const process of this.#processes) {
      if (!process.watching.has("lost") || (!isSure && process !== sender)) continue;
      const times = process.lost.filter(({ fence }) => fence === lost.fence).length;
      if (times !== 1) return `A lease that was lost was told ${times} times.`;
    }
    return undefined;
  }

  /** What was missed is made good for: everybody who waits looks, soon after the carrier is back. */
  async #find(process: Process): Promise<string | undefined> {
    const { adapter } = process;
    if (!adapter.isDown) return undefined;
    const now = this.#clock.monotonic();
    process.downMs = now - process.lostAt;
    process.foundAt = now;
    this.#budgetsUnsureUntil = now + BUDGET_MS + 22_000;
    const stirred = new Map(Array.from(process.beds, ([queue, { bed }]) => [queue, bed.stirred]));
    for (const { bed } of process.beds.values()) bed.asleep = 1;
    adapter.find();
    // Subscriptions are tried again after a pause that doubled while the carrier was away. A first connection, each second.
    await this.#clock.pass(this.#againMs(process));
    for (const [queue, { bed }] of process.beds) {
      if (bed.stirred <= (stirred.get(queue) ?? 0))
        return `The carrier was away for ${process.downMs} ms, and those who wait in ${queue} were not told that it is back.`;
    }
    if (process.beds.size > 0 && !process.wake.hears)
      return `The carrier was away for ${process.downMs} ms, and long after that nothing is heard.`;
    return undefined;
  }

  /**
   * A subscription is tried again after a pause that doubles, and once more by each who joins, so that it is twice as long
   * as the time that has passed at most; a first connection each second.
   */
  #againMs({ downMs }: Process): number {
    return Math.max(2 * downMs, 250) + 300 + (this.#plan.isLazy ? 1_100 : 0);
  }

  #judgeListening(): string | undefined {
    const now = this.#clock.monotonic();
    for (const process of this.#processes) {
      const { adapter, neededUntil, wake, beds, foundAt } = process;
      if (adapter.isDown) {
        if (wake.hears) return "It says that it hears, and its carrier is away.";
        continue;
      }
      const isSettled = now - foundAt > this.#againMs(process);
      for (const [channel, until] of neededUntil) {
        const times = adapter.channels.filter((one) => one === channel).length;
        if (times > 1) return `${channel} was subscribed to ${times} times.`;
        if (until === Infinity && times === 0 && isSettled)
          return `Somebody waits for ${channel}, and it is not listened to.`;
        if (now - until > GONE_MS && times > 0 && isSettled)
          return `${channel} is listened to ${now - until} ms after the last one left.`;
      }
      for (const channel of adapter.channels) if (!neededUntil.has(channel)) return `Nobody has asked for ${channel}.`;
      if (beds.size > 0 && isSettled && !wake.hears) return "It says that it does not hear, and all is well.";
    }
    return undefined;
  }

  /** Once when it is lost, once when it is back. */
  #judgeEvents(): string | undefined {
    for (const { events } of this.#processes) {
      const types = events.map(({ type }) => type);
      if (types.some((type, index) => (index % 2 === 0 ? "wakes-lost" : "wakes-back") !== type))
        return `The carrier's state was told as ${types.join(", ")}.`;
    }
    return undefined;
  }

  async #finish(): Promise<string | undefined> {
    for (const process of this.#processes) {
      process.adapter.hintMood = "well";
      const problem = await this.#find(process);
      if (problem !== undefined) return problem;
    }
    // As good as new: all that was in trouble is over, and budgets are forgotten.
    await this.#clock.pass(90_000);
    this.#budgets.clear();
    this.#budgetsUnsureUntil = 0;
    const [sender, other] = this.#processes;
    if (sender === undefined || other === undefined) return undefined;
    for (const count of [2, 1, 3]) {
      await this.#sleep(other, "cars", 3);
      const problem =
        (await this.#work("cars", new Map([[sender, count]]))) ?? this.#judgeListening() ?? this.#judgeEvents();
      if (problem !== undefined) return problem;
    }
    for (const process of this.#processes) {
      // Those who neither listen nor tell cannot know.
      await this.#stir(process, "cars");
      const lost = process.events.filter(({ type }) => type === "wakes-lost").length;
      if (lost * 2 !== process.events.length) return "The carrier is back, and that was not told.";
    }
    return await this.#close();
  }

  async #close(): Promise<string | undefined> {
    for (const process of this.#processes) {
      const { wake, adapter } = process;
      let isClosed = false;
      const told = process.events.length;
      // About to listen.
      if (!process.watching.has("lost")) wake.onLost(() => undefined);
      void wake.close().then(() => (isClosed = true));
      await this.#clock.pass(1_300);
      if (!isClosed) return "It was not closed after 1.3 s.";
      if (process.events.length > told) return "It was closed, and told of trouble with its carrier.";
      if (adapter.subscriptions.size > 0) return `It was closed, and listens to ${adapter.channels.join(", ")}.`;
      const { published, listens } = adapter;
      wake.work("cars", 5);
      wake.stir("cars");
      wake.onWork("cars", new Bed());
      const bed = process.beds.get("cars")?.bed;
      if (bed !== undefined) bed.asleep = 1;
      for (const other of this.#processes) if (!other.adapter.isClosed) other.wake.stir("cars");
      await this.#clock.pass(30_000);
      if (adapter.published !== published || adapter.listens !== listens) return "It was closed, and goes on.";
      if (bed !== undefined && bed.asleep === 0) return "It was closed, and hears.";
    }
    return undefined;
  }
}

async function play(plan: Plan): Promise<string | undefined> {
  try {
    return await new World(plan).play();
  } catch (error) {
    return String(error);
  }
}

describe("wakes of random processes", { timeout: seedTimeoutMs(30_000) }, () => {
  test("reach those who were promised them", async (context) => {
    const seeds = new Seeds({ seeds: 400, longestMs: 15_000 });
    for (const seed of seeds) {
      const plan = drawPlan(seed);
      if ((await play(plan)) === undefined) continue;
      const script = await shrink(
        plan.script,
        async (shorter) => (await play({ ...plan, script: shorter })) !== undefined,
      );
      const problem = await play({ ...plan, script });
      const told = [{ ...plan, script: [] }, ...script].map((one) => JSON.stringify(one)).join("\n");
      assert.fail(`${String(problem)}\n${again(seed)}\n${told}`);
    }
    seeds.tell(context, "wakes");
  });
});
