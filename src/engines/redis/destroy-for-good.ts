interface Destroyable {
  on(event: "ready", listener: () => void): unknown;
  destroy(): unknown;
}

/**
 * Ends a client, also one that is just connecting: if the server's greeting has arrived in that moment, the client takes itself for ready
 * afterwards, and asks for signs of life for ever, which keeps the process alive.
 */
export function destroyForGood(client: Destroyable): void {
  client.destroy();
  // It sets its timer right after it has said that it is ready.
  client.on("ready", () => setImmediate(() => client.destroy()));
}
