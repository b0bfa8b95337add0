import { instant, pause } from "../../domain/clock.ts";
import type { Lease } from "../../engine/port.ts";
import type { Handle } from "./handle.ts";
import { integer, text } from "./rows.ts";
import { LEASED } from "./sql/functions.ts";

/**
 * At once, and again: the server goes on with a statement whose client is gone, and may commit it only then. No statement of ours takes
 * as long as the last of these.
 */
const LOOK_AFTER_MS = [0, 1_000, 4_000, 16_000] as const;
/** A server that cannot be asked is asked again after so long. */
const ASK_AGAIN_MS = 500;

/**
 * Leases that the store gave to this handle in a call whose reply was lost. Nobody works under them, and nobody else would get their keys
 * before they run out; so after a call whose outcome is unknown the handle asks what it has, and gives back, untried, what it never heard of.
 */
export class Unheard {
  readonly #handle: Handle;
  readonly #giveBack: (leases: readonly Lease[]) => Promise<void>;
  /** The fences of what somebody here has, or had and has not ended. */
  readonly #heard = new Set<number>();
  #isSuspicious = false;
  /** Which outcome it was that became unknown last. */
  #round = 0;

  constructor(handle: Handle, giveBack: (leases: readonly Lease[]) => Promise<void>) {
    this.#handle = handle;
    this.#giveBack = giveBack;
  }

  heard({ fence }: Lease): void {
    this.#heard.add(fence);
  }

  /** Ended, or lost. */
  over(fence: number): void {
    this.#heard.delete(fence);
  }

  /** The outcome of a call is unknown. */
  suspect(): void {
    this.#isSuspicious = true;
    this.#round += 1;
    void this.#search(this.#round);
  }

  /** What it suspects, it looks for once more. */
  async close(): Promise<void> {
    this.#round += 1;
    if (!this.#isSuspicious) return;
    try {
      await this.#look();
    } catch {
      // They run out by themselves.
    }
  }

  /** Until it is done, or another outcome has become unknown meanwhile. */
  async #search(round: number): Promise<void> {
    const { clock } = this.#handle;
    for (const pauseMs of LOOK_AFTER_MS) {
      await pause(clock, pauseMs);
      while (round === this.#round) {
        try {
          await this.#look();
          break;
        } catch {
          await pause(clock, ASK_AGAIN_MS);
        }
      }
    }
    if (round === this.#round) this.#isSuspicious = false;
  }

  async #look(): Promise<void> {
    // While no other call is under way, so that every lease of the store is either known here or unheard of.
    const leases = await this.#handle.lane.call(() => this.#find());
    if (leases.length > 0) await this.#giveBack(leases);
  }

  /** By the timers, which every lease has: how many keys merely wait does not matter. */
  async #find(): Promise<readonly Lease[]> {
    const { link, clock, me, queues } = this.#handle;
    const { schema } = link;
    const since = instant(clock);
    const rows = await link.query(
      "baton_leases",
      `SELECT k.id, k.fence, k.queue, k.name FROM (SELECT DISTINCT u.kid FROM ${schema}.timer t, unnest(t.keys) u(kid)) d
       CROSS JOIN LATERAL (SELECT * FROM ${schema}.key y WHERE y.id = d.kid AND y.state = ${LEASED} AND y.owner = $1 OFFSET 0) k`,
      [me],
    );
    const unheard = rows.filter((row) => !this.#heard.has(integer(row, 1)));
    return unheard.map((row) => ({
      queue: queues.byId(integer(row, 2))?.name ?? "",
      key: text(row, 3),
      fence: integer(row, 1),
      since,
      handle: integer(row, 0),
    }));
  }
}
