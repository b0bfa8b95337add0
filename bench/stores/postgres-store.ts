import { execFile, execFileSync } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { newFolder } from "./place.ts";
import { freePort, ServerProcess } from "./server-process.ts";
import type { FreshStore, Store } from "./store.ts";

const run = promisify(execFile);
const USER = "bench";
/** Where Debian and its children keep the programs of each version. */
const DEBIAN_VERSIONS = "/usr/lib/postgresql";
/** Whom root lends the server to, first that exists: PostgreSQL refuses to be run by root. */
const SERVANTS = ["postgres", "nobody"];

/** One server for the run, a database per measurement. */
export async function openPostgresStore(): Promise<Store> {
  const programs = findPrograms();
  const owner = process.getuid?.() === 0 ? servant() : undefined;
  const folder = newFolder("postgres", owner);
  const data = join(folder, "data");
  const program = (name: string): string => join(programs, name);
  // Its own folder as working folder: the user it runs as may not enter ours.
  const as = { cwd: folder, ...owner };
  await run(program("initdb"), ["-D", data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C"], as);

  const port = String(await freePort());
  const settings = {
    listen_addresses: "127.0.0.1",
    port,
    unix_socket_directories: "",
    // The defaults, said aloud: what is acknowledged is on the disk.
    fsync: "on",
    synchronous_commit: "on",
    max_connections: "200",
  };
  const args = Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]);
  const server = new ServerProcess(program("postgres"), ["-D", data, ...args], as);
  const address = ["-h", "127.0.0.1", "-p", port];
  await server.until(async () => {
    const ready = run(program("pg_isready"), address);
    return ready.then(
      () => true,
      () => false,
    );
  });
  const version = /(\d+(\.\d+)+)/.exec(execFileSync(program("postgres"), ["--version"], { encoding: "utf8" }))?.[1];

  let databases = 0;
  async function fresh(): Promise<FreshStore> {
    databases += 1;
    const name = `bench_${databases}`;
    await run(program("createdb"), [...address, "-U", USER, name]);
    return {
      location: `postgres://${USER}@127.0.0.1:${port}/${name}`,
      async rest() {
        // Autovacuum comes within a minute of a load; a workload that begins sooner would meet tables without statistics.
        await run(program("vacuumdb"), [...address, "-U", USER, "--analyze", "--quiet", name]);
      },
      serverMemory: () => server.memory(),
      async drop() {
        // Gone, so that autovacuum has nothing to do there while the next is measured.
        await run(program("dropdb"), [...address, "-U", USER, "--force", name]);
      },
    };
  }

  return {
    version: `PostgreSQL ${version ?? ""}`.trim(),
    settings:
      "`fsync on`, `synchronous_commit on`, `max_connections 200`, else as `initdb` leaves it; `VACUUM ANALYZE` after each load",
    fresh,
    // Fast shutdown: does not wait for clients.
    stop: () => server.stop("SIGINT"),
  };
}

function findPrograms(): string {
  const versions = existsSync(DEBIAN_VERSIONS)
    ? readdirSync(DEBIAN_VERSIONS).toSorted((a, b) => Number(b) - Number(a))
    : [];
  const folders = [
    ...versions.map((version) => join(DEBIAN_VERSIONS, version, "bin")),
    ...(process.env["PATH"] ?? "").split(delimiter),
  ];
  const needed = ["initdb", "postgres", "createdb", "dropdb", "vacuumdb", "pg_isready"];
  const folder = folders.find((one) => needed.every((name) => existsSync(join(one, name))));
  if (folder === undefined)
    throw new Error(`There is no folder with PostgreSQL's ${needed.join(", ")} on this machine.`);
  return folder;
}

function servant(): { readonly uid: number; readonly gid: number } {
  for (const name of SERVANTS) {
    try {
      const id = (flag: string): number =>
        Number(execFileSync("id", [flag, name], { encoding: "utf8", stdio: "pipe" }));
      return { uid: id("-u"), gid: id("-g") };
    } catch {
      // No such user here.
    }
  }
  throw new Error(`PostgreSQL cannot be run by root, and there is no user ${SERVANTS.join(" or ")} to run it.`);
}
