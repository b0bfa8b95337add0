/**
 * Mode latest: only the newest state of a key is worth working on. Whatever waits is replaced by it, and told so; what
 * runs already is left alone.
 */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";

await using baton = await connect("memory:");
const pages = baton.queue<{ version: number }>("pages", { mode: "latest" });

for (let version = 1; version <= 5; version += 1) {
  const receipt = await pages.submit("home", { version }, { id: `home-${version}` });
  if (receipt.replaced.length > 0) console.log(`version ${version} replaces ${receipt.replaced.join(", ")}`);
}
console.log("home-1:", (await pages.item("home-1"))?.state);

const worker = pages.work(
  async (page) => {
    await wait(50);
    console.log(`published version ${page.payload.version}`);
  },
  { untilEmpty: true },
);
await worker.stopped;
