import type { Instant } from "../../../src/domain/clock.ts";
import { BatonError } from "../../../src/domain/errors.ts";
import { leaseLeftMs, leaseMarginMs, renewAfterMs } from "../../../src/domain/lease.ts";
import { locksOnRegister } from "../../../src/locks/locks-on-register.ts";
import type { LockHold, Locks, Session } from "../../../src/locks/port.ts";
import type { Register } from "../../../src/locks/register.ts";
import type { Random } from "../../kit/random.ts";
import { ShiftedClock } from "../../simulation/shifted-clock.ts";
import type { VirtualTime } from "../../simulation/virtual-time.ts";
import type { Happening } from "./history.ts";
import { NetworkRegister } from "./network-register.ts";
import type { Plant } from "./planted.ts";
import type { Settings } from "./settings.ts";

export interface Surroundings {
  readonly time: VirtualTime;
  readonly settings: Settings;
  readonly plant: Plant | undefined;
  readonly store: () => Register;
  isCalm(): boolean;
  nextCall(): number;
  log(happening: Unstamped): void;
}

export type Unstamped = Happening extends infer Each ? (Each extends Happening ? Omit<Each, "at"> : never) : never;

/** A session as its owner knows it: over at the local deadline, whatever the store says. */
interface Life {
  readonly session: Session;
  since: Instant;
  isOver: boolean;
}

/**
 * A process that takes and frees locks by its plan, as the client above the port would.
 *
 *   living ──pause──▶ paused ──▶ living      timers and replies are held back, then all come at once
 *      └────crash──▶ dead                    nothing of it has an effect any more
 */
export class SimulatedProcess {
  readonly name: string;
  readonly locks: Locks;
  readonly clock: ShiftedClock;
  /** Calls without an answer. */
  readonly open: Set<number> = new Set();
  /** The process has done what it had planned. */
  isDone = false;
  isDead = false;
  readonly #surroundings: Surroundings;
  readonly #random: Random;
  readonly #zero: number;
  #isPaused = false;
  #held: (() => void)[] = [];
  #life: Life | undefined;
  #opening: Promise<Life> | undefined;

  constructor(surroundings: Surroundings, name: string, random: Random) {
    const { time, settings, plant, store } = surroundings;
    this.name = name;
    this.#surroundings = surroundings;
    this.#random = random;
    this.#zero = random.between(0, 1_000_000);
    const wallShift = settings.areClocksWrong ? random.between(-5_000, 5_000) : 0;
    this.clock = new ShiftedClock(time, this.#zero, wallShift, (callback) => this.deliver(callback));
    const register = new NetworkRegister(plant?.store?.(store()) ?? store(), {
      time,
      random: random.fork(),
      settings,
      isCalm: () => surroundings.isCalm(),
      suffer: (kind) => this.#log({ type: "fault", kind }),
      crash: () => this.crash(),
      stall: () => this.pause(random.next() * settings.leaseMs * 2.5),
      deliver: (callback) => this.deliver(callback),
    });
    const ids = random.fork();
    const locks = locksOnRegister({
      name: "simulated",
      register: plant?.register?.(register) ?? register,
      clock: this.clock,
      random: () => ids.next(),
      newId: () => `${name}.${ids.between(0, 0x7fff_ffff).toString(36)}`,
    });
    this.locks = plant?.locks?.(locks, this.clock) ?? locks;
    this.#log({ type: "process", process: name, what: "begins" });
  }

  get life(): Life | undefined {
    return this.#life;
  }

  deliver(callback: () => void): void {
    if (this.isDead) return;
    if (this.#isPaused) this.#held.push(callback);
    else callback();
  }

  crash(): void {
    if (this.isDead || this.#surroundings.isCalm()) return;
    this.#log({ type: "process", process: this.name, what: "crashes" });
    this.isDead = true;
    this.#held = [];
    this.open.clear();
  }

  /** Stopped from outside, or its event loop blocked: for timers and replies that is the same. */
  pause(forMs: number): void {
    if (this.isDead || this.#isPaused || this.#surroundings.isCalm()) return;
    this.#log({ type: "process", process: this.name, what: "pauses" });
    this.#isPaused = true;
    this.#surroundings.time.after(forMs, () => this.#goOn());
  }

  stepClock(byMs: number): void {
    this.#log({ type: "process", process: this.name, what: "clock step" });
    this.clock.step(byMs);
  }

  /** Plays its part; what it cannot explain is a surprise. */
  async play(): Promise<void> {
    const { settings } = this.#surroundings;
    const callers = Array.from({ length: settings.callers }, () => this.#call(this.#random.fork()));
    try {
      await Promise.all(callers);
    } catch (error) {
      this.#log({ type: "surprise", says: String(error) });
    }
    this.isDone = true;
  }

  async close(): Promise<void> {
    const life = this.#life;
    if (life !== undefined && !life.isOver) await this.#closeSession(life);
    await this.locks.close();
  }

  async #call(random: Random): Promise<void> {
    const { settings } = this.#surroundings;
    for (let round = 0; round < settings.rounds; round += 1) {
      await this.#sleep(random.next() * settings.leaseMs);
      await this.#useLock(random);
    }
  }

  async #useLock(random: Random): Promise<void> {
    const { settings } = this.#surroundings;
    const [name, slots] = random.pick([...settings.locks]);
    const mode = random.pick(["try", "for a while", "for ever", "for ever"] as const);
    const delayAfterLossMs = random.chance(0.5) ? 0 : settings.longestDelayMs;
    const life = await this.#open();
    const call = this.#surroundings.nextCall();
    const patience = new AbortController();
    if (mode === "try") patience.abort();
    const timer =
      mode === "for a while"
        ? this.clock.setTimer(random.next() * settings.leaseMs * 2, () => patience.abort())
        : undefined;
    this.#log({ type: "asking", call, process: this.name, lock: name, mode });
    this.open.add(call);
    try {
      const result = await this.locks.acquire({
        session: life.session,
        name,
        slots,
        delayAfterLossMs,
        signal: patience.signal,
      });
      this.open.delete(call);
      if (!result.ok) this.#log({ type: "refused", call, why: result.why });
      else {
        const { fence } = result.hold;
        this.#log({ type: "granted", call, lock: name, session: life.session.id, fence, delayMs: delayAfterLossMs });
        await this.#hold(call, result.hold, life, random);
      }
    } catch (error) {
      this.open.delete(call);
      this.#log({ type: "failed", call, why: codeOf(error) });
      if (codeOf(error) === "SESSION_LOST") this.#lose(life);
    } finally {
      timer?.cancel();
    }
  }

  async #hold(call: number, hold: LockHold, life: Life, random: Random): Promise<void> {
    const { settings } = this.#surroundings;
    await this.#sleep(random.next() * settings.leaseMs * random.pick([0, 0.1, 0.5, 2]));
    if (random.chance(0.1)) return await this.#closeSession(life);
    const retireMs = random.chance(0.3) && settings.longestRetireMs > 0 ? settings.longestRetireMs : undefined;
    this.#log({ type: "releasing", call, retireMs });
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      try {
        const isTrue = await this.locks.release({ hold, ...(retireMs === undefined ? {} : { retireMs }) });
        this.#log({ type: "released", call, isTrue });
        return;
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    }
  }

  /** The session that lives, or a new one. */
  async #open(): Promise<Life> {
    if (this.#life !== undefined && !this.#life.isOver) {
      if (this.#leftMs(this.#life) > 0) return this.#life;
      this.#lose(this.#life);
    }
    this.#opening ??= this.#openNew().finally(() => (this.#opening = undefined));
    return await this.#opening;
  }

  async #openNew(): Promise<Life> {
    const { leaseMs } = this.#surroundings.settings;
    for (;;) {
      try {
        const session = await this.locks.openSession({ owner: this.name, leaseMs, expiry: "release" });
        const life: Life = { session, since: session.since, isOver: false };
        this.#log({ type: "session", session: session.id, process: this.name, since: this.#trueTime(session.since) });
        this.#life = life;
        void this.#keepAlive(life);
        return life;
      } catch (error) {
        if (!isExpected(error)) throw error;
        await this.#sleep(leaseMs / 10);
      }
    }
  }

  async #keepAlive(life: Life): Promise<void> {
    const { leaseMs } = life.session;
    let nextMs = renewAfterMs(leaseMs);
    for (;;) {
      await this.#sleep(nextMs);
      if (life.isOver) return;
      try {
        const since = await this.locks.renewSession(life.session);
        if (since === undefined || this.#leftMs(life) <= 0) return this.#lose(life);
        if (since.monotonic > life.since.monotonic) life.since = since;
        this.#log({ type: "renewed", session: life.session.id, since: this.#trueTime(since) });
        nextMs = renewAfterMs(leaseMs);
      } catch (error) {
        if (life.isOver) return;
        if (!isExpected(error)) this.#log({ type: "surprise", says: String(error) });
        if (this.#leftMs(life) <= 0) return this.#lose(life);
        nextMs = leaseMs / 10;
      }
    }
  }

  #lose(life: Life): void {
    if (life.isOver) return;
    life.isOver = true;
    this.#log({ type: "ended", session: life.session.id, how: "lost" });
    // What the client above does too: what is left of the session is freed as soon as the store can be reached.
    void this.locks.closeSession(life.session).catch(() => undefined);
  }

  async #closeSession(life: Life): Promise<void> {
    if (!life.isOver) this.#log({ type: "ended", session: life.session.id, how: "closing" });
    life.isOver = true;
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      try {
        return await this.locks.closeSession(life.session);
      } catch (error) {
        if (!isExpected(error)) throw error;
      }
    }
  }

  #leftMs(life: Life): number {
    const { leaseMs } = life.session;
    return leaseLeftMs(this.clock, life.since, leaseMs, leaseMarginMs(leaseMs));
  }

  #trueTime(since: Instant): number {
    return since.monotonic - this.#zero;
  }

  #sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      this.clock.setTimer(ms, resolve);
    });
  }

  #goOn(): void {
    if (this.isDead) return;
    this.#log({ type: "process", process: this.name, what: "goes on" });
    this.#isPaused = false;
    const held = this.#held;
    this.#held = [];
    // Each is an event of its own, as in a real event loop.
    for (const callback of held) this.#surroundings.time.after(0, () => this.deliver(callback));
  }

  #log(happening: Unstamped): void {
    if (!this.isDead) this.#surroundings.log(happening);
  }
}

function codeOf(error: unknown): string {
  return error instanceof BatonError ? error.code : String(error);
}

function isExpected(error: unknown): boolean {
  return ["OUTCOME_UNKNOWN", "STORE_UNAVAILABLE", "SESSION_LOST"].includes(codeOf(error));
}
