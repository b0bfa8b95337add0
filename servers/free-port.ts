import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below those that systems give to outgoing connections. A port among them could be lost while its server is down: a
 * client that tries to come back may be given the very port it dials, and then talks to itself.
 */
const LOWEST = 15_000;
const HIGHEST = 32_000;

const given = new Set<number>();

/** Free at the moment; another process may still be faster. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(LOWEST, HIGHEST);
    if (given.has(port) || !(await isFree(port))) continue;
    given.add(port);
    return port;
  }
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
