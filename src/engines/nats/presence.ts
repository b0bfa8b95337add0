/** Whether there is a NATS server, asked in a way that can be called off: the client's own attempt to connect cannot. */
import { isError } from "../../domain/realms.ts";
import { connect } from "node:net";

/** A server says who it is as soon as it is spoken to. */
const SILENT_MS = 5_000;
const DEFAULT_PORT = 4222;
/** With a scheme, a name and a password, which are of no use here; IPv6 in brackets. */
const ADDRESS = /^(?:[a-z]+:\/\/)?(?:[^@]*@)?(?:\[([^\]]+)\]|([^:]+))(?::(\d+))?$/i;

/** Resolves when one of the servers greets, as every NATS server does before anything else. Rejects when none does, or the signal fires. */
export async function greetedByAny(servers: readonly string[], signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  try {
    await Promise.any(servers.map((server) => greetedBy(server, AbortSignal.any([signal, over.signal]))));
  } catch (error) {
    const first: unknown = error instanceof AggregateError ? error.errors[0] : error;
    throw isError(first) ? first : new Error(String(first));
  } finally {
    over.abort();
  }
}

function greetedBy(server: string, signal: AbortSignal): Promise<void> {
  const [, bracketed, plain, port] = ADDRESS.exec(server) ?? [];
  const host = bracketed ?? plain ?? server;
  return new Promise((resolve, reject) => {
    const socket = connect({ host, port: port === undefined ? DEFAULT_PORT : Number(port), signal });
    const silent = setTimeout(() => socket.destroy(new Error(`It says nothing for ${SILENT_MS} ms`)), SILENT_MS);
    let text = "";
    socket.on("data", (bytes) => {
      text += bytes.toString("latin1");
      if (text.startsWith("INFO ")) resolve();
      else if (text.length < "INFO ".length) return;
      socket.destroy(new Error("What answers is not a NATS server"));
    });
    socket.on("error", reject);
    socket.on("close", () => {
      clearTimeout(silent);
      reject(new Error("It closed the connection"));
    });
  });
}
