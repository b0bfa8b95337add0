/** Keys that have come, while it is looked whether something more urgent should come first: in a cluster it may come later. */
import type { Lag } from "./lag.ts";
import type { Token } from "./token.ts";

export class InTurn {
  readonly #lag: Lag;
  readonly #take: (level: number, token: Token) => void;
  readonly #stir: () => void;
  /** Per level. */
  readonly #unsure: Token[][];

  /** @param take hears of each when its turn has come, and then `stir` of all together */
  constructor(levels: number, lag: Lag, take: (level: number, token: Token) => void, stir: () => void) {
    this.#lag = lag;
    this.#stir = stir;
    this.#take = take;
    this.#unsure = Array.from({ length: levels }, () => []);
  }

  get count(): number {
    let count = 0;
    for (const { length } of this.#unsure) count += length;
    return count;
  }

  hasAny(level: number): boolean {
    return (this.#unsure[level] ?? []).length > 0;
  }

  takeAll(): readonly Token[] {
    return this.#unsure.flatMap((unsure) => unsure.splice(0));
  }

  /** Not before what is more urgent and was there first, unless that cannot be told. */
  async add(level: number, token: Token): Promise<void> {
    const unsure = this.#unsure[level];
    if (unsure === undefined || unsure.push(token) > 1) return;
    while (unsure.length > 0) {
      // One look for all that come in one turn.
      await Promise.resolve();
      const { length } = unsure;
      await this.#lag.caughtUp(level).catch(() => undefined);
      for (const sure of unsure.splice(0, length)) this.#take(level, sure);
    }
    this.#stir();
  }
}
