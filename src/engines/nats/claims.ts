/**
 * Hands out ready keys. With free slots the consumers are asked level by level, most urgent first; when all are empty, one
 * pull per level stands at the server and nothing is asked until something comes. Nothing is kept that cannot start now.
 */
import { type Clock, pause, type Timer } from "../../domain/clock.ts";
import { LevelChooser } from "../../domain/level.ts";
import type { ClaimRequest, Grant } from "../../engine/port.ts";
import { asError } from "./as-error.ts";
import { decodeState } from "./codec.ts";
import { announcedBy, type KeyStore } from "./key-store.ts";
import type { Held, Leases, Token } from "./leases.ts";
import type { Pulled, Pulls } from "./pulls.ts";
import { lastToken } from "./subjects.ts";
import type { Wire } from "./wire.ts";

/** A grant that was made in advance is given back when nobody asks for it. */
const RESERVED_MS = 25;
/** A consumer of a cluster follows its stream within this, unless something is wrong. */
const BEHIND_MS = 10;

interface WaitingClaim {
  readonly request: ClaimRequest;
  readonly answer: (grants: readonly Grant[]) => void;
}

interface Arrived {
  readonly level: number;
  readonly token: Token;
}

export class Claims {
  readonly #store: KeyStore;
  readonly #leases: Leases;
  readonly #pulls: Pulls;
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #takeIn: () => Promise<void>;
  readonly #chooser = new LevelChooser();
  readonly #waiting: WaitingClaim[] = [];
  /** What standing pulls brought while a claim waits. */
  #arrived: Arrived[] = [];
  #reserved: { readonly held: Held; readonly level: number; readonly since: number }[] = [];
  /** Per level: when what is first there was made, as far as this process knows. */
  readonly #seenAt: number[];
  #hunting = false;
  #wakeUp: (() => void) | undefined;
  #stirred = false;
  #timer: Timer | undefined;
  #closed = false;

  /** @param takeIn takes in what has come due, before anything is handed out */
  constructor(store: KeyStore, leases: Leases, pulls: Pulls, wire: Wire, takeIn: () => Promise<void>) {
    this.#store = store;
    this.#leases = leases;
    this.#pulls = pulls;
    this.#wire = wire;
    this.#takeIn = takeIn;
    this.#clock = store.clock;
    this.#seenAt = Array.from({ length: store.levels }, () => this.#clock.wall());
  }

  /** Whether the next item of a key that is settled now finds a claim here that waits for it. */
  get goesOn(): boolean {
    if (this.#closed) return false;
    let wanted = 0;
    for (const { request } of this.#waiting) if (!request.signal.aborted) wanted += request.max;
    return wanted > this.#reserved.length;
  }

  claim(request: ClaimRequest): Promise<readonly Grant[]> {
    if (request.signal.aborted || this.#closed) return Promise.resolve([]);
    return new Promise((resolve) => {
      const claim: WaitingClaim = {
        request,
        answer: (grants) => {
          request.signal.removeEventListener("abort", giveUp);
          const at = this.#waiting.indexOf(claim);
          if (at !== -1) this.#waiting.splice(at, 1);
          resolve(grants);
        },
      };
      const giveUp = (): void => {
        // One that is being served is answered with what it got.
        if (this.#serving !== claim) claim.answer([]);
        this.stir();
      };
      request.signal.addEventListener("abort", giveUp);
      this.#waiting.push(claim);
      this.stir();
      void this.#hunt();
    });
  }

  #serving: WaitingClaim | undefined;

  /** A standing pull brought something. */
  arrive(level: number, pulled: Pulled): void {
    if (this.#waiting.length === 0 || this.#closed) {
      this.#giveBack(pulled.reply);
      return;
    }
    for (const token of this.#readable([pulled])) this.#arrived.push({ level, token });
    this.stir();
  }

  /** The next item of a key that was just settled, under a lease that was made with it. */
  reserve(held: Held): void {
    const since = this.#clock.monotonic();
    this.#reserved.push({ held, level: held.seen.state.items[0]?.level ?? 0, since });
    this.#timer ??= this.#clock.setTimer(RESERVED_MS, () => this.#releaseReserved());
    this.stir();
  }

  /** Something may have changed: the pulls that stand may not know. */
  lookAnew(): void {
    this.#pulls.forgetStanding();
    this.stir();
  }

  stir(): void {
    this.#stirred = true;
    this.#wakeUp?.();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#timer?.cancel();
    this.stir();
    for (const claim of this.#waiting.filter((one) => one !== this.#serving)) claim.answer([]);
    for (const { token } of this.#arrived.splice(0)) this.#giveBack(token.reply);
    await Promise.allSettled(this.#reserved.splice(0).map(({ held }) => this.#leases.release(held)));
  }

  async #hunt(): Promise<void> {
    if (this.#hunting) return;
    this.#hunting = true;
    try {
      for (;;) {
        const claim = this.#waiting[0];
        if (claim === undefined) return;
        this.#serving = claim;
        // Whoever claims settles in the same turn: what that brings comes first.
        await Promise.resolve();
        this.#stirred = false;
        const grants = await this.#serve(claim.request);
        this.#serving = undefined;
        if (grants.length > 0 || claim.request.signal.aborted || this.#closed) claim.answer(grants);
        else await this.#standBy();
      }
    } finally {
      this.#serving = undefined;
      this.#hunting = false;
      for (const { token } of this.#arrived.splice(0)) this.#giveBack(token.reply);
    }
  }

  async #serve(request: ClaimRequest): Promise<readonly Grant[]> {
    try {
      return await this.#gather(request);
    } catch {
      // The server is away, or choosing a leader. The claim goes on when it is back.
      await pause(this.#clock, 100);
      this.#stirred = true;
      return [];
    }
  }

  async #gather(request: ClaimRequest): Promise<readonly Grant[]> {
    const grants: Grant[] = [];
    const { max, signal } = request;
    await this.#takeIn();
    const turns = this.#impatientTurns(max, request.patienceMs);
    for (let turn = 0; turn < turns && grants.length < max; turn += 1) {
      grants.push(...(await this.#takeImpatient(request)));
    }
    for (let level = 0; level < this.#store.levels && grants.length < max; level += 1) {
      if (signal.aborted || this.#closed) break;
      grants.push(...(await this.#takeAt(level, max - grants.length, request)));
    }
    return grants;
  }

  /** How many of so many grants go to levels that have waited longer than their patience. */
  #impatientTurns(max: number, patienceMs: number): number {
    const now = this.#clock.wall();
    const waited = this.#seenAt.map((at) => now - at);
    if (!waited.some((ms, level) => level > 0 && ms > patienceMs)) return 0;
    let turns = 0;
    for (let grant = 0; grant < max; grant += 1) if ((this.#chooser.choose(waited, patienceMs) ?? 0) > 0) turns += 1;
    return turns;
  }

  /** One grant out of turn, of the level that has waited longest. */
  async #takeImpatient(request: ClaimRequest): Promise<readonly Grant[]> {
    const now = this.#clock.wall();
    const levels = [...this.#seenAt.keys()]
      .filter((level) => level > 0 && now - (this.#seenAt[level] ?? now) > request.patienceMs)
      .toSorted((a, b) => (this.#seenAt[a] ?? 0) - (this.#seenAt[b] ?? 0));
    for (const level of levels) {
      const grants = await this.#takeAt(level, 1, request);
      if (grants.length > 0) return grants;
    }
    return [];
  }

  async #takeAt(level: number, want: number, request: ClaimRequest): Promise<readonly Grant[]> {
    const grants = this.#takeReserved(level, want, request.worker);
    while (grants.length < want && !request.signal.aborted && !this.#closed) {
      const tokens = await this.#tokensAt(level, this.#free(level, want - grants.length));
      if (tokens.length === 0) break;
      const started = await Promise.allSettled(tokens.map((token) => this.#start(token, request)));
      for (const one of started) if (one.status === "fulfilled" && one.value !== undefined) grants.push(one.value);
      const failed = started.find((one) => one.status === "rejected");
      if (failed !== undefined && grants.length === 0) throw asError(failed.reason);
    }
    return grants;
  }

  /** Slots that no settlement on its way will fill; but always one for what is more urgent than that. */
  #free(level: number, want: number): number {
    const { count, level: next } = this.#leases.goingOn;
    return Math.max(want - count, count > 0 && level < next ? 1 : 0);
  }

  #takeReserved(level: number, want: number, worker: string): Grant[] {
    const grants: Grant[] = [];
    this.#reserved = this.#reserved.filter((entry) => {
      if (grants.length >= want || entry.level !== level || entry.held.worker !== worker) return true;
      if (entry.held.over || entry.held.session.dead) return false;
      grants.push(this.#leases.grant(entry.held));
      return false;
    });
    return grants;
  }

  async #tokensAt(level: number, want: number): Promise<readonly Token[]> {
    const arrived = this.#arrived.filter((one) => one.level === level).slice(0, Math.max(want, 0));
    this.#arrived = this.#arrived.filter((one) => !arrived.includes(one));
    const tokens = arrived.map(({ token }) => token);
    // While a pull stands there, nothing is there.
    if (want <= 0 || tokens.length >= want || this.#pulls.isStanding(level)) return tokens;
    let pulled = await this.#pulls.quick(level, want - tokens.length);
    if (pulled.length === 0 && (await this.#isBehind(level)))
      pulled = await this.#pulls.quick(level, want - tokens.length);
    const newest = pulled.at(-1);
    this.#seenAt[level] = newest === undefined || newest.left === 0 ? this.#clock.wall() : newest.at;
    return [...tokens, ...this.#readable(pulled)];
  }

  /** In a cluster the consumer may learn of a key a moment after its stream has it. True: so it was, and that moment is over. */
  async #isBehind(level: number): Promise<boolean> {
    const { js, subjects } = this.#store;
    if (level === this.#store.levels - 1 || !js.isReplicated(subjects.stream)) return false;
    if ((await js.last(subjects.stream, subjects.readyAt(level))) === undefined) return false;
    await pause(this.#clock, BEHIND_MS);
    return true;
  }

  /** A message that Baton did not write must not keep its level from being handed out. */
  #readable(pulled: readonly Pulled[]): readonly Token[] {
    return pulled.flatMap((one) => {
      try {
        return [tokenOf(one)];
      } catch {
        this.#wire.publish(one.reply, "+TERM");
        return [];
      }
    });
  }

  async #start(token: Token, request: ClaimRequest): Promise<Grant | undefined> {
    const held = await this.#leases.start(token, request.worker, request.leaseMs);
    if (held !== undefined) return (await this.#isVoid(held)) ? undefined : this.#leases.grant(held);
    const found = await this.#store.read(token.key);
    // Still what the key is known by, but not for this try: it comes back.
    this.#wire.publish(token.reply, announcedBy(found) === token.seen.sequence ? "-NAK" : "+ACK");
    return undefined;
  }

  /** What is not to run is dropped without a word. */
  async #isVoid(held: Held): Promise<boolean> {
    if (!(await this.#store.isVoid(held.seen.state.items[0]))) return false;
    await this.#leases.drop(held);
    return true;
  }

  async #standBy(): Promise<void> {
    if (this.#stirred) return;
    if (this.#leases.goingOn.count === 0)
      for (let level = 0; level < this.#store.levels; level += 1) this.#pulls.stand(level, 1);
    await new Promise<void>((resolve) => {
      this.#wakeUp = resolve;
    });
    this.#wakeUp = undefined;
  }

  #releaseReserved(): void {
    this.#timer = undefined;
    const now = this.#clock.monotonic();
    const unwanted = this.#reserved.filter(({ since }) => now - since >= RESERVED_MS);
    this.#reserved = this.#reserved.filter((entry) => !unwanted.includes(entry));
    for (const { held } of unwanted) this.#store.background(this.#leases.release(held));
    const [oldest] = this.#reserved;
    if (oldest === undefined) return;
    this.#timer = this.#clock.setTimer(RESERVED_MS - (now - oldest.since) + 1, () => this.#releaseReserved());
  }

  #giveBack(reply: string): void {
    this.#wire.publish(reply, "-NAK");
  }
}

function tokenOf({ data, reply, sequence, subject }: Pulled): Token {
  return { key: lastToken(subject), seen: { sequence, state: decodeState(data, sequence) }, reply };
}
