import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { LEASE_MS, setStage, type Stage } from "../../test/worker-stage.ts";

interface AloneStage extends Stage {
  /** Ends the handler of a key. */
  readonly end: (key: string) => void;
  readonly begun: string[];
  readonly work: () => ReturnType<Stage["queue"]["work"]>;
}

/** Handlers go on until they are ended. Whatever has a key that begins with "poison" was lost twice before. */
function setAloneStage(context: TestContext): AloneStage {
  const stage = setStage();
  const ends = new Map<string, () => void>();
  const begun: string[] = [];
  const store = stage.store.connect();
  stage.engine.onClaim = async (request) =>
    (await store.claim(request)).map(({ item, ...grant }) =>
      Object.assign(grant, { item: item.key.startsWith("poison") ? Object.assign(item, { losses: 2 }) : item }),
    );
  const work: AloneStage["work"] = () => {
    const worker = stage.queue.work(
      ({ key }) => {
        begun.push(key);
        return new Promise<void>((resolve) => ends.set(key, resolve));
      },
      { concurrency: 2 },
    );
    context.after(async () => {
      const stopped = worker.stop({ grace: 0 });
      await stage.clock.pass(10_000);
      await stopped;
    });
    return worker;
  };
  return { ...stage, begun, work, end: (key) => ends.get(key)?.() };
}

describe("an item whose lease was lost twice", () => {
  test("runs alone in its process, and the next one too", async (context) => {
    const stage = setAloneStage(context);
    const { begun, clock, queue } = stage;
    stage.work();
    stage.work();
    for (const round of ["1", "2"]) {
      await queue.submit("car1", round);
      await clock.pass(0);
      for (const key of ["poison1", "poison2"]) await queue.submit(key, round);
      await clock.pass(LEASE_MS * 2);
      await queue.submit("car2", round);
      await clock.pass(0);
      assert.deepEqual(begun.splice(0), ["car1"], "nothing begins before what runs has ended");
      stage.end("car1");
      await clock.pass(0);
      assert.deepEqual(begun.splice(0), ["poison1"]);
      stage.end("poison1");
      await clock.pass(0);
      assert.deepEqual(begun.splice(0), ["poison2"]);
      stage.end("poison2");
      await clock.pass(0);
      assert.deepEqual(begun.splice(0), ["car2"], "then the others go on");
      stage.end("car2");
      await clock.pass(0);
    }
    assert.deepEqual(
      stage.told().filter((type) => type === "done").length,
      8,
      "all are done, and no lease was lost while they waited",
    );
  });

  test("and that is cancelled while it waits is not begun", async (context) => {
    const stage = setAloneStage(context);
    const { begun, clock, queue } = stage;
    stage.work();
    for (const key of ["car1", "poison"]) {
      await queue.submit(key, null, { id: key });
      await clock.pass(0);
    }
    await queue.cancel("poison");
    await clock.pass(LEASE_MS);
    stage.end("car1");
    await clock.pass(0);
    assert.deepEqual(begun, ["car1"]);
    assert.equal((await queue.item("poison"))?.state, "cancelled");
    await queue.submit("car2", null);
    await clock.pass(0);
    assert.deepEqual(begun, ["car1", "car2"], "the worker goes on");
  });

  test("keeps nobody waiting when its worker stops before it began", async (context) => {
    const stage = setAloneStage(context);
    const { begun, clock, queue } = stage;
    const first = stage.work();
    for (const key of ["car1", "poison"]) {
      await queue.submit(key, null, { id: key });
      await clock.pass(0);
    }
    stage.work();
    await queue.pause("poison");
    const stopped = first.stop({ grace: "10s" });
    await queue.submit("car2", null);
    await clock.pass(0);
    assert.deepEqual(begun, ["car1", "car2"], "the other worker begins while the one that stops waits for its handler");
    stage.end("car1");
    await clock.pass(0);
    assert.deepEqual(await stopped, { finished: 1, released: 1, abandoned: 0 });
    assert.equal((await queue.item("poison"))?.attempt, 0);
  });
});
