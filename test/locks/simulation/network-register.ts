import { BatonError, OutcomeUnknown } from "../../../src/domain/errors.ts";
import type { Cell, Register, WriteRequest } from "../../../src/locks/register.ts";
import type { Random } from "../../kit/random.ts";
import type { VirtualTime } from "../../simulation/virtual-time.ts";
import type { Rates, Settings } from "./settings.ts";

export interface Line {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly settings: Settings;
  isCalm(): boolean;
  suffer(kind: string): void;
  crash(): void;
  stall(): void;
  /** Brings something to the process; never, when it is dead. */
  deliver(callback: () => void): void;
}

/** How long a driver waits for a reply, in leases. */
const LONGEST_PATIENCE = 0.5;

/**
 * The way of one process to the store: everything takes time, and may be lost, or arrive when nobody waits for it any more. A write
 * that was given up may still take effect.
 */
export class NetworkRegister implements Register {
  readonly #store: Register;
  readonly #line: Line;

  constructor(store: Register, line: Line) {
    this.#store = store;
    this.#line = line;
  }

  read(name: string): Promise<Cell | undefined> {
    return this.#call(
      () => this.#store.read(name),
      () => new BatonError("STORE_UNAVAILABLE", `No answer to reading ${name}.`),
    );
  }

  write(request: WriteRequest): Promise<number | undefined> {
    const { ttlStepMs } = this.#line.settings;
    const ttlMs = request.ttlMs === undefined ? undefined : Math.ceil(request.ttlMs / ttlStepMs) * ttlStepMs;
    return this.#call(
      () => this.#store.write({ ...request, ...(ttlMs === undefined ? {} : { ttlMs }) }),
      () => new OutcomeUnknown(`writing ${request.name}`),
    );
  }

  list(prefix: string): Promise<readonly Cell[]> {
    return this.#call(
      () => this.#store.list(prefix),
      () => new BatonError("STORE_UNAVAILABLE", `No answer to listing ${prefix}.`),
    );
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#hear((hint) => this.#store.watch(name, hint), `watching ${name}`, changed);
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.#hear((hint) => this.#store.listen(name, hint), `listening to ${name}`, told);
  }

  close(): Promise<void> {
    return this.#store.close();
  }

  /** A hint that is lost is lost with the connection: another comes when it is back. */
  async #hear(
    begin: (hint: () => void) => Promise<{ stop(): void }>,
    what: string,
    heard: () => void,
  ): Promise<{ stop(): void }> {
    const { time, random, settings } = this.#line;
    let isOver = false;
    const hint = (): void => {
      const isLost = this.#happens("hintLost");
      if (isLost) this.#line.suffer("hint lost");
      const afterMs = isLost ? random.next() * settings.leaseMs * 2 : this.#delayMs();
      time.after(afterMs, () => this.#line.deliver(() => (isOver ? undefined : heard())));
    };
    const watch = await this.#call(
      () => begin(hint),
      () => new BatonError("STORE_UNAVAILABLE", `No answer to ${what}.`),
    );
    return {
      stop: () => {
        isOver = true;
        watch.stop();
      },
    };
  }

  #call<T>(act: () => Promise<T>, unknown: () => Error): Promise<T> {
    const { time, random, settings } = this.#line;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const isSlow = this.#happens("slow");
    if (isSlow) this.#line.suffer("slow");
    const slowMs = isSlow ? random.next() * settings.leaseMs * 1.5 : 0;
    const isSlowThere = random.chance(0.5);
    const requestMs = this.#delayMs() + (isSlowThere ? slowMs : 0);
    const replyMs = this.#delayMs() + (isSlowThere ? 0 : slowMs);
    const isRequestLost = this.#happens("requestLost");
    const isReplyLost = this.#happens("replyLost");
    if (isRequestLost) this.#line.suffer("request lost");
    else if (isReplyLost) this.#line.suffer("reply lost");
    const patienceMs = Math.max(50, random.next() * settings.leaseMs * LONGEST_PATIENCE);
    const giveUp = time.after(patienceMs, () => this.#line.deliver(() => reject(unknown())));
    const reply = (answer: () => void): void => {
      if (isReplyLost) return;
      time.after(replyMs, () => {
        giveUp.cancel();
        this.#line.deliver(answer);
      });
    };
    if (!isRequestLost) {
      time.after(requestMs, () => {
        act().then(
          (value) => reply(() => resolve(value)),
          (error: unknown) => reply(() => reject(error instanceof Error ? error : new Error(String(error)))),
        );
      });
    }
    // When the event that sends it is over.
    if (this.#happens("crashInCall")) time.after(0, () => this.#line.crash());
    else if (this.#happens("stallInCall")) time.after(0, () => this.#line.stall());
    return promise;
  }

  #happens(kind: keyof Rates): boolean {
    const { random, settings } = this.#line;
    return random.chance(this.#line.isCalm() ? 0 : settings.rates[kind]);
  }

  #delayMs(): number {
    return this.#line.random.next() * this.#line.random.pick([0.5, 2, 10]);
  }
}
