/**
 * Whether a queue is paused stands in its record, and its consumers follow. The two are not written together, and whoever makes a consumer anew
 * has read the record before. So whoever has changed one of them looks at the other afterwards, until they agree: the last change of either is
 * followed by a look.
 */
import { QueueMissing } from "../../domain/errors.ts";
import { FOR_EVER } from "./consumers.ts";
import type { JetStream } from "./jetstream.ts";
import { Lost } from "./requests.ts";
import { recordIn } from "./setup.ts";
import type { Subjects } from "./subjects.ts";

interface Place {
  readonly js: JetStream;
  readonly subjects: Subjects;
  readonly queue: string;
}

/** @param restore makes anew what of the queue is gone */
export async function pauseQueue(
  { js, subjects, queue }: Place,
  paused: boolean,
  restore: () => Promise<unknown>,
): Promise<void> {
  const own = subjects.of(queue);
  for (;;) {
    const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
    if (stored === undefined) return;
    const record = recordIn(queue, stored);
    if (record.deletion?.step === "deleted") throw new QueueMissing(queue);
    // Whoever deletes it must find the record as it wrote it, or does not delete it.
    if (record.deletion !== undefined) throw new Lost(own.stream);
    const done = await Promise.all(
      record.levels.map((_, level) => js.pauseConsumer(own.stream, own.readyConsumer(level), paused ? FOR_EVER : 0)),
    );
    if (done.includes(false)) {
      await restore();
      throw new Lost(own.stream);
    }
    // Written after them: whoever hears of it finds the consumers as it says.
    const result = await js.put(subjects.queueRecord(queue), JSON.stringify({ ...record, paused }), {
      expect: stored.sequence,
      rollup: true,
    });
    if (result.refused) continue;
    await alignPauses({ js, subjects, queue });
    return;
  }
}

/** The consumers that are there become what the record says. One that is not is made by somebody who looks afterwards. */
export async function alignPauses({ js, subjects, queue }: Place): Promise<void> {
  const own = subjects.of(queue);
  for (let seen = 0; ;) {
    const stored = await js.last(subjects.shared, subjects.queueRecord(queue));
    if (stored === undefined || stored.sequence === seen) return;
    seen = stored.sequence;
    const { levels, paused, deletion } = recordIn(queue, stored);
    if (deletion !== undefined) return;
    const align = async (level: number): Promise<void> => {
      const consumer = await js.consumerInfo(own.stream, own.readyConsumer(level));
      if (consumer !== undefined && (consumer.paused ?? false) !== paused)
        await js.pauseConsumer(own.stream, own.readyConsumer(level), paused ? FOR_EVER : 0);
    };
    await Promise.all(levels.map((_, level) => align(level)));
  }
}
