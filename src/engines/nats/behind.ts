import { lastToken } from "./subjects.ts";

/** What a listing of all keys says about each: how many stand in its lines, and how many come later. */
export class Behind {
  readonly #lines = new Map<string, Map<string, number>>();
  readonly #delayed = new Map<string, number>();

  constructor(lines: ReadonlyMap<string, number>, later: ReadonlyMap<string, number>) {
    for (const [subject, count] of lines) {
      const key = lastToken(subject);
      const line = this.#lines.get(key) ?? new Map<string, number>();
      this.#lines.set(key, line.set(subject, count));
    }
    for (const subject of later.keys()) {
      const key = keyOfLater(subject);
      this.#delayed.set(key, this.delayed(key) + 1);
    }
  }

  lineOf(key: string): ReadonlyMap<string, number> {
    return this.#lines.get(key) ?? new Map();
  }

  delayed(key: string): number {
    return this.#delayed.get(key) ?? 0;
  }
}

export function keyOfLater(subject: string): string {
  return subject.split(".").at(-2) ?? "";
}
