/**
 * What a store must offer so that `locks-on-register.ts` can keep locks in it: named cells that change by compare-and-swap
 * alone. Every engine of ours has one; the rules of locks are written once, above it.
 *
 * Names of cells are `kind/rest`: the kind is of lower-case letters, the rest any text that is not empty.
 */
export interface Register {
  /** The cell as it stands: never an older one than the last write that was answered, whoever wrote it. */
  read(name: string): Promise<Cell | undefined>;

  /**
   * Writes the cell if it is still at `expected` (0: not there). Returns the new version, which is greater than every version that any cell of
   * this store ever had, also across restarts; undefined when the cell is at another. `OutcomeUnknown`: the reply was lost.
   */
  write(request: WriteRequest): Promise<number | undefined>;

  /**
   * Calls back when the cell may have changed. A hint: it may come too often, late, a moment before the change can be read (then
   * it comes again), or be lost with the connection, after which it is called once. Nothing is said when a cell's time runs out.
   */
  watch(name: string, changed: () => void): Promise<{ stop(): void }>;

  /**
   * Calls back when a write has told this name, after which the write can be read. A hint, too: it may come too often, late, or be
   * lost with the connection, after which it is called once. The name stands for no cell, only for whoever listens.
   */
  listen(name: string, told: () => void): Promise<{ stop(): void }>;

  /** The cells whose names begin with the prefix, which holds at least a kind and its `/`; by name. */
  list(prefix: string): Promise<readonly Cell[]>;

  close(): Promise<void>;
}

export interface Cell {
  readonly name: string;
  readonly version: number;
  readonly value: string;
}

export interface WriteRequest {
  readonly name: string;
  readonly expected: number;
  /** Undefined: remove the cell. */
  readonly value: string | undefined;
  /** The store removes the cell by itself when it was not written for this long; never earlier. */
  readonly ttlMs?: number;
  /** Names whose listeners are to hear of it when it is written. */
  readonly tell?: readonly string[];
  /** Nobody is in a hurry to hear of it: those who watch the cell may be told a second later, if that is cheaper. */
  readonly isQuiet?: boolean;
}
