import { atLeast, atMost, equal, ok, present } from "../../expect.ts";
import type { LockReport } from "../../../locks/port.ts";
import { type LockCase, lockCasesOf } from "../case.ts";
import { begun } from "../contender.ts";

export const shown: readonly LockCase[] = lockCasesOf("shown", {
  "a lock shows who holds it, since when, and with what data": async (scene) => {
    const ann = await scene.contender({ owner: "ann on host ä" });
    const ben = await scene.contender();
    equal(await ben.locks.read(scene.lock()), undefined, "A lock that nobody has used");
    const before = scene.clock.wall();
    const hold = await ann.take(scene.lock(), { data: 'at "10.0.0.7"\n' });
    const report = present(await ben.locks.read(scene.lock()), "A lock that is held");
    const [holder] = report.holders;
    const { since = 0, ...rest } = holder ?? {};
    equal([report.name, report.slots, report.holders.length], [scene.lock(), 1, 1], "The name, slots and holders");
    equal(
      rest,
      { owner: "ann on host ä", session: ann.session.id, fence: hold.fence, data: 'at "10.0.0.7"\n' },
      "The holder",
    );
    atLeast(since, before - 1_000, "Since when it is held");
    atMost(since, scene.clock.wall() + 1_000, "Since when it is held");
    await ann.release(hold);
    equal(await ben.locks.read(scene.lock()), undefined, "A lock that was released");
  },

  "a lock shows how many wait": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock());
    const waiting = [await ben.waitInLine(scene.lock()), await ben.waitInLine(scene.lock())];
    const count = (await ann.locks.read(scene.lock()))?.waiting;
    ok(count === 2 || count === undefined, `Two wait, or the store cannot tell; it said ${String(count)}`);
    for (const one of waiting) one.giveUp();
    await Promise.all(waiting.map(({ answer }) => answer));
    const left = (await ann.locks.read(scene.lock()))?.waiting;
    ok(left === 0 || left === undefined, `Nobody waits, or the store cannot tell; it said ${String(left)}`);
    await ann.release(hold);
  },

  "the data of the one who was handed the lock is shown": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const hold = await ann.take(scene.lock(), { data: "ann" });
    const waiting = await ben.waitInLine(scene.lock(), { data: "ben" });
    await ann.release(hold);
    await waiting.hold;
    equal((await ann.locks.read(scene.lock()))?.holders[0]?.data, "ben", "The data of the new holder");
  },

  "the data of a lost holder is kept when its session says release": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal({ expiry: "release" });
    await ann.take(scene.lock(), { data: "half done" });
    const report = await ben.seesUntil(scene.lock(), (found) => found?.holders.length === 0);
    equal(report?.lastData, "half done", "What the last holder left");
    await ben.take(scene.lock());
    equal((await ben.locks.read(scene.lock()))?.lastData, undefined, "What is left when there is a new holder");
  },

  "the data of a lost holder is gone for good when its lock was held again": async (scene) => {
    const ben = await scene.contender();
    const first = await ben.take(scene.lock(), { slots: 2 });
    const ann = await scene.mortal({ expiry: "release" });
    await ann.take(scene.lock(), { slots: 2, data: "half done" });
    await ben.seesUntil(scene.lock(), (found) => found?.holders.length === 1);
    await ben.release(first);
    equal((await ben.locks.read(scene.lock()))?.lastData, "half done", "What the last holder left");
    await ben.release(await ben.take(scene.lock(), { slots: 2 }));
    equal((await ben.locks.read(scene.lock()))?.lastData, undefined, "What is left after a later holder");
  },

  "the data of a lost holder is removed when its session says delete": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal({ expiry: "delete" });
    await ann.take(scene.lock(), { data: "secret" });
    const report = await ben.seesUntil(scene.lock(), (found) => (found?.holders.length ?? 0) === 0);
    equal(report?.lastData, undefined, "What the last holder left");
  },

  "a watch tells how the lock stands, and every change that lasts": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    const reports: (LockReport | undefined)[] = [];
    const over = new AbortController();
    const watching = begun(
      ben.locks.watch({ name: scene.lock(), changed: (report) => void reports.push(report), signal: over.signal }),
    );
    const eve = await scene.contender();
    const sees = async (isWanted: (report: LockReport | undefined) => boolean): Promise<void> => {
      await eve.seesUntil(scene.lock(), isWanted);
    };
    const first = await eve.take(scene.lock(), { data: "first" });
    await sees((report) => report?.holders[0]?.fence === first.fence);
    await eve.release(first);
    await sees((report) => report === undefined);
    const second = await ann.take(scene.lock());
    await sees((report) => report?.holders[0]?.fence === second.fence);
    await ann.close();
    await ben.seesUntil(scene.lock(), (report) => report === undefined);
    over.abort();
    await watching;
    const fences = reports.map((report) => report?.holders[0]?.fence);
    equal(fences[0] === undefined || fences[0] === first.fence, true, "How the lock stood at first");
    equal(
      fences.filter((fence) => fence !== undefined).every((fence) => fence === first.fence || fence === second.fence),
      true,
      "Holders that were reported",
    );
  },

  "a watch tells when a holder is lost": async (scene) => {
    const ben = await scene.contender();
    const ann = await scene.mortal();
    await ann.take(scene.lock());
    await ben.seesUntil(scene.lock(), (report) => report?.holders.length === 1);
    await ben.seesUntil(scene.lock(), (report) => (report?.holders.length ?? 0) === 0);
    const passedMs = scene.clock.monotonic() - ann.session.since.monotonic;
    atLeast(passedMs, scene.leaseMs - 5, "Milliseconds from the last sign of life to the report of the loss");
    atMost(
      passedMs,
      scene.leaseMs + scene.slackMs,
      "Milliseconds from the last sign of life to the report of the loss",
    );
  },

  "a watch ends when its signal fires": async (scene) => {
    const over = new AbortController();
    let told = 0;
    const changed = (): void => {
      told += 1;
      over.abort();
    };
    await scene.locks.watch({ name: scene.lock(), changed, signal: over.signal });
    equal(told, 1, "Reports");
    await scene.locks.watch({ name: scene.lock(), changed, signal: AbortSignal.abort() });
  },

  "a lock whose holder is dead is nobody's, before anybody has asked for it": async (scene) => {
    const ann = await scene.mortal();
    await ann.take(scene.lock("read"));
    await ann.take(scene.lock("listed"));
    await scene.letLeasesRunOut();
    equal(await scene.locks.read(scene.lock("read")), undefined, "The lock of a dead holder");
    const listed = (await scene.locks.list()).filter(({ name }) => name === scene.lock("listed"));
    equal(listed, [], "The locks of a dead holder that are listed");
  },

  "all locks that are in use are listed, by name": async (scene) => {
    const ann = await scene.contender();
    const ben = await scene.contender();
    await ann.take(scene.lock("c"));
    const gone = await ann.take(scene.lock("b"));
    const done = await ann.take(scene.lock("d"));
    const hold = await ann.take(scene.lock("a"), { slots: 2, data: "x" });
    const dead = await scene.mortal();
    await dead.take(scene.lock("e"));
    await ann.release(gone);
    await ann.release(done, 60_000);
    await ben.wait(scene.lock("e")).hold.then((last) => ben.release(last));
    const listed = (await ben.locks.list()).filter(({ name }) => name.startsWith(scene.lock("")));
    equal(
      listed.map(({ name, holders }) => [name.slice(scene.lock("").length), holders.length]),
      [
        ["a", 1],
        ["c", 1],
        ["d", 0],
      ],
      "The locks that are listed",
    );
    equal(listed[0], await ben.locks.read(scene.lock("a")), "A lock in the list, and read alone");
    await ann.release(hold);
  },
});
