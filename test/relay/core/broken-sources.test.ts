/** Sources with one flaw each, which the conformance suite must catch: a suite that cannot fail proves nothing. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { describe, test } from "node:test";
import { setTimeout as wait } from "node:timers/promises";
import { runSourceCase, sourceCases, type SourceTarget } from "../../../src/conformance/index.ts";
import { systemClock } from "../../../src/domain/clock.ts";
import { MemoryStore } from "../../../src/engines/memory/index.ts";
import { connect } from "../../../src/index.ts";
import { batonSource, type Source, type SourceMessage } from "../../../src/relay/index.ts";

type Flaw = (source: Source) => Source;

/** Changes what is received, one message at a time. */
function inEach(change: (message: SourceMessage) => Partial<SourceMessage>): Flaw {
  return (source) => ({
    name: source.name,
    close: () => source.close(),
    receive: async (request) =>
      (await source.receive(request)).map((message) => {
        const { id, data, contentType, attributes, key, attempt, sentAt, fence, lost, holdMs, bury } = message;
        const same: SourceMessage = {
          id,
          data,
          contentType,
          attributes,
          key,
          attempt,
          sentAt,
          fence,
          lost,
          holdMs,
          bury,
          extend: () => message.extend(),
          acknowledge: () => message.acknowledge(),
          giveBack: (back) => message.giveBack(back),
        };
        return Object.assign(same, change(message));
      }),
  });
}

function inReceive(
  receive: (source: Source, request: Parameters<Source["receive"]>[0]) => ReturnType<Source["receive"]>,
): Flaw {
  return (source) => ({
    name: source.name,
    close: () => source.close(),
    receive: (request) => receive(source, request),
  });
}

/** Each with the case that must notice it. */
const FLAWS: Readonly<Record<string, readonly [string, Flaw]>> = {
  "cuts the data": ["a message arrives as it was sent", inEach(({ data }) => ({ data: data.subarray(0, 10) }))],
  "looks every two seconds": [
    "a receive that waits has an arrival at once",
    inReceive(async (source, request) => {
      await wait(2_500);
      return await source.receive(request);
    }),
  ],
  "does not hear the signal": [
    "a receive that waits ends when its signal fires",
    inReceive((source, { max }) => source.receive({ max, signal: new AbortController().signal })),
  ],
  "waits when it is only to try": [
    "a try on an empty queue answers at once with nothing",
    inReceive((source, { max }) => source.receive({ max, signal: AbortSignal.timeout(3_000) })),
  ],
  "brings more than was asked for": [
    "a receive brings no more messages than were asked for, and each one once",
    inReceive((source, { signal }) => source.receive({ max: 10, signal })),
  ],
  "keeps what nobody asks for any more": [
    "a message that comes after a receive was given up is for the next one",
    inReceive((source, { max, signal }) => {
      const receiving = source.receive({ max, signal: new AbortController().signal });
      const over = new Promise<never[]>((resolve) => signal.addEventListener("abort", () => resolve([])));
      return Promise.race([receiving, over]);
    }),
  ],
  "forgets an acknowledgement": [
    "an acknowledged message does not come again",
    inEach((message) => ({ acknowledge: () => message.giveBack({ delayMs: 0, countAttempt: true }) })),
  ],
  "acknowledges what is given back": [
    "a message given back comes again at once",
    inEach((message) => ({ giveBack: () => message.acknowledge() })),
  ],
  "gives back at once what is to stay away": [
    "a message given back with a delay stays away for it",
    inEach((message) => ({ giveBack: () => message.giveBack({ delayMs: 0, countAttempt: true }) })),
  ],
  "counts wrongly": ["a message given back to be counted has the next number", inEach(() => ({ attempt: 1 }))],
  "counts what was not tried": [
    "a message given back uncounted keeps its number",
    inEach((message) => ({ giveBack: () => message.giveBack({ delayMs: 0, countAttempt: true }) })),
  ],
  "throws away what it should bury": [
    "a buried message is among the dead letters, and does not come again",
    inEach((message) => ({ bury: () => message.acknowledge() })),
  ],
  "has no attributes": ["attributes arrive beside the data", inEach(() => ({ attributes: {} }))],
};

const store = new MemoryStore({ clock: systemClock });

function target(flaw: Flaw): SourceTarget {
  return {
    name: "flawed",
    async create(holdMs) {
      const queue = `q-${randomUUID()}`;
      const baton = await connect(store.connect());
      return {
        open: async () => flaw(await batonSource({ name: queue, store: baton, queue, leaseMs: holdMs })),
        send: async ({ data, key = "key", attributes = {} }) => {
          await baton.queue(queue).submit(key, data, { type: "text/plain", headers: attributes });
        },
        buried: async () => (await baton.queue(queue).dead()).map(({ payload }) => String(payload.body)),
        dispose: () => baton.close({ grace: 0 }),
      };
    },
  };
}

describe("the suite catches a source that", { concurrency: 16 }, () => {
  for (const [title, [name, flaw]] of Object.entries(FLAWS)) {
    test(title, async () => {
      const one = sourceCases.find((candidate) => candidate.name === name);
      assert.ok(one, `There is no case of the name: ${name}`);
      const result = await runSourceCase(one, target(flaw), 5_000);
      assert.equal(result.status, "failed");
      const whole = await runSourceCase(
        one,
        target((source) => source),
      );
      assert.equal(whole.status, "passed");
    });
  }
});
