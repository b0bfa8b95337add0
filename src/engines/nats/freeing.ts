/** Frees keys whose lease is over. */
import { pause } from "../../domain/clock.ts";
import { end, type Ended, expire } from "./endings.ts";
import type { KeyStore } from "./key-store.ts";
import type { Held } from "./own-leases.ts";
import type { Sessions } from "./sessions.ts";
import type { KeyState, Seen, StateLease } from "./state.ts";
import type { Token } from "./token.ts";

/** Between two tries to free a key while the server is away. */
const PUT_BACK_MS = 1_000;

export interface FreeingHooks {
  /** A lease was over, and this write has freed its key. */
  readonly lost: (key: string, written: Seen) => void;
  /** After such a write the key is ready. */
  readonly freed: (token: Token) => void;
}

export class Freeing {
  readonly #store: KeyStore;
  readonly #sessions: Sessions;
  readonly #hooks: FreeingHooks;
  #closed = false;

  constructor(store: KeyStore, sessions: Sessions, hooks: FreeingHooks) {
    this.#store = store;
    this.#sessions = sessions;
    this.#hooks = hooks;
  }

  /** What could not be freed yet is left to others. */
  close(): void {
    this.#closed = true;
  }

  /** Frees a key whose lease is over, if it still has the lease that is meant. */
  async putBack(key: string, isMeant: (lease: StateLease) => boolean): Promise<void> {
    await this.#letGo(key, ({ state }, now) => {
      return state.lease === undefined || !isMeant(state.lease) ? undefined : without(state, expire(state, now));
    });
  }

  /**
   * Where nobody claims, nobody may have noticed that a holder is gone. And a key may have been handed to somebody who died while
   * waiting for it, and whose session was removed before.
   */
  async freeOfDead(key: string): Promise<void> {
    const { lease } = (await this.#store.read(key)).state;
    if (lease === undefined || (await this.#sessions.isAlive(lease.session))) return;
    await this.putBack(key, ({ session }) => session === lease.session);
  }

  /** This process's session lives on: nobody else would free the key. */
  async putBackSurely(held: Held): Promise<void> {
    await this.#surely(() =>
      this.putBack(held.key, (lease) => held.isMine(lease) && lease.session === held.session.id),
    );
  }

  /**
   * The same for a lease that nobody was told of, if it was written at all: no attempt is counted. Where there is nothing, something is written,
   * so that a write that is still on its way comes too late.
   */
  async giveUpSurely(key: string, nonce: string | undefined): Promise<void> {
    await this.#surely(() =>
      this.#letGo(key, ({ sequence, state }, now) => {
        if (sequence === 0) return state;
        return state.lease?.nonce === nonce
          ? without(state, end(key, state, { ending: { type: "unused" } }, now))
          : undefined;
      }),
    );
  }

  /** The same for one that may have been written in place of a lease that is still this process's. */
  async giveUpNextSurely(key: string, nonce: string, fence: number): Promise<void> {
    await this.#surely(async () => {
      // From here on a write of it that is still on its way comes too late.
      await this.#store.change(key, ({ state }) => (state.lease?.fence === fence ? { ...state } : undefined));
      await this.#letGo(key, ({ state }, now) =>
        state.lease?.nonce === nonce ? without(state, end(key, state, { ending: { type: "unused" } }, now)) : undefined,
      );
    });
  }

  async #surely(work: () => Promise<void>): Promise<void> {
    while (!this.#closed) {
      try {
        await work();
        return;
      } catch {
        await pause(this.#store.clock, PUT_BACK_MS);
      }
    }
  }

  async #letGo(key: string, ends: (seen: Seen, now: number) => KeyState | undefined): Promise<void> {
    const written = await this.#store.letGo(key, ends);
    if (written !== undefined) this.#hooks.lost(key, written);
    if (written?.state.kind === "ready") this.#hooks.freed({ key, seen: written, delivery: undefined });
    if (written?.state.kind === "held") await this.freeOfDead(key);
  }
}

/** A key whose lease has ended so. */
export function without(state: KeyState, { items, todo, alone }: Ended): KeyState {
  return { ...state, items, alone, lease: undefined, todo: [...state.todo, ...todo] };
}
