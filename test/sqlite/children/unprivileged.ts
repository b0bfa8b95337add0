/** Becomes a user who may not do everything, tries to use a store, and tells how that went. */
import { type BatonError, connect } from "../../../src/index.ts";

const [url = ""] = process.argv.slice(2);
/** "Nobody", or any other user that owns nothing here. */
const NOBODY = 65_534;
if (process.getuid?.() === 0) {
  process.setgroups?.([]);
  process.setgid?.(NOBODY);
  process.setuid?.(NOBODY);
}
try {
  await using baton = await connect(url);
  await baton.queue("cars").submit("car1", null);
  process.send?.({ code: "accepted", message: "" });
} catch (error) {
  const { code, message } = error as BatonError;
  process.send?.({ code, message });
}
process.disconnect();
