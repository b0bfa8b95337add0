import type { TestContext } from "node:test";
import { inspect } from "node:util";
import { Random } from "../../../kit/random.ts";
import { again, type Seeds } from "../../../kit/seeds.ts";
import { shrinkEntries, shrinkLists } from "../../../kit/shrink.ts";
import { readable } from "../readable.ts";
import type { Store } from "../store.ts";
import { checkHistory } from "./check.ts";
import { LosingWay } from "./losing-way.ts";
import { makePlan, type Plan } from "./plan.ts";
import { freeze } from "./freeze.ts";
import { race } from "./races.ts";
import { Play } from "./play.ts";
import type { Engine } from "../../../../src/engine/port.ts";

const SHRINK_MS = 60_000;
/** What came of chance once comes again within so many tries, which are made together, or is not held to be shown. */
const TRIES = 4;
const SHRINK_AT_ONCE = 3;
const HANDLES = 3;
/** Replies that are lost are lost for all who share a way: each is lent to one plan at a time. */
const WAYS = 4;

/** A handle that loses replies. */
interface Lossy {
  readonly engine: Engine;
  readonly way: LosingWay;
}

/** Those that the plans share. */
class Shared {
  readonly sure: readonly Engine[];
  readonly #lossy: readonly Lossy[];
  readonly #free: Lossy[];
  readonly #line: ((lossy: Lossy) => void)[] = [];

  static async of(store: Store): Promise<Shared> {
    const sure = await Promise.all(Array.from({ length: HANDLES }, () => store.open()));
    const { port, openAt } = store;
    if (port === undefined || openAt === undefined) return new Shared(sure, []);
    const lossy = Array.from({ length: WAYS }, async () => {
      const way = await LosingWay.to(port());
      return { engine: await openAt(way.host), way };
    });
    return new Shared(sure, await Promise.all(lossy));
  }

  private constructor(sure: readonly Engine[], lossy: readonly Lossy[]) {
    this.sure = sure;
    this.#lossy = lossy;
    this.#free = [...lossy];
  }

  get hasRuns(): boolean {
    return this.sure.every(({ runs }) => runs === true);
  }

  get canLose(): boolean {
    return this.#lossy.length > 0;
  }

  async lend(): Promise<Lossy> {
    return this.#free.pop() ?? (await new Promise<Lossy>((resolve) => this.#line.push(resolve)));
  }

  giveBack(lossy: Lossy): void {
    const next = this.#line.shift();
    if (next === undefined) this.#free.push(lossy);
    else next(lossy);
  }

  async close(): Promise<void> {
    await Promise.all([...this.sure, ...this.#lossy.map(({ engine }) => engine)].map((engine) => engine.close()));
    for (const { way } of this.#lossy) way.close();
  }
}

interface Failed {
  readonly seed: number;
  readonly plan: Plan;
  readonly found: readonly string[];
}

/** Plays plans on the store, some side by side, and checks their histories. */
export async function playConcurrent(context: TestContext, store: Store, seeds: Seeds): Promise<void> {
  const shared = await Shared.of(store);
  const left = seeds[Symbol.iterator]();
  let failed: Failed | undefined;
  const lane = async (): Promise<void> => {
    for (let next = left.next(); next.done !== true && failed === undefined; next = left.next()) {
      const seed: number = next.value;
      const random = new Random(seed);
      const isLossy = random.chance(0.3) && shared.canLose;
      const plan = makePlan(random, isLossy, store.rounds, shared.hasRuns);
      const found = await violations(store, shared, plan);
      if (found.length > 0) failed ??= { seed, plan, found };
    }
  };
  try {
    await Promise.all(Array.from({ length: store.plansAtOnce }, lane));
    seeds.tell(context, `plans for several handles on ${store.name}`);
    if (failed !== undefined) throw new Error(await told(store, shared, failed));
    // After the plans: nothing else is asked meanwhile.
    const wrong = [...(await race(store, shared.sure, new Random(seeds.from)))];
    for (const first of ["settle", "renew"] as const)
      wrong.push(...(await freeze(store, shared.sure, new Random(seeds.from), first)));
    if (wrong.length > 0)
      throw new Error(
        `What came at once, or too late, went wrong on ${store.name}; ${again(seeds.from)}:\n  ${wrong.slice(0, 8).join("\n  ")}`,
      );
  } finally {
    await shared.close();
  }
}

let played = 0;

async function violations(store: Store, shared: Shared, plan: Plan): Promise<readonly string[]> {
  const lossy = plan.isLossy ? await shared.lend() : undefined;
  try {
    const stage = {
      engines: lossy === undefined ? shared.sure : [...shared.sure.slice(0, -1), lossy.engine],
      way: lossy?.way,
      queue: `plan${(played += 1)}`,
      shortMs: store.unitMs / 2,
      lateMs: store.lateMs,
      countsExactly: store.countsExactly,
      comesWhenAsked: store.comesWhenAsked,
    };
    const play = new Play(stage, plan);
    const terms = { ...plan, exactLimits: store.exactLimits, runs: shared.hasRuns };
    // What a call fails with that should not fail is as much a failure as what it answers.
    const thrown = await play.play().then(
      () => [],
      (error: unknown) => [`a call failed: ${inspect(error)}`],
    );
    return [...thrown, ...play.found, ...checkHistory(play.history, terms)];
  } finally {
    if (lossy !== undefined) shared.giveBack(lossy);
  }
}

async function told(store: Store, shared: Shared, { seed, plan, found }: Failed): Promise<string> {
  let smallest = { plan, found };
  const end = performance.now() + SHRINK_MS;
  const fails = async (rounds: Plan["rounds"]): Promise<boolean> => {
    if (performance.now() > end) return false;
    const shorter = { ...plan, rounds };
    const tries = await Promise.all(Array.from({ length: TRIES }, () => violations(store, shared, shorter)));
    const more = tries.find(({ length }) => length > 0);
    if (more !== undefined) smallest = { plan: shorter, found: more };
    return more !== undefined;
  };
  const rounds = await shrinkLists(plan.rounds, fails, SHRINK_AT_ONCE);
  await shrinkEntries(rounds, fails, SHRINK_AT_ONCE);
  const { rounds: shortest, ...terms } = smallest.plan;
  const lines = shortest.map((round) => readable(round)).join("\n");
  return (
    `The history of plan ${seed} on ${store.name} is not one of Baton's; ${again(seed)}. The shortest plan that showed it, ` +
    `with ${JSON.stringify(terms)}:\n${lines}\n  ${listed(smallest.found)}` +
    // What came of chance may be another failure than this one.
    (smallest.found === found ? "" : `\n  at first, with the whole plan:\n  ${listed(found)}`)
  );
}

function listed(found: readonly string[]): string {
  return found.slice(0, 8).join("\n  ");
}
