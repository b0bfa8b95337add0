import assert from "node:assert/strict";
import { test } from "node:test";
import { BLACK_BOXES, draw } from "../kit/draw.ts";
import { suffer } from "../sqlite/black-box/on-server.ts";
import { stopOne } from "../sqlite/black-box/stop-one.ts";
import { PostgresDesk } from "./desk.ts";

const skip = draw.leavesOut(BLACK_BOXES, "PostgreSQL");

test(
  "no fault makes two work on a key, loses an item or breaks the order",
  { timeout: 120_000, skip },
  async (context) => {
    const { desk, server } = await PostgresDesk.withServer(context);
    await suffer(context, desk, server);
    const left = await server.query("SELECT count(*)::integer AS n FROM baton.key");
    assert.deepEqual(left.rows, [{ n: 0 }], "rows of keys that have nothing");
  },
);

test(
  "a worker that was stopped for two leases learns of the loss, is refused, and the other's work is untouched",
  { timeout: 60_000 },
  async (context) => {
    const { desk } = await PostgresDesk.withServer(context);
    await stopOne(context, desk);
  },
);
