/**
 * Outcome and progress: whoever submitted can watch how far the work has come, and wait for its result, also from
 * another process. It needs an id, which also makes the submission safe to repeat.
 */
import { setTimeout as wait } from "node:timers/promises";
import { connect } from "batonq";

await using baton = await connect("memory:");
const videos = baton.queue<{ frames: number }>("videos");
videos.work(async (video, lease) => {
  const { frames } = video.payload;
  for (let frame = 1; frame <= frames; frame += 1) {
    await wait(100, undefined, { signal: lease.signal });
    lease.progress(frame / frames);
  }
  return { frames, size: "12 MB" };
});

const receipt = await videos.submit("holiday", { frames: 12 }, { id: "holiday-1" });
const outcome = receipt.outcome({ timeout: "30s" });

const again = await videos.submit("holiday", { frames: 12 }, { id: "holiday-1" });
console.log(`submitted again: ${again.duplicate ? "already known, nothing is done twice" : "accepted"}`);

const over = new AbortController();
void outcome.finally(() => over.abort());
while (!over.signal.aborted) {
  const { progress } = (await videos.item("holiday-1"))?.running ?? {};
  if (progress !== undefined) console.log(`${Math.round(progress * 100)} %`);
  await wait(300, undefined, { signal: over.signal }).catch(() => undefined);
}
const { state, attempt, result } = await outcome;
console.log(`${state} at attempt ${attempt}: ${JSON.stringify(result)}`);
