/** Somebody removes the file of a store, or puts another in its place, while processes have it open. */
import assert from "node:assert/strict";
import { renameSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, test } from "node:test";
import { connect } from "../../src/index.ts";
import { until } from "../kit/until.ts";
import { refusal } from "../server-desk.ts";
import { Desk } from "./desk.ts";

/** The file is looked at this seldom. */
const LOOKED_AT_MS = 150;

function removeStore(file: string): void {
  for (const part of ["", "-wal", "-shm"]) rmSync(`${file}${part}`, { force: true });
}

/** Every way in which the file can go. */
const ways: Readonly<Record<string, (desk: Desk) => Promise<void>>> = {
  removed: async ({ file }) => {
    removeStore(file);
    await Promise.resolve();
  },
  "replaced by another file": async ({ file }) => {
    removeStore(file);
    await (await connect(`sqlite:${file}`)).close();
  },
};

describe("a store whose file is gone", { concurrency: 2, timeout: 60_000 }, () => {
  for (const [how, take] of Object.entries(ways)) {
    test(`accepts nothing that nobody would see: it was ${how}`, async (context) => {
      const desk = new Desk(context);
      const baton = await desk.connect();
      const cars = baton.queue<string>("cars");
      await cars.submit("k", "seen");
      await take(desk);
      await sleep(LOOKED_AT_MS);
      const { code, message } = await refusal(cars.submit("k", "not seen"));
      assert.equal(code, "STORE_UNAVAILABLE");
      assert.match(message, new RegExp(`was ${how} while it was open\\. Nothing of this call was stored`));
      await refusal(cars.status());
    });

    test(`loses a lock when its lease ends, before a second holder goes on for long: it was ${how}`, async (context) => {
      const desk = new Desk(context);
      const baton = await desk.connect();
      const lock = await baton.lock("one", { lease: "1s" });
      await take(desk);
      const second = await (await desk.connect()).lock("one", { lease: "1s" });
      await until(() => lock.signal.aborted, "the loss");
      assert.throws(() => lock.check(), { code: "LOCK_LOST" });
      second.check();
    });
  }

  test("tells a worker that waits, and goes on when the file is put back", async (context) => {
    const desk = new Desk(context);
    const troubles: string[] = [];
    const baton = await desk.connect({
      onEvent: (event) => {
        if (event.type === "trouble") troubles.push(String(event.error));
      },
    });
    const cars = baton.queue<string>("cars");
    const ran: string[] = [];
    cars.work((item) => void ran.push(item.payload));
    await cars.submit("k", "before");
    await until(() => ran.length === 1, "the first item");
    renameSync(desk.file, `${desk.file}.away`);
    await until(() => troubles.some((one) => one.includes("was removed while it was open")), "the warning");
    renameSync(`${desk.file}.away`, desk.file);
    await until(
      () =>
        cars
          .submit("k", "after")
          .then(() => true)
          .catch(() => false),
      "the store to be back",
    );
    await until(() => ran.length === 2, "the second item");
  });
});
