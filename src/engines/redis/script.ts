import { createHash } from "node:crypto";
import { wordOf } from "./failure.ts";
import type { Wire } from "./client.ts";

/**
 * A program that runs inside the server. It is sent in full only when the server does not know it: after a restart, a failover, or
 * SCRIPT FLUSH. That is no error for anybody, because a program that is not known has not run.
 */
export class Script {
  readonly #text: string;
  readonly #digest: string;

  constructor(text: string) {
    this.#text = text;
    this.#digest = createHash("sha1").update(text).digest("hex");
  }

  async run(wire: Wire, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    const [key = ""] = keys;
    const rest = [String(keys.length), ...keys, ...args];
    try {
      return await wire.send(key, ["EVALSHA", this.#digest, ...rest]);
    } catch (error) {
      if (wordOf(error) !== "NOSCRIPT") throw error;
      return await wire.send(key, ["EVAL", this.#text, ...rest]);
    }
  }
}
