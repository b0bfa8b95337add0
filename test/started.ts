import { after, before } from "node:test";

/** Started before the first test of a file, or of the suite that says so, and stopped after its last. */
export function started<Server extends { stop(): Promise<void> }>(start: () => Promise<Server>): () => Server {
  let server: Server | undefined;
  before(async () => {
    server = await start();
  });
  after(() => server?.stop());
  return () => {
    if (server === undefined) throw new Error("The server was not started.");
    return server;
  };
}
