/** Fenced registers, one per key: what an application's own store does with the fence that it is shown. */
export class Registers {
  readonly #highest = new Map<string, number>();

  /** Accepts unless a higher fence was seen before. */
  judge(key: string, fence: number): { readonly accepted: boolean; readonly highest: number } {
    const highest = this.#highest.get(key) ?? 0;
    const accepted = fence >= highest;
    if (accepted) this.#highest.set(key, fence);
    return { accepted, highest };
  }
}
