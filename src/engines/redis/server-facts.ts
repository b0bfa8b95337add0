/** What a server says about itself. Some providers forbid CONFIG, so that only INFO can be relied on. */
import { type Clock, systemClock } from "../../domain/clock.ts";
import { BatonError } from "../../domain/errors.ts";
import type { Wire } from "./client.ts";
import { explain, wordOf } from "./failure.ts";
import { patiently } from "./patience.ts";
import { text, texts } from "./replies.ts";

export interface ServerFacts {
  /** Redis or Valkey. */
  readonly product: string;
  readonly version: string;
  readonly values: ReadonlyMap<string, string>;
}

/** Sharded channels, and scripts that read the clock before they write. */
const OLDEST_MAJOR = 7;

export async function serverFacts(wire: Wire, clock: Clock = systemClock): Promise<ServerFacts> {
  const written = text(await patiently(clock, "a look at the server", () => wire.send("info", ["INFO"]), true));
  const values = new Map(
    written.split("\r\n").flatMap((line): [string, string][] => {
      const at = line.indexOf(":");
      return at === -1 ? [] : [[line.slice(0, at), line.slice(at + 1)]];
    }),
  );
  const valkey = values.get("valkey_version");
  return {
    product: valkey === undefined ? "Redis" : "Valkey",
    version: valkey ?? values.get("redis_version") ?? "0",
    values,
  };
}

/** Refuses what would lose work silently. */
export function refuseUnfit({ product, version, values }: ServerFacts): void {
  if (Number.parseInt(version, 10) < OLDEST_MAJOR) {
    throw new BatonError(
      "STORE_TOO_OLD",
      `This server is ${product} ${version}; Baton needs Redis ${OLDEST_MAJOR} or later, or Valkey. Nothing was done. Use a newer server.`,
    );
  }
  if (evicts(values)) {
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `This server is set to maxmemory-policy ${values.get("maxmemory_policy") ?? ""}: when its memory is full it would throw away accepted work. ` +
        "Nothing was done. Set maxmemory-policy to noeviction, or use a server of its own for Baton.",
    );
  }
}

/** Without a limit nothing is ever evicted, whatever the policy. */
export function evicts(values: ReadonlyMap<string, string>): boolean {
  return (values.get("maxmemory_policy") ?? "noeviction") !== "noeviction" && values.get("maxmemory") !== "0";
}

/** A setting, where one may ask for it. */
export async function setting(wire: Wire, name: string): Promise<string | undefined> {
  try {
    const reply = await wire.send(name, ["CONFIG", "GET", name]);
    if (Array.isArray(reply)) return texts(reply)[1];
    return isRecord(reply) && reply[name] !== undefined ? text(reply[name]) : undefined;
  } catch (error) {
    if (wordOf(error) === undefined) throw explain(error, "a look at the settings", true);
    return undefined;
  }
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
