/**
 * A process that closes its connection while an item is being started: the delivery came, and then nothing that this process says
 * reaches the server any more. It ends by itself. An error that nothing waits for would end it with another exit code.
 */
import { once } from "node:events";
import { connect as connectSocket, createServer } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { natsEngine } from "../../../src/engines/nats/index.ts";

const [port = "", queue = "", before = ""] = process.argv.slice(2);
/** In the reply subject of a delivery. */
const DELIVERY = "$JS.ACK.";
/** The key is read again when no reply came to the write that starts it. */
const READ_AGAIN = "last_by_subj";
/** Longer than the engine pauses between two tries. */
const AGAIN_MS = 1_000;

let isArmed = false;
let isDeaf = false;
const deaf = Promise.withResolvers<void>();
const gate = createServer((client) => {
  const server = connectSocket(Number(port), "127.0.0.1");
  for (const socket of [client, server]) socket.on("error", () => undefined);
  server.on("data", (bytes) => {
    if (isArmed && bytes.includes(DELIVERY)) isDeaf = true;
    client.write(bytes);
  });
  client.on("data", (bytes) => {
    if (!isDeaf) server.write(bytes);
    else if (bytes.includes(READ_AGAIN)) deaf.resolve();
  });
  client.on("close", () => server.destroy());
});
gate.listen(0, "127.0.0.1");
await once(gate, "listening");
const address = gate.address();
if (typeof address !== "object" || address === null) throw new Error("The gate has no address.");

const engine = await natsEngine({ servers: [`127.0.0.1:${address.port}`] });
await engine.declare({ queue });
const signal = new AbortController().signal;
const claim = (): ReturnType<typeof engine.claim> =>
  engine.claim({ queue, worker: "w", max: 1, leaseMs: 60_000, patienceMs: 60_000, signal });
// From then on a start begins with a write, which is tried again when its reply is lost.
for (let count = 0; count < Number(before);)
  for (const { lease } of await claim()) {
    count += 1;
    await engine.settle([{ lease, ending: { type: "done" } }]);
  }
isArmed = true;
const ended = claim().catch(() => undefined);
// Answered after the pull has reached the server.
await engine.queues({ queue });
process.send?.("waiting");
await deaf.promise;
await engine.close();
await ended;
gate.close();
// There is no event when nothing goes wrong: it stays until the start was tried again.
await wait(AGAIN_MS);
process.disconnect();
