import type { Lease } from "../../../src/engine/port.ts";

const TIMES: ReadonlySet<string> = new Set(["at", "submittedAt", "since", "deadline", "dueAt"]);

/** A moment, in milliseconds since the script began. */
export class Moment {
  readonly ms: number;

  constructor(ms: number) {
    this.ms = ms;
  }
}

/**
 * Answers of different engines differ in what is theirs to choose: ids they give, fences, handles, and the time. An
 * id becomes the number of its item, a fence the number of its lease, a time the time since the script began.
 */
export class Answers {
  readonly #items = new Map<string, string>();
  readonly #fences = new Map<string, number>();
  /** Per key, the last fence: each must be higher than the one before. */
  readonly #highest = new Map<string, number>();
  readonly #zero: number;
  readonly #looseTimes: readonly string[];
  readonly #unknown: readonly string[];

  /**
   * @param zero by the wall clock, when the script began
   * @param unknown fields that the store does not have
   */
  constructor(zero: number, looseTimes: readonly string[], unknown: readonly string[]) {
    this.#zero = zero;
    this.#looseTimes = looseTimes;
    this.#unknown = unknown;
  }

  nameItem(id: string): void {
    if (id.startsWith("@")) this.#items.set(id, `given ${this.#items.size + 1}`);
  }

  nameFence({ queue, key, fence }: Lease): void {
    const name = JSON.stringify([queue, key]);
    const before = this.#highest.get(name) ?? 0;
    if (fence <= before) throw new Error(`Fence ${fence} of key ${key} came after ${before}.`);
    this.#highest.set(name, fence);
    this.#fences.set(fenceName({ queue, key }, fence), this.#fences.size + 1);
  }

  /** @param queue the one that was asked about */
  comparable(value: unknown, queue: string): unknown {
    return this.#comparable(value, { queue, key: "" });
  }

  #comparable(value: unknown, near: Near): unknown {
    if (typeof value === "string") return this.#items.get(value) ?? value.replace(/^random\d+-/, "queue-");
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
    if (value instanceof Error) return { error: Reflect.get(value, "code") as unknown };
    if (Array.isArray(value)) return value.map((one) => this.#comparable(one, near));
    const fields = new Map<string, unknown>(Object.entries(value));
    const key = fields.get("key");
    const nearer = typeof key === "string" ? { ...near, key } : near;
    // When a lease is found to have run out is left to the engine, and so is what follows from that.
    const isLate = fields.get("end") === "lost" || fields.get("state") === "cancelled";
    const entries = [...fields].flatMap(([name, field]): [string, unknown][] => {
      if (field === undefined || name === "handle" || this.#unknown.includes(name)) return [];
      if (TIMES.has(name))
        return [
          [
            name,
            isLate || this.#looseTimes.includes(name) || typeof field !== "number"
              ? "a time"
              : new Moment(field - this.#zero),
          ],
        ];
      if (name === "fence") return [[name, this.#fences.get(fenceName(nearer, field)) ?? "unknown"]];
      const inner = this.#comparable(field, nearer);
      // The items that one replaced are named in any order.
      return [[name, name === "replaced" && Array.isArray(inner) ? inner.map(String).toSorted() : inner]];
    });
    return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}

/** Stores count fences per key, per queue, or all together. */
interface Near {
  readonly queue: string;
  readonly key: string;
}

function fenceName({ queue, key }: Near, fence: unknown): string {
  return JSON.stringify([queue, key, fence]);
}

/** The same, but for times: what happens in one part of a script happens at its beginning in the model. */
export function isSame(model: unknown, store: unknown, toleranceMs: number): boolean {
  if (model instanceof Moment && store instanceof Moment) {
    return store.ms > model.ms - MS && store.ms < model.ms + toleranceMs;
  }
  if (typeof model !== "object" || typeof store !== "object" || model === null || store === null)
    return model === store;
  const names = Object.keys(model);
  return (
    names.length === Object.keys(store).length &&
    Array.isArray(model) === Array.isArray(store) &&
    names.every((name) => isSame(Reflect.get(model, name), Reflect.get(store, name), toleranceMs))
  );
}

/** Clocks of different programs are read in whole milliseconds. */
const MS = 5;
