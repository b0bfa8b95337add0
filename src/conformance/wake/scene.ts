import type { HintResult, HintStore, WakeAdapter } from "../../wake/port.ts";
import { Wake } from "../../wake/wake.ts";
import { NotConforming, present } from "../expect.ts";
import type { WakeTarget } from "./target.ts";

/** How long anything may take that has every reason to happen, on a slow and busy machine. */
const PATIENCE_MS = 15_000;
const LOOK_MS = 20;

/** What one listener has heard, and how often it was told that it may have missed something. */
export class Ear {
  readonly texts: string[] = [];
  missed = 0;
  stop: () => Promise<void> = async () => undefined;
}

/** Where one case plays: channels and budgets of its own on the carrier under test. */
export class WakeScene {
  /** Begins every channel and budget of this case. */
  readonly prefix: string;
  readonly #target: WakeTarget;
  readonly #over: AbortSignal;
  readonly #adapters: WakeAdapter[] = [];
  readonly #wakes: Wake[] = [];

  constructor(target: WakeTarget, prefix: string, over: AbortSignal) {
    this.#target = target;
    this.prefix = prefix;
    this.#over = over;
  }

  async begin(): Promise<void> {}

  async end(): Promise<void> {
    const open = [...this.#wakes.splice(0), ...this.#adapters.splice(0)];
    await Promise.allSettled(open.map((one) => one.close()));
  }

  /** One more connection, as another process has it. */
  async open(): Promise<WakeAdapter> {
    const adapter = await this.#target.open();
    this.#adapters.push(adapter);
    return adapter;
  }

  /** The signals of one more process. */
  async openWake(change: (adapter: WakeAdapter) => WakeAdapter = (adapter) => adapter): Promise<Wake> {
    const wake = new Wake(change(await this.#target.open()), { prefix: this.prefix });
    this.#wakes.push(wake);
    return wake;
  }

  async openHints(): Promise<HintStore> {
    return present((await this.open()).hints, "A carrier with a place for hints has one");
  }

  channel(name: string): string {
    return `${this.prefix}.${name}`;
  }

  async listen(adapter: WakeAdapter, channel: string): Promise<Ear> {
    const ear = new Ear();
    const missed = (): void => void (ear.missed += 1);
    ear.stop = await adapter.listen(channel, (text) => ear.texts.push(text), missed);
    return ear;
  }

  async interrupt(): Promise<void> {
    if (typeof this.#target.interrupt === "string") throw new Error(this.#target.interrupt);
    await this.#target.interrupt();
  }

  async age(): Promise<void> {
    if (typeof this.#target.age === "string") throw new Error(this.#target.age);
    await this.#target.age();
  }

  /** Waits for something that nothing announces: what was sent arrives sometime. */
  async until(isSo: () => boolean | Promise<boolean>, promise: string): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (!(await isSo())) {
      if (performance.now() > end || this.#over.aborted)
        throw new NotConforming(`${promise}: not within ${PATIENCE_MS} ms.`);
      await this.pass(LOOK_MS);
    }
  }

  async pass(ms: number): Promise<void> {
    await new Promise((resolve) => setTimeout(resolve, ms));
  }

  /** Everything that is left of a budget, taken one by one: `conflict` is tried again. */
  async drain(hints: HintStore, name: string): Promise<number> {
    for (let taken = 0; ;) {
      const result: HintResult = await hints.take(name);
      if (result === "empty" || result === "missing") return taken;
      if (result === "taken") taken += 1;
    }
  }
}
