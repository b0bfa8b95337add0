/** An application that knows nothing of queues: it gets requests. Its answer decides: 422 says "never again". */
import { createServer } from "node:http";

const server = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text: string) => (body += text));
  request.on("end", () => {
    const { headers } = request;
    const said = ["baton-queue", "baton-key", "baton-attempt", "baton-fence"].map((name) => String(headers[name]));
    console.log(`${said.join(" ")}: ${body}`);
    setTimeout(() => response.writeHead(body.includes("nonsense") ? 422 : 204).end(), 200);
  });
});
server.listen(Number(process.env["PORT"] ?? 8080), "127.0.0.1", () => console.log("listening on", server.address()));
