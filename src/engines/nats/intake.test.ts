import assert from "node:assert/strict";
import { test } from "node:test";
import { ManualClock } from "../../../test/manual-clock.ts";
import { encodeItem } from "./codec.ts";
import { Intake, type IntakeParts } from "./intake.ts";
import type { KeyStore } from "./key-store.ts";
import type { Pulled } from "./pulls.ts";
import { type KeyItem, NOTHING } from "./state.ts";
import type { Wire } from "./wire.ts";

const ITEM: KeyItem = {
  unique: "u1",
  id: undefined,
  place: 3,
  level: 0,
  attempts: 0,
  submittedAt: 0,
  payload: { type: "", body: "null" },
  headers: undefined,
  keepMs: 0,
  replaceable: false,
  dueAt: 5,
  tried: undefined,
  losses: 0,
};
const SEQUENCE = 3;
const LONG_MS = 10_000;

function pulled(deliveries: number, { attempts }: Pick<KeyItem, "attempts"> = ITEM): Pulled {
  return {
    consumer: "due",
    subject: "due.key",
    data: Buffer.from(encodeItem({ ...ITEM, attempts })),
    reply: `reply.${deliveries}`,
    sequence: SEQUENCE,
    at: 0,
    left: 0,
    deliveries,
  };
}

/** A key whose submissions wait until `open`, a stream with one item that has come due, and what was sent to the server. */
class Stage {
  readonly clock = new ManualClock();
  readonly sent: string[] = [];
  /** What the key carries. */
  readonly items: KeyItem[] = [];
  joined = 0;
  isThere = true;
  readonly #turn = Promise.withResolvers<void>();
  readonly intake: Intake;

  constructor() {
    const store = {
      clock: this.clock,
      read: () => Promise.resolve({ sequence: 1, state: { ...NOTHING, items: this.items } }),
      async *line() {},
      js: {
        at: () => Promise.resolve(this.isThere ? {} : undefined),
        remove: () => {
          this.sent.push("removed");
          return Promise.resolve(true);
        },
      },
    };
    const submitter: IntakeParts["submitter"] = {
      arrive: async (_, { item }, isWanted) => {
        await this.#turn.promise;
        if ((await isWanted?.()) === false) return;
        this.joined += 1;
        this.items.push(item);
      },
    };
    const publish = (subject: string, data: string): number => this.sent.push(`${data} ${subject}`);
    this.intake = new Intake({
      store: store as unknown as KeyStore,
      submitter,
      wire: { publish } as unknown as Wire,
      stream: "shared",
      mayBeSecond: () => false,
      ended: () => undefined,
    });
  }

  async open(): Promise<void> {
    this.#turn.resolve();
    await this.intake.all();
  }
}

test("an item that takes long to its key is not delivered to others, and not taken in twice", async () => {
  const stage = new Stage();
  const { clock, intake, sent } = stage;
  void intake.take(pulled(1));
  for (let ms = 0; ms < 1_000; ms += 100) await clock.stall(100);
  assert.ok(sent.length >= 2, "the server hears that somebody is at it");
  assert.deepEqual(new Set(sent.splice(0)), new Set(["+WPI reply.1"]));
  void intake.take(pulled(2));
  await stage.open();
  assert.equal(stage.joined, 1);
  assert.deepEqual(sent.splice(0), ["removed", "+ACK reply.2"]);
  assert.ok(intake.isEmpty);
  await clock.stall(LONG_MS);
  assert.deepEqual(sent, []);
});

test("what is taken in at once costs nothing more", async () => {
  const stage = new Stage();
  // Nothing is known of it: nobody looks.
  stage.isThere = false;
  void stage.intake.take(pulled(1));
  await stage.open();
  assert.equal(stage.joined, 1);
  assert.deepEqual(stage.sent, ["removed", "+ACK reply.1"]);
});

test("whoever was kept waiting does not add what somebody else has taken in", async () => {
  const stage = new Stage();
  void stage.intake.take(pulled(1));
  await stage.clock.stall(LONG_MS);
  stage.items.push(ITEM);
  stage.sent.splice(0);
  await stage.open();
  assert.equal(stage.joined, 0);
  assert.deepEqual(stage.sent, ["removed", "+ACK reply.1"]);
});

test("nor what has ended since; if it is there after all, it comes again", async () => {
  for (const deliveries of [1, 2]) {
    const stage = new Stage();
    void stage.intake.take(pulled(deliveries));
    if (deliveries === 1) await stage.clock.stall(LONG_MS);
    stage.isThere = false;
    stage.sent.splice(0);
    await stage.open();
    assert.equal(stage.joined, 0);
    assert.deepEqual(stage.sent, []);
  }
});

test("an item that comes back is looked for at its key, once", async () => {
  const stage = new Stage();
  stage.items.push(ITEM);
  void stage.intake.take(pulled(1, { attempts: 1 }));
  await stage.open();
  assert.equal(stage.joined, 0);
  assert.deepEqual(stage.sent, ["removed", "+ACK reply.1"]);
});
