import type { Lease } from "../../src/engine/port.ts";

const TIMES: ReadonlySet<string> = new Set(["at", "submittedAt", "since", "deadline", "dueAt"]);

/**
 * Answers of different engines differ in what is theirs to choose: ids they give, fences, handles, and the time. An
 * id becomes the number of its item, a fence the number of its lease, a time merely a time.
 */
export class Answers {
  readonly #items = new Map<string, string>();
  readonly #fences = new Map<string, number>();
  /** Per key, the last fence: each must be higher than the one before. */
  readonly #highest = new Map<string, number>();

  nameItem(id: string): void {
    if (id.startsWith("@")) this.#items.set(id, `given ${this.#items.size + 1}`);
  }

  nameFence({ queue, key, fence }: Lease): void {
    const name = JSON.stringify([queue, key]);
    const before = this.#highest.get(name) ?? 0;
    if (fence <= before) throw new Error(`Fence ${fence} of key ${key} came after ${before}.`);
    this.#highest.set(name, fence);
    this.#fences.set(JSON.stringify(fence), this.#fences.size + 1);
  }

  comparable(value: unknown, prefix: string): unknown {
    if (typeof value === "string") return this.#items.get(value) ?? value.replace(prefix, "queue");
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Uint8Array) return `bytes ${Buffer.from(value).toString("hex")}`;
    if (value instanceof Error) return { error: Reflect.get(value, "code") as unknown };
    if (Array.isArray(value)) return value.map((one) => this.comparable(one, prefix));
    const entries = Object.entries(value).flatMap(([name, field]: [string, unknown]): [string, unknown][] => {
      if (field === undefined || name === "handle") return [];
      if (TIMES.has(name)) return [[name, "a time"]];
      if (name === "fence") return [[name, this.#fences.get(JSON.stringify(field)) ?? "unknown"]];
      return [[name, this.comparable(field, prefix)]];
    });
    return Object.fromEntries(entries.toSorted(([a], [b]) => (a < b ? -1 : 1)));
  }
}
