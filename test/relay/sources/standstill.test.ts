/** A relay that is stopped while a poll is open finds messages in it whose time is over, and begins none of them. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { SignsOfLife } from "../../../src/relay/sources/polling/signs-of-life.ts";
import { until } from "../../kit/until.ts";
import { Desk } from "../../cli/baton-command.ts";
import { playInTime } from "../../kit/lateness.ts";
import { ManualClock } from "../../manual-clock.ts";
import { openSqsDesk, REGION } from "./sqs-desk.ts";

const MOST_LATE_MS = 100;

describe("an answer that is found", () => {
  test("came a moment ago while the process runs", async () => {
    const clock = new ManualClock();
    using life = new SignsOfLife(clock);
    await clock.pass(19_000);
    assert.ok(clock.monotonic() - life.answeredSince().monotonic <= 500);
  });

  test("may have come at any time of a standstill, also when the timer had its turn before it was read", async () => {
    const clock = new ManualClock();
    using life = new SignsOfLife(clock);
    await clock.pass(5_000);
    const before = clock.wall();
    // A machine that sleeps: the monotonic clock stands still.
    clock.stepWall(60_000);
    assert.ok(life.answeredSince().wall <= before, "the timer had no turn yet");
    await clock.pass(300);
    assert.ok(life.answeredSince().wall <= before, "the timer has noted that the process goes on");
    await clock.pass(1_000);
    assert.ok(life.answeredSince().wall <= before, "it is still reading what came");
    await clock.pass(5_000);
    assert.ok(clock.wall() - life.answeredSince().wall <= 500, "all of it has been read");
  });
});

test("a message whose visibility ran out in an open poll of a stopped relay is not begun", async (t) => {
  // It must have asked again within half a second, and have delivered the first message within four.
  await playInTime(MOST_LATE_MS, async () => {
    const desk = await openSqsDesk();
    t.after(() => desk[Symbol.asyncDispose]());
    desk.server.createQueue("orders", { region: REGION });
    const attempts: (string | undefined)[] = [];
    const server = createServer((request, response) => {
      attempts.push(request.headers["baton-attempt"]?.toString());
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    t.after(() => server.close().closeAllConnections());
    const address = server.address();
    assert.ok(typeof address === "object" && address !== null);
    const files = new Desk(t);
    const config = files.write(
      "relay.json",
      JSON.stringify({
        sources: [{ type: "sqs", queue: "orders", region: REGION, endpoint: desk.server.address, visibility: "4s" }],
        processor: { type: "http", url: `http://127.0.0.1:${address.port}/` },
      }),
    );
    const env = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };
    const relay = files.start(["relay", "--config", config], { env });
    let log = "";
    relay.child.stdout?.on("data", (text: string) => (log += text));
    // Its poll is open when its first message has been delivered and it has asked again.
    desk.send("orders", "first");
    await until(() => attempts.length === 1, "the first message");
    await wait(500);
    relay.child.kill("SIGSTOP");
    desk.send("orders", "second");
    await until(() => desk.counts("orders").hidden === 1, "the poll to be given the second message");
    // Its visibility runs out. The emulator shows that only to somebody who asks.
    await wait(4_500);
    relay.child.kill("SIGCONT");
    await until(() => attempts.length > 1, "the second message to come again", 60_000);
    assert.deepEqual(attempts, ["1", "2"]);
    assert.ok(log.includes('"lost"'));
    relay.child.kill("SIGTERM");
    await relay.finished;
  });
});
