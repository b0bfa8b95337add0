/** A worker that tells when it began an item, and returns the item's payload twice. */
import { connect } from "../../../src/index.ts";

const [url = ""] = process.argv.slice(2);
const baton = await connect(url);
const cars = baton.queue<string>("cars");
await cars.levels();
cars.work((item, lease) => {
  process.send?.({ at: Number(process.hrtime.bigint()) / 1e6, id: item.id, fence: lease.fence });
  return item.payload + item.payload;
});
process.once("disconnect", () => void baton.close());
process.send?.("ready");
