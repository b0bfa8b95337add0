/** Which servers will do. Older ones take the headers that exclusivity rests on for decoration, without a word. */
import { BatonError } from "../../domain/errors.ts";

export const NEEDED = "2.12.8, or 2.14.0 and later";

export function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0, patch = 0] = version.split(/[.-]/).map(Number);
  if (version.includes("-")) return false;
  if (major !== 2) return major > 2;
  if (minor === 12) return patch >= 8;
  return minor >= 14;
}

export class ServerTooOld extends BatonError {
  constructor(found: string) {
    super(
      "STORE_TOO_OLD",
      `This NATS server is version ${found}; Baton needs ${NEEDED}, on every server of the cluster. Older servers ignore ` +
        "the conditions that keep a key with one worker. Nothing was written. Upgrade the servers.",
    );
  }
}

export class NoJetStream extends BatonError {
  constructor() {
    super(
      "STORE_UNAVAILABLE",
      "This NATS server runs without JetStream, which Baton keeps its state in. Nothing was written. Start it with --jetstream.",
    );
  }
}
