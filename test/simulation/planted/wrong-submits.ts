import type * as port from "../../../src/engine/port.ts";
import type { Random } from "../../kit/random.ts";
import type { VirtualTime } from "../virtual-time.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

const ONE_IN = 50;

/** A receipt for something that the store never got. */
export const dropSubmissions: MakePlant = ({ random, time }) => ({
  store: (handle) => new DropSubmissions(handle, random, time),
});

class DropSubmissions extends PassThrough {
  readonly #random: Random;
  readonly #time: VirtualTime;

  constructor(inner: port.Engine, random: Random, time: VirtualTime) {
    super(inner);
    this.#random = random;
    this.#time = time;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const results: port.SubmitResult[] = [];
    for (const submission of submissions) {
      if (this.#random.chance(1 / ONE_IN)) results.push(falseReceipt(submission, this.#time.now));
      else results.push(...(await this.inner.submit([submission])));
    }
    return results;
  }
}

/** The first of two submissions is put behind the second, as a store without an order of arrival might do. */
export const swapOrder: MakePlant = ({ time }) => {
  const back: KeptBack = { submission: undefined };
  return { store: (handle) => new SwapOrder(handle, back, time) };
};

/** What all handles share. */
interface KeptBack {
  submission: port.Submission | undefined;
}

const KEPT_BACK_MS = 400;

class SwapOrder extends PassThrough {
  readonly #back: KeptBack;
  readonly #time: VirtualTime;

  constructor(inner: port.Engine, back: KeptBack, time: VirtualTime) {
    super(inner);
    this.#back = back;
    this.#time = time;
  }

  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const [only, ...others] = submissions;
    const suits = only?.id !== undefined && only.delayMs === 0 && only.mode === "fifo" && others.length === 0;
    if (suits && this.#back.submission === undefined && (await this.#canWait(only))) {
      this.#back.submission = only;
      this.#time.after(KEPT_BACK_MS, () => void this.#bringForward().catch(() => undefined));
      return [falseReceipt(only, this.#time.now)];
    }
    const results = await this.inner.submit(submissions);
    await this.#bringForward();
    return results;
  }

  override async settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    // It must be there when its key is free again: only the order is to be wrong.
    await this.#bringForward();
    return this.inner.settle(settlements);
  }

  async #canWait({ queue, id, key }: port.Submission): Promise<boolean> {
    if (id === undefined || (await this.inner.find({ queue, id })) !== undefined) return false;
    const keys = await this.inner.keys({ queue, limit: 100 });
    return keys.some((report) => report.key === key && report.state === "running");
  }

  async #bringForward(): Promise<void> {
    const { submission } = this.#back;
    this.#back.submission = undefined;
    if (submission !== undefined) await this.inner.submit([submission]);
  }
}

/** An id that was used before makes a second item. */
export const acceptTwice: MakePlant = () => ({ store: (handle) => new AcceptTwice(handle) });

class AcceptTwice extends PassThrough {
  override async submit(submissions: readonly port.Submission[]): Promise<readonly port.SubmitResult[]> {
    const results: port.SubmitResult[] = [];
    for (const submission of submissions) {
      const { id, ...rest } = submission;
      const known = id !== undefined && (await this.inner.find({ queue: submission.queue, id })) !== undefined;
      results.push(...(await this.inner.submit([known ? rest : submission])));
    }
    return results;
  }
}

function falseReceipt({ id, key, level }: port.Submission, at: number): port.SubmitResult {
  return { ok: true, accepted: { id: id ?? `@never-${at}`, key, level, at, duplicate: false, replaced: [] } };
}
