/**
 * Deleting a queue: its stream, and what the stream that all queues share has of it.
 *
 *   open ──the stream takes no subject of the queue any more──▶ closed ──it is empty, or force──▶ marked as deleted ──▶ gone
 *     ▲────────────────something came meanwhile─────────────────┘
 *
 * The stream is closed before it is looked at for the last time: whatever was accepted before is seen, and nothing is accepted after. The mark,
 * in the queue's record, is what other processes hear; whoever finds the stream gone reads it, and does not make the stream anew. Who may do all
 * this, and what becomes of a deletion that is cut off: see `deletion.ts`.
 */
import { QueueMissing, QueueNotEmpty } from "../../domain/errors.ts";
import { Deletion, type DeletionParts, isCutOff, TakenOver } from "./deletion.ts";
import { tellAll } from "./losses.ts";
import type { QueueRoom } from "./queue-room.ts";
import { recordIn } from "./setup.ts";
import type { Wire } from "./wire.ts";

export interface DeletionRequest extends DeletionParts {
  readonly wire: Wire;
  readonly queue: string;
  readonly force: boolean;
  /** The queue as this handle sees it. */
  room(): Promise<QueueRoom>;
}

/** False: there is no such queue. */
export async function deleteQueue(request: DeletionRequest): Promise<boolean> {
  const { js, wire, subjects, queue, force } = request;
  const own = subjects.of(queue);
  for (let isDeleted = false; ;) {
    const stored = await js.last(subjects.shared, own.queueRecord());
    if (stored === undefined || isDeleted) return isDeleted;
    const { deletion: others } = recordIn(queue, stored);
    if (others !== undefined && !(await isCutOff(request, stored))) continue;
    try {
      const room = others?.step === "deleted" ? undefined : await request.room();
      // Where it is refused, nobody who uses the queue need notice.
      if (room !== undefined && !force) await assertEmpty(room, queue);
      const deletion = await Deletion.take(request, queue, stored, force);
      if (deletion === undefined) continue;
      if (room !== undefined && !deletion.isDeleted) {
        await closeAndMark(deletion, room, queue, force);
        isDeleted = true;
        tellAll(wire, own);
      }
      await deletion.finish();
      return isDeleted;
    } catch (error) {
      // Somebody else goes on with it, or has brought it to its end.
      if (!(error instanceof TakenOver || error instanceof QueueMissing)) throw error;
    }
  }
}

async function closeAndMark(deletion: Deletion, room: QueueRoom, queue: string, force: boolean): Promise<void> {
  await deletion.close();
  if (force) return await deletion.mark();
  try {
    await assertEmpty(room, queue);
    await deletion.mark();
    if (await deletion.hasNew()) throw new QueueNotEmpty(queue, { waiting: 1, leased: 0, dead: 0 });
  } catch (error) {
    if (!(error instanceof TakenOver)) await deletion.reopen();
    throw error;
  }
}

async function assertEmpty(room: QueueRoom, queue: string): Promise<void> {
  const { waiting, delayed, running, dead } = await room.report();
  const leased = Math.max(running, (await room.inspector.keys({ queue, limit: 1, leased: true })).length);
  if (waiting + delayed + leased + dead > 0)
    throw new QueueNotEmpty(queue, { waiting: waiting + delayed, leased, dead });
}
