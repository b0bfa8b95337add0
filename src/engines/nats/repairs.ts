/** What can be done about messages that Baton cannot read. */
import type { Finding, Repair } from "../../engine/port.ts";
import { appearanceOf } from "./damage.ts";
import { type DamagedMessage, type Scan, scanStream } from "./damage-scan.ts";
import type { JetStream } from "./jetstream.ts";
import type { KeyStore } from "./key-store.ts";
import { lookAgain } from "./operate.ts";
import { NOTHING } from "./state.ts";
import { lastToken, type Subjects } from "./subjects.ts";

/** Named one by one; of more it is said how many there are. */
const MOST_NAMED = 20;

/** Every stream of the store, those of the queues first: what is remembered of an item may hang on its key. */
export async function scanStore(js: JetStream, subjects: Subjects): Promise<readonly (readonly [string, Scan])[]> {
  if ((await js.streamInfo(subjects.shared)) === undefined) return [];
  const scans: (readonly [string, Scan])[] = [];
  for (const record of (await js.subjects(subjects.shared, subjects.allQueueRecords)).keys()) {
    const own = subjects.of(lastToken(record));
    if ((await js.streamInfo(own.stream)) === undefined) continue;
    try {
      scans.push([own.stream, await scanStream(js, subjects, own.stream, own.all)]);
    } catch (error) {
      // Its queue is deleted meanwhile.
      if ((await js.streamInfo(own.stream)) !== undefined) throw error;
    }
  }
  scans.push([subjects.shared, await scanStream(js, subjects, subjects.shared, subjects.allShared)]);
  return scans;
}

export function damageFindings(scans: readonly (readonly [string, Scan])[]): readonly Finding[] {
  return scans.flatMap(([stream, { damaged, readOnly }]) => {
    const findings = damaged.slice(0, MOST_NAMED).map((one): Finding => {
      const advice = `baton doctor --repair: ${actionOf(one)}`;
      return { severity: one.isStray ? "warning" : "error", subject: subjectOf(one), detail: detailOf(one), advice };
    });
    const more = damaged.length - findings.length;
    if (more > 0)
      findings.push({ severity: "error", subject: `stream ${stream}`, detail: `${more} more messages are damaged.` });
    if (readOnly !== undefined)
      findings.push({
        severity: "ok",
        subject: `stream ${stream}`,
        detail: `Only its first ${readOnly} messages were read to look for damage.`,
      });
    return findings;
  });
}

/** @param storeOf the keys of a queue */
export function repairsOf(
  js: JetStream,
  scans: readonly (readonly [string, Scan])[],
  storeOf: (queue: string) => Promise<KeyStore>,
): readonly Repair[] {
  return scans.flatMap(([, { damaged }]) =>
    damaged.map((one) => ({
      subject: subjectOf(one),
      detail: detailOf(one),
      action: actionOf(one),
      content: one.stored.data,
      run: async () => {
        await js.remove(one.stream, one.stored.sequence);
        if (one.hides !== undefined) await wakeKey(await storeOf(one.hides.queue), one.hides.key);
      },
    })),
  );
}

/** As it stands below the message. If nothing is left of that, what waits in its line makes it ready. */
async function wakeKey(store: KeyStore, key: string): Promise<void> {
  const { sequence } = await store.read(key);
  if (sequence > 0) return await lookAgain(store, key);
  await store.letGo(key, (seen) => (seen.sequence === 0 ? { ...NOTHING, more: true } : undefined));
}

function subjectOf({ hides, stream, what, isStray }: DamagedMessage): string {
  if (hides !== undefined) return `queue ${hides.queue}`;
  return isStray ? `stream ${stream}` : what;
}

function detailOf({ what, why, stored, stream, isStray }: DamagedMessage): string {
  const message = `message ${stored.sequence} of stream ${stream} on ${stored.subject} (${appearanceOf(stored)})`;
  if (isStray) return `${message.charAt(0).toUpperCase()}${message.slice(1)} is not Baton's: ${why}.`;
  return `${what} cannot be read: ${message} is not as Baton writes it: ${why}.`;
}

function actionOf({ hides, isStray }: DamagedMessage): string {
  if (isStray) return "removes the message. Baton does not read it.";
  if (hides === undefined)
    return "removes the message. What was there before it, if anything is left of that, counts again.";
  return (
    "removes the message. The key goes on as it stood before it. If nothing is left of that, its waiting items are handed out, and an item " +
    "that was in work at the time may run again."
  );
}
