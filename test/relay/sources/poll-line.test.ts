/** Who gets what an open poll brings, told by a queue that answers when it is told to. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { type FetchRequest, PollLine } from "../../../src/relay/sources/polling/poll-line.ts";
import type { GiveBackRequest, SourceMessage } from "../../../src/relay/source.ts";
import { never, now } from "./received.ts";

/** A line, the requests that it made, and the messages that came back. */
class Stage {
  readonly requests: (FetchRequest & PromiseWithResolvers<readonly SourceMessage[]>)[] = [];
  readonly returned: (GiveBackRequest & { readonly id: string })[] = [];
  readonly line: PollLine;

  constructor(options: { readonly isOneByOne?: boolean; readonly polls?: number } = {}) {
    this.line = new PollLine({
      name: "line",
      most: 10,
      polls: options.polls ?? 4,
      waitMs: 20_000,
      isOneByOne: () => options.isOneByOne ?? false,
      fetch: (request) => {
        const answer = Promise.withResolvers<readonly SourceMessage[]>();
        this.requests.push({ ...request, ...answer });
        request.signal.addEventListener("abort", () => answer.reject(new Error("broken off")));
        return answer.promise;
      },
      random: () => 0,
    });
  }

  message(id: string, attempt = 1): SourceMessage {
    return {
      id,
      data: new Uint8Array(),
      contentType: undefined,
      attributes: {},
      key: undefined,
      attempt,
      sentAt: undefined,
      fence: undefined,
      lost: never,
      // A third of it is how long a message waits for somebody to ask.
      holdMs: 900,
      extend: () => Promise.resolve(),
      acknowledge: () => Promise.resolve(),
      giveBack: (request) => {
        this.returned.push({ id, ...request });
        return Promise.resolve();
      },
      bury: undefined,
    };
  }

  /** A receive that gave up, and left its poll behind. */
  async leavePoll(): Promise<void> {
    const over = new AbortController();
    const waiting = this.line.receive(1, over.signal);
    await turn();
    over.abort();
    assert.deepEqual(await waiting, []);
  }

  answer(index: number, ...messages: readonly SourceMessage[]): void {
    this.requests[index]?.resolve(messages);
  }

  async untilReturned(): Promise<void> {
    while (this.returned.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe("polls", () => {
  test("ask together for those who wait, and for no more", async () => {
    const stage = new Stage();
    const waiting = [stage.line.receive(1, never), stage.line.receive(2, never), stage.line.receive(4, never)];
    await turn();
    assert.deepEqual(
      stage.requests.map(({ most, wait }) => [most, wait]),
      [[7, true]],
    );
    stage.answer(0, stage.message("a"), stage.message("b"), stage.message("c"));
    assert.deepEqual(
      (await waiting[0])?.map(({ id }) => id),
      ["a"],
    );
    assert.deepEqual(
      (await waiting[1])?.map(({ id }) => id),
      ["b", "c"],
    );
    await turn();
    assert.equal(stage.requests[1]?.most, 4, "the last one is still waited for");
  });

  test("are adopted by whoever asks next", async () => {
    const stage = new Stage();
    await stage.leavePoll();
    const next = stage.line.receive(1, never);
    await turn();
    assert.equal(stage.requests.length, 1);
    stage.answer(0, stage.message("a"));
    assert.equal((await next)[0]?.id, "a");
  });

  test("that bring something to nobody keep it for a moment, and then give it back at once", async () => {
    const stage = new Stage();
    await stage.leavePoll();
    stage.answer(0, stage.message("a"));
    await turn();
    assert.equal((await stage.line.receive(1, now))[0]?.id, "a", "a try is somebody");
    await stage.leavePoll();
    stage.answer(1, stage.message("b"));
    await stage.untilReturned();
    assert.deepEqual(stage.returned, [{ id: "b", delayMs: 0, countAttempt: false }]);
  });

  test("do not use up the attempts of a message: one that comes again stays away for as long as polls last", async () => {
    const stage = new Stage();
    await stage.leavePoll();
    stage.answer(0, stage.message("a", 2));
    await stage.untilReturned();
    assert.equal(stage.returned[0]?.delayMs, 20_000);
  });

  test("bring one message each where groups must be kept apart, and a try then asks for more groups", async () => {
    const stage = new Stage({ isOneByOne: true, polls: 3 });
    const trying = stage.line.receive(10, now);
    assert.deepEqual(
      stage.requests.map(({ most }) => most),
      [1],
    );
    stage.answer(0, stage.message("a"));
    await turn();
    assert.deepEqual(
      stage.requests.map(({ most, wait }) => [most, wait]),
      Array.from({ length: 4 }, () => [1, false]),
    );
    stage.answer(1, stage.message("b"));
    stage.answer(2);
    stage.requests[3]?.reject(new Error("away"));
    assert.deepEqual(
      (await trying).map(({ id }) => id),
      ["a", "b"],
    );
  });

  test("that fail are told to those who waited, and the next is asked for all the same", async () => {
    const stage = new Stage();
    const waiting = stage.line.receive(1, never);
    await turn();
    stage.requests[0]?.reject(new Error("away"));
    await assert.rejects(waiting, { message: "away" });
    const next = stage.line.receive(1, never);
    await turn();
    stage.answer(1, stage.message("a"));
    assert.equal((await next).length, 1);
  });

  test("that are open when the line is closed bring what goes back at once", async () => {
    const stage = new Stage();
    await stage.leavePoll();
    const refused = assert.rejects(stage.line.receive(1, never), { code: "CLOSED" });
    const closed = stage.line.close();
    stage.answer(0, stage.message("a", 3));
    await Promise.all([closed, refused]);
    assert.deepEqual(stage.returned, [{ id: "a", delayMs: 0, countAttempt: false }]);
  });

  test("whose message is on its way back when the line is closed are closed when it has arrived", async () => {
    const stage = new Stage();
    await stage.leavePoll();
    const begun = Promise.withResolvers<void>();
    const arrived = Promise.withResolvers<void>();
    const giveBack = (): Promise<void> => {
      begun.resolve();
      return arrived.promise;
    };
    stage.answer(0, { ...stage.message("a"), giveBack });
    await begun.promise;
    let isClosed = false;
    const closed = stage.line.close().then(() => (isClosed = true));
    await turn();
    assert.equal(isClosed, false, "whoever closes the line may end the process next");
    arrived.resolve();
    await closed;
  });
});
