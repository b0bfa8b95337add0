/** A client of our own, for those who give a URL. */
import { BatonError } from "../../domain/errors.ts";
import { isError } from "../../domain/realms.ts";
import type { PlainClient } from "./client.ts";
import { loadRedis } from "./client-library.ts";
import { destroyForGood } from "./destroy-for-good.ts";
import { explain, wordOf } from "./failure.ts";
import { readTlsFiles, type RedisOptions } from "./options.ts";

/** The first try comes at once after a break; later ones leave a server that starts some room. */
const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 1_000;
/** A connection that is silent is asked for a sign of life; one that stays silent is broken and made anew. */
const PING_MS = 4_000;
const SILENCE_MS = 12_000;

/** @param signal calls an attempt off: it rejects, and leaves nothing open */
export async function openClient(options: RedisOptions, signal?: AbortSignal): Promise<PlainClient> {
  let isConnected = false;
  const files = readTlsFiles(options);
  const isEncrypted = options.url.startsWith("rediss:") || Object.keys(files).length > 0;
  const { createClient } = await loadRedis();
  const client = createClient({
    url: options.url,
    name: "baton",
    pingInterval: PING_MS,
    socket: {
      ...(isEncrypted ? { tls: true, ...files } : {}),
      socketTimeout: SILENCE_MS,
      // Whoever connects should hear that there is nobody; whoever is connected waits.
      reconnectStrategy: (tries) =>
        isConnected ? Math.min(FIRST_PAUSE_MS * 2 ** Math.min(tries, 10), LONGEST_PAUSE_MS) : false,
    },
  });
  client.on("error", () => undefined);
  const callOff = (): void => destroyForGood(client);
  signal?.addEventListener("abort", callOff, { once: true });
  try {
    signal?.throwIfAborted();
    await client.connect();
  } catch (error) {
    const reason = isError(error) && error.message !== "" ? ` (${error.message})` : "";
    const database = /^\/(\d+)$/.exec(new URL(options.url).pathname)?.[1];
    if (wordOf(error) === "ERR" && database !== undefined) {
      throw new BatonError(
        "STORE_UNAVAILABLE",
        `Redis at ${new URL(options.url).host} refuses database ${database}${reason}. Nothing was done. Name another number behind the host, or none.`,
        { cause: error },
      );
    }
    if (wordOf(error) !== undefined) throw explain(error, "a connection");
    throw new BatonError(
      "STORE_UNAVAILABLE",
      `Redis cannot be reached at ${new URL(options.url).host}${reason}. Nothing was done. Start the server, or put the address right, and connect again.`,
      { cause: error },
    );
  }
  signal?.removeEventListener("abort", callOff);
  isConnected = true;
  return client;
}
