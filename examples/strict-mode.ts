/**
 * Mode strict: a mutex for requests. Who asks for a key that is busy is refused at once, as a web server would answer
 * "409 Conflict": the caller decides whether to come back.
 */
import { setTimeout as wait } from "node:timers/promises";
import { connect, KeyBusy } from "batonq";

await using baton = await connect("memory:");
const reports = baton.queue<null>("reports", { mode: "strict" });
reports.work(
  async (item) => {
    await wait(200);
    return `the report on ${item.key}`;
  },
  { concurrency: 10 },
);

async function request(account: string): Promise<string> {
  try {
    const receipt = await reports.submit(account, null, { history: "1m" });
    const { result } = await receipt.outcome({ timeout: "5s" });
    return `200 ${String(result)}`;
  } catch (error) {
    if (error instanceof KeyBusy) return `409 a report on ${error.key} is under way`;
    throw error;
  }
}

for (const answer of await Promise.all([request("ada"), request("ada"), request("bob")])) console.log(answer);
console.log(await request("ada"));
