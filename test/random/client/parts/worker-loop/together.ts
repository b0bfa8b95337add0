import type { GrantedLease } from "./leases.ts";

/** One loop of the process, as far as it matters to the others. */
export interface Neighbour {
  /** Nothing of it runs, is kept, waits to be settled or is asked for, but what waits to run alone. */
  readonly isQuiet: boolean;
  /** From now on nothing is begun but what runs alone. */
  hushed(): void;
}

/** What all loops of one process must keep to: an item that was lost twice runs when nothing else does. */
export class Together {
  readonly loops: Neighbour[] = [];
  readonly waiting: Set<GrantedLease> = new Set();
  alone: GrantedLease | undefined;

  /** Nothing may begin, be kept or be asked for. */
  get isWanted(): boolean {
    return this.alone !== undefined || this.waiting.size > 0;
  }

  wait(lease: GrantedLease): void {
    this.waiting.add(lease);
    for (const loop of this.loops) loop.hushed();
  }

  /** It begins, or goes back without. Says what is wrong with that. */
  turn(lease: GrantedLease): string | undefined {
    if (!this.waiting.has(lease)) return undefined;
    const other = this.alone;
    const isQuiet = this.loops.every((loop) => loop.isQuiet);
    this.waiting.delete(lease);
    this.alone = lease;
    if (other !== undefined) return `${lease.key} comes to its turn while ${other.key} runs alone`;
    return isQuiet ? undefined : `${lease.key} comes to its turn, and is not alone in its process`;
  }

  over(lease: GrantedLease): void {
    this.waiting.delete(lease);
    if (this.alone === lease) this.alone = undefined;
  }

  /** Says what should have come to its turn by now. */
  problem(): string | undefined {
    const [lease] = this.waiting;
    const isDue = lease !== undefined && this.alone === undefined && this.loops.every(({ isQuiet }) => isQuiet);
    return isDue ? `${lease.key} waits to run alone, and nothing else runs` : undefined;
  }
}
