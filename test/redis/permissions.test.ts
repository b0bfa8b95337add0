/** The permissions that the page about the Redis engine lists are enough, and others' keys are out of reach. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { connect } from "../../src/index.ts";
import { RedisDesk, refusal } from "./desk.ts";

/** As in docs/engines/redis.md. */
const RULES = [
  "on",
  ">secret",
  "resetchannels",
  "&{baton:*",
  "~baton:*",
  "~{baton:*",
  "-@all",
  ..."+evalsha +eval +time +hget +hmget +hset +hsetnx +hdel +zadd +zrem +zrange +zrangebyscore +zrangebylex +zscore +zpopmin +sadd +smembers +get +set +spublish +ssubscribe +sunsubscribe +info +ping +hello +auth +client|setname".split(
    " ",
  ),
];

test("a user with little more than its own keys can do everything", { timeout: 30_000 }, async (context) => {
  const desk = await RedisDesk.withServer(context);
  await desk.command("ACL", "SETUSER", "ada", ...RULES);
  const url = desk.url.replace("redis://", "redis://ada:secret@");
  const baton = await connect(url);
  context.after(() => baton.close({ grace: 0 }));
  const cars = baton.queue<string>("cars", { retry: { attempts: 2 } });
  const receipt = await cars.submit("car1", "paint", { id: "order-1" });
  const worker = cars.work(({ payload }) => payload.toUpperCase());
  const outcome = await receipt.outcome({ timeout: "10s" });
  assert.equal(outcome?.state, "done");
  await worker.stop();
  await cars.submit("car2", "wait", { delay: "1h" });
  assert.equal((await cars.status()).delayed, 1);
  await baton.withLock("nightly", () => undefined);
  assert.ok((await baton.check()).every(({ severity }) => severity !== "error"));
  const stranger = await connect(`${url}?prefix=other`);
  context.after(() => stranger.close({ grace: 0 }));
  const { code, message } = await refusal(stranger.queue("cars").submit("car1", "paint"));
  assert.equal(code, "STORE_UNAVAILABLE");
  assert.match(message, /does not allow.*Nothing was done.*permissions/);
});
