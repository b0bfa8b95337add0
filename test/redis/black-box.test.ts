import { test } from "node:test";
import { BLACK_BOXES, draw } from "../kit/draw.ts";
import { suffer } from "../sqlite/black-box/on-server.ts";
import { stopOne } from "../sqlite/black-box/stop-one.ts";
import { RedisDesk } from "./desk.ts";

const skip = draw.leavesOut(BLACK_BOXES, "Redis");

test(
  "no fault makes two work on a key, loses an item or breaks the order",
  { timeout: 120_000, skip },
  async (context) => {
    const desk = await RedisDesk.withServer(context);
    await suffer(context, desk, desk.server);
  },
);

test(
  "a worker that was stopped for two leases learns of the loss, is refused, and the other's work is untouched",
  { timeout: 60_000 },
  async (context) => {
    await stopOne(context, await RedisDesk.withServer(context));
  },
);
