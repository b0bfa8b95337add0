import assert from "node:assert/strict";
import { test } from "node:test";
import { BLACK_BOXES, draw } from "../kit/draw.ts";
import { suffer } from "../sqlite/black-box/on-server.ts";
import { LEASE_MS, QUEUE } from "../sqlite/black-box/settings.ts";
import { leftInStream, NatsDesk } from "./desk.ts";

/** What became idle vanishes by a time of life of one second, the least that a server knows. */
const VANISH_MS = LEASE_MS + 1_500;

const skip = draw.leavesOut(BLACK_BOXES, "NATS");

test(
  "no fault makes two work on a key, loses an item or breaks the order",
  { timeout: 120_000, skip },
  async (context) => {
    const { desk, server } = await NatsDesk.withServer(context);
    await suffer(context, desk, server, async () => {
      const left = await leftInStream(server.port, `baton-${QUEUE}`, VANISH_MS);
      assert.equal(left, 0, `${left} messages are left of the queue`);
    });
  },
);
