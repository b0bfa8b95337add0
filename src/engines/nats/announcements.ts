/**
 * A ready key that carries several items is a record, and consumers know it by an older message. If that were gone, the key would never be
 * handed out. It should not happen; if it does, it is mended here. Nobody waits for it, and a queue may have very many such keys: so it is
 * done a few at a time, with rests between.
 */
import { pause } from "../../domain/clock.ts";
import type { KeyStore } from "./key-store.ts";
import { readRecords } from "./records.ts";

const AT_A_TIME = 64;
const REST_MS = 50;

export async function mendAnnouncements(store: KeyStore, isClosed: () => boolean): Promise<void> {
  const { js, subjects, clock } = store;
  for await (const page of js.pagesOfLast(subjects.stream, subjects.allRecords, AT_A_TIME)) {
    await Promise.allSettled(
      readRecords(page).map(async ({ key, sequence, state }) => {
        if (state.kind !== "ready" || (await js.at(subjects.stream, state.announced)) !== undefined) return;
        await store.change(key, (now) => (now.sequence === sequence ? { ...now.state, announced: 0 } : undefined));
      }),
    );
    await pause(clock, REST_MS);
    if (isClosed()) return;
  }
}
