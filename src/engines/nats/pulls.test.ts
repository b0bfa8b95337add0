import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LineFaults } from "../../../test/jetstream/faults.ts";
import { virtualServer } from "../../../test/jetstream/virtual-server.ts";
import { Pulls } from "./pulls.ts";

const DELAY_MS = 5;
const NEXT = "$JS.API.CONSUMER.MSG.NEXT.W.jobs";
const ACK_WAIT_MS = 1_000;

interface Puller {
  readonly pulls: Pulls;
  readonly arrived: string[];
  readonly endedAt: number[];
}

/** A stream with one consumer, and those who pull from it. */
function scene() {
  const { server, clock, pass } = virtualServer();
  const operator = server.connect();
  const api = (what: string, body: object): void => operator.publish(`$JS.API.${what}`, JSON.stringify(body));
  api("STREAM.CREATE.W", { name: "W", subjects: ["W.*"], retention: "workqueue", storage: "memory" });
  const config = { durable_name: "jobs", filter_subject: "W.*", ack_policy: "explicit", ack_wait: ACK_WAIT_MS * 1e6 };
  api("CONSUMER.DURABLE.CREATE.W.jobs", { stream_name: "W", config });
  pass(0);
  const puller = (name: string, faults?: LineFaults): Puller => {
    const wire = server.connect(faults === undefined ? {} : { faults });
    const arrived: string[] = [];
    const endedAt: number[] = [];
    const pulls = new Pulls({
      wire,
      clock,
      inbox: `_INBOX.${name}`,
      subjects: [NEXT],
      arrive: (_, { data }) => void arrived.push(Buffer.from(data).toString()),
      ended: () => void endedAt.push(clock.monotonic()),
      refused: () => Promise.resolve(false),
    });
    return { pulls, arrived, endedAt };
  };
  const publish = (text: string): void => operator.publish("W.job", text);
  return { puller, publish, pass, now: () => clock.monotonic() };
}

const SLOW: LineFaults = {
  loses: () => false,
  delayMs: (direction) => (direction === "from server" ? DELAY_MS : 0),
};

describe("a pull that stands", () => {
  test("gets nothing any more when it is withdrawn: others do, at once", () => {
    const { puller, publish, pass } = scene();
    const [one, other] = [puller("one"), puller("other")];
    for (const { pulls } of [one, other]) pulls.stand(0, 1);
    pass(0);
    one.pulls.withdraw();
    pass(0);
    publish("job");
    pass(0);
    assert.deepEqual([one.arrived, other.arrived], [[], ["job"]]);
    assert.equal(one.pulls.isStanding(0), false, "no pull stands for this level");
  });

  test("brings what was sent before it was withdrawn, so that it can go back at once", () => {
    const { puller, publish, pass } = scene();
    const { pulls, arrived } = puller("one", SLOW);
    pulls.stand(0, 1);
    pass(0);
    publish("job");
    pass(0);
    assert.deepEqual(arrived, []);
    pulls.withdraw();
    pass(DELAY_MS);
    assert.deepEqual(arrived, ["job"]);
  });

  test("can stand again after it was withdrawn, and what was meant for the one before does not end it", () => {
    const { puller, publish, pass } = scene();
    const { pulls, arrived } = puller("one", SLOW);
    pulls.stand(0, 1);
    pass(0);
    publish("first");
    pass(0);
    pulls.withdraw();
    pulls.stand(0, 1);
    pass(DELAY_MS);
    assert.deepEqual([arrived, pulls.isStanding(0)], [["first"], true]);
    publish("second");
    pass(DELAY_MS);
    assert.deepEqual([arrived, pulls.isStanding(0)], [["first", "second"], false]);
  });

  test("ends a little before whoever waits for it gives up", () => {
    for (const [waitMs, expected] of [
      [2_000, 1_950],
      [100, 90],
      [3_600_000, 30_000],
      [undefined, 30_000],
    ] as const) {
      const { puller, pass, now } = scene();
      const { pulls, endedAt } = puller("one");
      const begun = now();
      pulls.stand(0, 1, waitMs);
      pass(40_000);
      assert.deepEqual(
        endedAt.map((at) => Math.round(at - begun)),
        [expected],
        `Waiting ${String(waitMs)}`,
      );
    }
  });
});
