import assert from "node:assert/strict";
import type { LockReport, Locks } from "../../../src/locks/port.ts";

/** Watches locks for the length of a script: a holder that was told to be gone never comes back. */
export class Onlookers {
  readonly #end = new AbortController();
  readonly #watching: readonly Promise<void>[];
  readonly #returned: string[] = [];

  constructor(locks: Locks, names: readonly string[]) {
    this.#watching = names.map(async (name) => {
      const gone = new Set<number>();
      let before: readonly number[] = [];
      const changed = (report: LockReport | undefined): void => {
        const now = report?.holders.map(({ fence }) => fence) ?? [];
        for (const fence of before) if (!now.includes(fence)) gone.add(fence);
        for (const fence of now) if (gone.has(fence)) this.#returned.push(`fence ${fence} of ${name}`);
        before = now;
      };
      await locks.watch({ name, changed, signal: this.#end.signal });
    });
    // It is told when the script is over.
    for (const one of this.#watching) one.catch(() => undefined);
  }

  async stop(): Promise<void> {
    this.#end.abort();
    await Promise.all(this.#watching);
  }

  check(): void {
    assert.deepEqual(this.#returned, [], "holders that were gone come back");
  }
}
