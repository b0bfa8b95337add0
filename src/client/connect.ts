import { systemClock } from "../domain/clock.ts";
import { BatonError, InvalidInput } from "../domain/errors.ts";
import type { Engine } from "../engine/port.ts";
import { Baton, type BatonOptions } from "./baton.ts";

/**
 * Opens a store by URL (`memory:`, `sqlite:work.db`, `nats://localhost:4222`), by `$BATON_URL` if none is given, or takes an engine that you made.
 *
 *     const baton = await connect("sqlite:work.db");
 */
export async function connect(store?: string | Engine, options: BatonOptions = {}): Promise<Baton> {
  const engine =
    store === undefined || typeof store === "string" ? await openEngine(store ?? defaultUrl(), options) : store;
  return new Baton(engine, options);
}

function defaultUrl(): string {
  const url = process.env["BATON_URL"];
  if (url !== undefined && url !== "") return url;
  throw new InvalidInput("store", undefined, "a URL such as sqlite:work.db, as an argument or in $BATON_URL");
}

/** Drivers are loaded only here, and only the one that is asked for. */
async function openEngine(url: string, options: BatonOptions): Promise<Engine> {
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(url)?.[1]?.toLowerCase();
  switch (scheme) {
    case "memory": {
      const { memoryEngine } = await import("../engines/memory/index.ts");
      return memoryEngine({ clock: options.clock ?? systemClock });
    }
    case "sqlite": {
      const { openSqliteUrl } = await import("../engines/sqlite/index.ts");
      return openSqliteUrl(url);
    }
    case "nats":
    case "tls":
      return await openNats(url);
    case undefined:
      throw new InvalidInput(
        "store",
        url,
        "a URL that begins with its kind of store, such as sqlite:work.db or memory:",
      );
    default:
      throw new BatonError(
        "ENGINE_MISSING",
        `There is no engine for ${scheme}: stores in this version. Use memory:, sqlite:FILE or nats://HOST, or pass an engine of your own to connect().`,
      );
  }
}

/** The client library is the application's choice to install; without it the error says so. */
async function openNats(url: string): Promise<Engine> {
  try {
    const { openNatsUrl } = await import("../engines/nats/index.ts");
    return await openNatsUrl(url);
  } catch (cause) {
    if (!(cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND")) throw cause;
    throw new BatonError(
      "ENGINE_MISSING",
      "Stores on NATS need the package @nats-io/transport-node, which is not installed. Nothing was done. Run: npm install @nats-io/transport-node",
      { cause },
    );
  }
}
