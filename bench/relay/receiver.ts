/**
 * A receiver in a process of its own: answers at once, or after a time. Tells its port, and then how many were served
 * at most at a time.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const delayMs = Number(process.argv[2] ?? 0);
let open = 0;
let most = 0;
let served = 0;

const server = createServer((request, response) => {
  open += 1;
  most = Math.max(most, open);
  request.resume().on("end", () => {
    const answer = (): void => {
      open -= 1;
      served += 1;
      response.writeHead(204).end();
    };
    if (delayMs === 0) answer();
    else setTimeout(answer, delayMs);
  });
});
server.listen(0, "127.0.0.1", 4_096, () => process.send?.({ port: (server.address() as AddressInfo).port }));
process.on("message", () => process.send?.({ open, most, served }));
