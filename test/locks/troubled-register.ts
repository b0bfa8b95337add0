import { OutcomeUnknown } from "../../src/domain/errors.ts";
import type { Cell, Register, WriteRequest } from "../../src/locks/register.ts";

/** A register whose process can be killed, and whose replies can be lost, in front of a real one. */
export class TroubledRegister implements Register {
  readonly #inner: Register;
  readonly #watches = new Set<{ stop(): void }>();
  #isDead = false;
  #repliesToLose = 0;

  constructor(inner: Register) {
    this.#inner = inner;
  }

  /** Nothing gets out or in any more. What is under way is never answered. */
  async crash(): Promise<void> {
    this.#isDead = true;
    for (const watch of this.#watches) watch.stop();
    await this.#inner.close();
  }

  /** The next write takes effect, and its reply is lost. */
  loseReply(): void {
    this.#repliesToLose += 1;
  }

  read(name: string): Promise<Cell | undefined> {
    return this.#alive(() => this.#inner.read(name));
  }

  write(request: WriteRequest): Promise<number | undefined> {
    return this.#alive(async () => {
      const isLost = this.#repliesToLose > 0;
      if (isLost) this.#repliesToLose -= 1;
      const version = await this.#inner.write(request);
      if (isLost) throw new OutcomeUnknown(`writing ${request.name}`);
      return version;
    });
  }

  list(prefix: string): Promise<readonly Cell[]> {
    return this.#alive(() => this.#inner.list(prefix));
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#begin(() => this.#inner.watch(name, changed));
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.#begin(() => this.#inner.listen(name, told));
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  async #begin(call: () => Promise<{ stop(): void }>): Promise<{ stop(): void }> {
    const watch = await this.#alive(call);
    this.#watches.add(watch);
    return watch;
  }

  async #alive<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isDead) return await never();
    try {
      return await call();
    } finally {
      if (this.#isDead) await never();
    }
  }
}

function never<T>(): Promise<T> {
  return new Promise(() => undefined);
}
