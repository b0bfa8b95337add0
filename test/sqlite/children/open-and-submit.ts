/** Opens each store that it is told of, submits one item, and says how it went. */
import { connect } from "../../../src/index.ts";

const [key = ""] = process.argv.slice(2);

async function openAndSubmit(url: string): Promise<string> {
  try {
    await using baton = await connect(url);
    await baton.queue("cars").submit(key, null);
    return "accepted";
  } catch (error) {
    return String(error);
  }
}

process.on("message", (url: string) => {
  void openAndSubmit(url).then((answer) => process.send?.(answer));
});
process.send?.("ready");
