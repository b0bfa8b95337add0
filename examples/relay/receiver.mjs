// An application that knows nothing of queues: it gets requests. 422 says "never again", 503 "not now".
import { createServer } from "node:http";

const port = Number(process.env["PORT"] ?? 8080);
createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (text) => (body += text));
  request.on("end", () => {
    const { "baton-queue": queue, "baton-key": key, "baton-attempt": attempt, "baton-fence": fence } = request.headers;
    console.log(`${queue}: ${key}, attempt ${attempt}, fence ${fence}: ${body}`);
    setTimeout(() => response.writeHead(body.includes("nonsense") ? 422 : 204).end(), 200);
  });
}).listen(port, "127.0.0.1", function () {
  console.log(`listening on ${this.address().port}`);
});
