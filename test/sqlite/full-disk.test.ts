import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, unlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test, type TestContext } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { BatonError, connect } from "../../src/index.ts";

const DISK_BYTES = 4 * 1024 * 1024;
const FILLER_BYTES = 2 * 1024 * 1024;

test("a full disk refuses what comes, keeps what was accepted, and works again when there is room", async (context) => {
  const disk = smallDisk(context);
  if (disk === undefined) return;
  const filler = join(disk, "filler");
  writeFileSync(filler, Buffer.alloc(FILLER_BYTES));
  const store = `sqlite:${join(disk, "store.db")}`;
  const accepted: string[] = [];
  {
    await using baton = await connect(store);
    const cars = baton.queue("cars");
    const refused = await submitUntilRefused(
      (id) => cars.submit(`car${accepted.length % 7}`, "x".repeat(10_000), { id }),
      accepted,
    );
    assert.equal(refused.code, "STORE_FULL");
    assert.match(refused.message, /full.*Nothing of this call was stored.*Free some space/);
    assert.ok(accepted.length > 20, `Only ${accepted.length} items fitted.`);
    assert.equal((await cars.status()).waiting, accepted.length);

    unlinkSync(filler);
    await cars.submit("car1", "there is room again", { id: "after" });
    accepted.push("after");
  }
  // A new process would find what this new connection finds.
  await using baton = await connect(store);
  const cars = baton.queue("cars");
  assert.equal((await cars.status()).waiting, accepted.length);
  const done: string[] = [];
  const worker = cars.work((item) => void done.push(item.id), { untilEmpty: true, concurrency: 4 });
  await worker.stopped;
  assert.deepEqual(done.toSorted(), accepted.toSorted());
});

test("a worker waits for room and goes on", async (context) => {
  const disk = smallDisk(context);
  if (disk === undefined) return;
  const filler = join(disk, "filler");
  writeFileSync(filler, Buffer.alloc(FILLER_BYTES));
  const troubled = Promise.withResolvers<void>();
  const onEvent = (event: { readonly type: string }): void => {
    if (event.type === "trouble") troubled.resolve();
  };
  await using baton = await connect(`sqlite:${join(disk, "store.db")}`, { onEvent });
  const cars = baton.queue("cars");
  const accepted: string[] = [];
  await submitUntilRefused((id) => cars.submit("car1", "x".repeat(10_000), { id }), accepted);
  // Now not even the little that a lease needs fits in.
  await submitUntilRefused((id) => cars.submit("car1", null, { id: `small-${id}` }), accepted);
  const worker = cars.work(() => undefined, { untilEmpty: true });
  await troubled.promise;
  unlinkSync(filler);
  await worker.stopped;
  const { waiting, running } = await cars.status();
  assert.deepEqual({ waiting, running }, { waiting: 0, running: 0 });
});

test("a full disk can be looked at, also when something is due that it has no room for", async (context) => {
  const disk = smallDisk(context);
  if (disk === undefined) return;
  const file = join(disk, "store.db");
  await using baton = await connect(`sqlite:${file}`);
  const cars = baton.queue("cars");
  const delayMs = 500;
  await cars.submit("car1", null, { id: "late", delay: `${delayMs}ms` });
  // As long as somebody reads, the log only grows.
  using reader = new DatabaseSync(file);
  reader.exec("BEGIN");
  reader.prepare("SELECT count(*) FROM item").get();
  const filler = join(disk, "filler");
  fillUp(filler);
  await wait(2 * delayMs);
  const { waiting, delayed } = await cars.status();
  assert.deepEqual({ waiting, delayed }, { waiting: 0, delayed: 1 });
  assert.deepEqual(
    (await cars.keys()).map(({ key }) => key),
    ["car1"],
  );
  assert.equal((await cars.item("late"))?.state, "delayed");
  await assert.rejects(cars.submit("car2", null), { code: "STORE_FULL" });
  unlinkSync(filler);
  assert.equal((await cars.item("late"))?.state, "waiting");
});

/** To the last byte. */
function fillUp(file: string): void {
  const bytes = Buffer.alloc(DISK_BYTES / 64);
  try {
    for (;;) appendFileSync(file, bytes);
  } catch (error) {
    assert.equal((error as NodeJS.ErrnoException).code, "ENOSPC");
  }
}

async function submitUntilRefused(
  submit: (id: string) => Promise<{ readonly id: string }>,
  accepted: string[],
): Promise<BatonError> {
  for (;;) {
    try {
      accepted.push((await submit(`item${accepted.length}`)).id);
    } catch (error) {
      if (error instanceof BatonError) return error;
      throw error;
    }
  }
}

/** A disk of its own that is soon full. Only root may make one. */
function smallDisk(context: TestContext): string | undefined {
  const disk = mkdtempSync(join(tmpdir(), "baton-disk-"));
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${DISK_BYTES}`, "tmpfs", disk]);
  context.after(() => {
    if (status === 0) spawnSync("umount", [disk]);
    rmSync(disk, { recursive: true, force: true });
  });
  if (status === 0) return disk;
  context.skip(
    `no small disk could be mounted: ${stderr === null ? "there is no mount command" : String(stderr).trim()}`,
  );
  return undefined;
}
