import type { Clock } from "../../domain/clock.ts";
import { InvalidInput } from "../../domain/errors.ts";
import type { Cell, Register, WriteRequest } from "../../locks/register.ts";
import type { Wire } from "./client.ts";
import { explain } from "./failure.ts";
import { LIST_CELLS, READ_CELL, WRITE_CELL } from "./lua/cells.ts";
import { locksTag } from "./names.ts";
import { patiently } from "./patience.ts";
import { list, number, text } from "./replies.ts";
import { Script } from "./script.ts";

const READ = new Script(READ_CELL);
const LIST = new Script(LIST_CELLS);
const WRITE = new Script(WRITE_CELL);

const KIND = /^[a-z]+\//;

/** The cells of the store, as locks see them. Whoever watches one listens on a channel of its own. */
export class RedisRegister implements Register {
  readonly #wire: Wire;
  readonly #clock: Clock;
  readonly #tag: string;
  readonly #keys: readonly string[];
  readonly #stops = new Set<() => void>();

  constructor(wire: Wire, prefix: string, clock: Clock) {
    this.#wire = wire;
    this.#clock = clock;
    this.#tag = locksTag(prefix);
    this.#keys = ["cells", "names", "ends", "counter"].map((part) => `${this.#tag}:${part}`);
  }

  async read(name: string): Promise<Cell | undefined> {
    const [version, value] = list(await this.#run(READ, [checked(name)], "a look at a lock", true));
    return version === undefined ? undefined : { name, version: number(version), value: text(value) };
  }

  async write({ name, expected, value, ttlMs, tell = [] }: WriteRequest): Promise<number | undefined> {
    const args = [
      checked(name),
      String(expected),
      value === undefined ? "remove" : "put",
      value ?? "",
      ttlMs === undefined ? "" : String(Math.ceil(ttlMs)),
      this.#changed(name),
      ...tell.map((one) => this.#told(one)),
    ];
    const version = number(await this.#run(WRITE, args, "a change of a lock"));
    return version === 0 ? undefined : version;
  }

  async list(prefix: string): Promise<readonly Cell[]> {
    // No UTF-8 text holds the byte 0xff, and none that begins with the prefix sorts behind this.
    const behind = `${checked(prefix)}\u{10FFFF}`;
    return list(await this.#run(LIST, [prefix, behind], "a look at locks", true)).map((one) => {
      const [name, version, value] = list(one);
      return { name: text(name), version: number(version), value: text(value) };
    });
  }

  watch(name: string, changed: () => void): Promise<{ stop(): void }> {
    return this.#listen(this.#changed(checked(name)), changed);
  }

  listen(name: string, told: () => void): Promise<{ stop(): void }> {
    return this.#listen(this.#told(checked(name)), told);
  }

  /** The connection is the engine's, and outlives its register. */
  async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.resolve();
  }

  async #listen(channel: string, heard: () => void): Promise<{ stop(): void }> {
    try {
      // A function of its own for each: one that listens twice is told twice.
      const listener = (): void => heard();
      const silence = await this.#wire.listen(channel, listener, listener);
      const stop = (): void => {
        if (this.#stops.delete(stop)) silence();
      };
      this.#stops.add(stop);
      return { stop };
    } catch (error) {
      throw explain(error, "waiting for a lock");
    }
  }

  async #run(script: Script, args: readonly string[], what: string, looks = false): Promise<unknown> {
    return await patiently(this.#clock, what, () => script.run(this.#wire, this.#keys, args), looks);
  }

  #changed(name: string): string {
    return `${this.#tag}:changed:${name}`;
  }

  #told(name: string): string {
    return `${this.#tag}:told:${name}`;
  }
}

function checked(name: string): string {
  if (!KIND.test(name)) throw new InvalidInput("name", name, "a kind in lower-case letters, a slash, and more");
  return name;
}
