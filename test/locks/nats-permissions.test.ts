/** The permissions that docs/engines/nats.md lists for locks, and no others. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startNatsServer } from "../../servers/nats-server.ts";
import { natsEngine } from "../../src/engines/nats/index.ts";
import { connect } from "../../src/index.ts";

const PAGE = join(import.meta.dirname, "../../docs/engines/nats.md");

test("what the documentation permits is enough for locks", { timeout: 30_000 }, async () => {
  const { publish, subscribe } = documented();
  const allowed = (subjects: readonly string[]): string => `{ allow: ${JSON.stringify(subjects)} }`;
  const permissions = `publish: ${allowed(publish)}, subscribe: ${allowed(subscribe)}`;
  const config = `authorization { users: [ { user: "ada", password: "x", permissions: { ${permissions} } } ] }`;
  await using server = await startNatsServer({ config });
  const options = { servers: [`127.0.0.1:${server.port}`], user: "ada", password: "x" };
  await using ann = await connect(await natsEngine(options));
  await using ben = await connect(await natsEngine(options));
  const first = await ann.lock("deploy");
  const waiting = ben.lock("deploy", { wait: "20s" });
  await first.release();
  const second = await waiting;
  assert.ok(second.fence > first.fence);
  assert.equal((await ann.locks()).length, 1);
  await second.release();
});

/** The block behind "For locks alone". */
function documented(): { readonly publish: readonly string[]; readonly subscribe: readonly string[] } {
  const [, block = ""] = /For locks alone[^`]*```\n([^`]*)```/.exec(readFileSync(PAGE, "utf8")) ?? [];
  const [publish = "", subscribe = ""] = block.replace("publish:", "").split("subscribe:");
  const words = (text: string): string[] => text.split(/\s+/).filter((word) => word !== "");
  assert.ok(words(publish).length > 3 && words(subscribe).length > 1);
  return { publish: words(publish), subscribe: words(subscribe) };
}
