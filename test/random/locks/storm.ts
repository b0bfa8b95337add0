import assert from "node:assert/strict";
import type { AcquireRequest, Locks } from "../../../src/locks/port.ts";

interface Ask {
  readonly locks: Locks;
  readonly request: AcquireRequest;
}

/** All ask at once; those who wait are all served, one after the other. Returns the fences, in the order of the grants. */
export async function playStorm(asks: readonly Ask[], slots: number): Promise<readonly number[]> {
  const fences: number[] = [];
  let holding = 0;
  const play = async ({ locks, request }: Ask): Promise<void> => {
    const isTry = request.signal.aborted;
    const answer = await locks.acquire(request);
    if (!answer.ok) {
      assert.ok(isTry && answer.why === "held", `one of a storm was refused: ${answer.why}`);
      return;
    }
    holding += 1;
    assert.ok(holding <= slots, `${holding} hold a lock of ${slots}`);
    const { fence } = answer.hold;
    assert.ok(!fences.includes(fence), `two hold under fence ${fence}`);
    // With several slots the answers to two grants may overtake one another.
    if (slots === 1) assert.ok(fence > Math.max(0, ...fences), `fence ${fence} came after ${fences.join(", ")}`);
    fences.push(fence);
    for (let turns = 0; turns < fence % 3; turns += 1) await turn();
    holding -= 1;
    assert.equal(await locks.release({ hold: answer.hold }), true);
  };
  await Promise.all(asks.map(play));
  return fences;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
