/** Starts a server, tells about it, and never stops it: "stay" to be killed, or to end by itself. */
import { startNatsServer } from "../../servers/nats-server.ts";

const server = await startNatsServer();
console.log(JSON.stringify({ port: server.port, folder: server.folder }));
if (process.argv[2] === "stay") setInterval(() => undefined, 60_000);
