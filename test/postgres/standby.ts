import { chownSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type PostgresServer, startPostgres } from "../../servers/postgres.ts";

/** A server that can be read only, as it waits to be told what another one writes. There is none. */
export async function startStandby(prepare: (server: PostgresServer) => Promise<unknown>): Promise<PostgresServer> {
  const server = await startPostgres();
  try {
    await prepare(server);
    await server.kill("SIGINT");
    const data = join(server.folder, "data");
    const { uid, gid } = statSync(data);
    const file = join(data, "standby.signal");
    writeFileSync(file, "");
    chownSync(file, uid, gid);
    await server.restart();
    return server;
  } catch (error) {
    await server.stop();
    throw error;
  }
}
