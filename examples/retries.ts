/**
 * Retries: throwing means another attempt, after a back-off that doubles. RetryLater says when; Fatal says never. What
 * is given up becomes a dead letter, kept with its reason until somebody retries or drops it.
 */
import { connect, Fatal, RetryLater } from "batonq";

await using baton = await connect("memory:");
const mails = baton.queue<{ to: string }>("mails", { retry: { attempts: 3, backoff: "20ms" } });

await mails.submit("ada", { to: "ada@example.com" });
await mails.submit("bob", { to: "bob@example.com" });
await mails.submit("cy", { to: "not an address" });
await mails.submit("dee", { to: "dee@down.example" });

let isDown = true;
async function send(): Promise<void> {
  const worker = mails.work(
    ({ key, attempt, payload: { to } }) => {
      console.log(`${key}: attempt ${attempt}`);
      if (!to.includes("@")) throw new Fatal(`${to} will never be one`);
      if (key === "bob" && attempt === 1) throw new RetryLater("50ms", "the mailbox is locked");
      if (to.endsWith("@down.example") && isDown) throw new Error("no route to host");
      console.log(`${key}: sent`);
    },
    { concurrency: 4, untilEmpty: true },
  );
  await worker.stopped;
}

await send();
for (const { key, attempt, failure } of await mails.dead()) {
  console.log(`given up: ${key} after ${attempt} attempt(s): ${failure.message}`);
}

isDown = false;
const letters = (await mails.dead()).filter(({ key }) => key === "dee").map(({ id }) => id);
console.log(`${await mails.retryDead(letters)} is tried again, ${await mails.dropDead()} is dropped`);
await send();
