/**
 * All chance in a run comes from here, so that one number tells the whole story. mulberry32: small, fast, and good
 * enough to pick faults; nothing is encrypted with it.
 */
export class Random {
  #state: number;

  constructor(seed: number) {
    // Seeds are counted up by one; without mixing, neighbours would begin alike.
    this.#state = mix(seed);
  }

  /** From 0 up to, not including, 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number, both ends included. */
  between(lowest: number, highest: number): number {
    return lowest + Math.floor(this.next() * (highest - lowest + 1));
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<T>(choices: readonly T[]): T {
    if (choices.length === 0) throw new Error("There is nothing to pick from.");
    return choices[Math.floor(this.next() * choices.length)] as T;
  }

  /** A source of its own: what one part draws does not change what another part gets. */
  fork(): Random {
    return new Random(this.between(0, 0x7fff_ffff));
  }
}

function mix(seed: number): number {
  let bits = seed | 0;
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35);
  return bits ^ (bits >>> 16);
}
