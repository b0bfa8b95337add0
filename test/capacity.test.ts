import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { connect } from "../src/index.ts";

const folder = mkdtempSync(join(tmpdir(), "baton-capacity-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Some handlers end at once, others later: those that end at once must not make room that is not there. */
for (const url of ["memory:", `sqlite:${join(folder, "store.db")}?synchronous=off`]) {
  test(`no more handlers run than there are slots (${url.slice(0, 6)})`, async () => {
    await using baton = await connect(url);
    const queue = baton.queue<number>("q");
    const count = 3_000;
    await queue.submitMany(Array.from({ length: count }, (_, index) => ({ key: `k${index}`, payload: index })));
    const concurrency = 32;
    let running = 0;
    let most = 0;
    let done = 0;
    const worker = queue.work(
      (item): void | Promise<void> => {
        running += 1;
        most = Math.max(most, running);
        const finish = (): void => {
          running -= 1;
          done += 1;
        };
        if (item.payload % 32 < 12) return finish();
        return new Promise<void>((resolve) => setTimeout(resolve, 5)).then(finish);
      },
      { concurrency, untilEmpty: true },
    );
    await worker.stopped;
    assert.equal(done, count);
    assert.ok(most <= concurrency, `${most} handlers ran at a time, with ${concurrency} slots`);
  });
}
