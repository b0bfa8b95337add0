/**
 * Quick start: submit work for keys, and let a worker do it. At most one handler at a time works on a key; other keys
 * run in parallel. With "sqlite:work.db" in place of "memory:" the work survives this process.
 */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";

await using baton = await connect("memory:");
const cars = baton.queue<{ do: string }>("cars");

await cars.submit("car1", { do: "wash" });
await cars.submit("car1", { do: "wax" }); // waits until car1 is washed
await cars.submit("car2", { do: "wash" }); // does not wait for car1

const worker = cars.work(
  async (item) => {
    console.log(`${item.key}: ${item.payload.do} begins`);
    await wait(100);
    console.log(`${item.key}: ${item.payload.do} is done`);
  },
  { concurrency: 4, untilEmpty: true },
);
await worker.stopped;
