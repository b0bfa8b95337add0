import type { Due } from "./receipts.ts";
import { lastToken } from "./subjects.ts";

/** What a listing of all keys says about each: how many stand in its lines, have come due, and come later. */
export class Behind {
  readonly #lines = new Map<string, Map<string, number>>();
  readonly #delayed = new Map<string, number>();

  readonly #due = new Map<string, number>();

  constructor(lines: ReadonlyMap<string, number>, later: ReadonlyMap<string, number>, due: readonly Due[]) {
    for (const [subject, count] of lines) {
      const key = lastToken(subject);
      const line = this.#lines.get(key) ?? new Map<string, number>();
      this.#lines.set(key, line.set(subject, count));
    }
    for (const subject of later.keys()) {
      const key = keyOfLater(subject);
      this.#delayed.set(key, this.delayed(key) + 1);
    }
    for (const { key } of due) this.#due.set(key, this.due(key) + 1);
  }

  lineOf(key: string): ReadonlyMap<string, number> {
    return this.#lines.get(key) ?? new Map();
  }

  due(key: string): number {
    return this.#due.get(key) ?? 0;
  }

  delayed(key: string): number {
    return this.#delayed.get(key) ?? 0;
  }
}

export function keyOfLater(subject: string): string {
  return subject.split(".").at(-2) ?? "";
}
