import type { ConsulApi, Step } from "./api.ts";
import { assertReadable, lockPrefix, type LockState, lockState, lockStates } from "./lock-keys.ts";
import { type Outside, persist } from "./patience.ts";
import { stepsToNoteLosses, stepsToRepair, stepsToSweep } from "./rules.ts";

/** Locks as they stand in Consul, and the two notes that whoever looks may leave. */
export class LockReader {
  readonly #api: ConsulApi;
  readonly #prefix: string;
  readonly #outside: Outside;

  constructor(api: ConsulApi, prefix: string, outside: Outside) {
    this.#api = api;
    this.#prefix = prefix;
    this.#outside = outside;
  }

  lockOf(name: string): string {
    return lockPrefix(this.#prefix, name);
  }

  async read(name: string): Promise<LockState> {
    const lock = this.lockOf(name);
    const found = await persist(this.#outside, "a look at a lock", () => this.#api.list(lock));
    const state = lockState(name, lock, found);
    assertReadable(state);
    return state;
  }

  /** Those that cannot be read, too: one such key must not hide the other locks. */
  async list(): Promise<readonly LockState[]> {
    const prefix = `${this.#prefix}/`;
    const found = await persist(this.#outside, "a look at all locks", () => this.#api.list(prefix));
    return lockStates(this.#prefix, found);
  }

  /** Reads again if it wrote something, so that all who look say the same. */
  async readNoting(name: string): Promise<LockState> {
    const state = await this.read(name);
    return (await this.noteLosses(state)) ? await this.read(name) : state;
  }

  /** Whether a note was written. */
  async noteLosses(state: LockState): Promise<boolean> {
    return await this.#tryCommit(stepsToNoteLosses(this.lockOf(state.name), state, this.#outside.clock.wall()));
  }

  async sweep(state: LockState): Promise<void> {
    await this.#tryCommit(stepsToSweep(this.lockOf(state.name), state, this.#outside.clock.wall()));
  }

  /** Not if one of the keys was written again since. */
  async repair({ damaged }: LockState): Promise<void> {
    await persist(this.#outside, "the repair of a lock", () => this.#api.commit(stepsToRepair(damaged)));
  }

  /** Whoever may only read, or was too late, leaves it to others. */
  async #tryCommit(steps: readonly Step[] | undefined): Promise<boolean> {
    if (steps === undefined) return false;
    try {
      return (await this.#api.commit(steps)).ok;
    } catch {
      return false;
    }
  }
}
