/**
 * A ready key that carries several items is a record, and consumers know it by an older message. If that were gone, the key would never be
 * handed out. It should not happen; if it does, it is mended here. Nobody waits for it, and a queue may have very many such keys: so it is
 * done a few at a time, with rests between.
 */
import { pause } from "../../domain/clock.ts";
import { decodeState } from "./codec.ts";
import type { KeyStore } from "./key-store.ts";
import { lastToken } from "./subjects.ts";

const AT_A_TIME = 64;
const REST_MS = 50;

export async function mendAnnouncements(store: KeyStore, isClosed: () => boolean): Promise<void> {
  const { js, subjects, clock } = store;
  for await (const page of js.pagesOfLast(subjects.stream, subjects.allRecords, AT_A_TIME)) {
    await Promise.allSettled(
      page.map(async ({ subject, data, sequence }) => {
        const state = decodeState(data, sequence);
        if (state.kind !== "ready" || (await js.at(subjects.stream, state.announced)) !== undefined) return;
        await store.change(lastToken(subject), (now) =>
          now.sequence === sequence ? { ...now.state, announced: 0 } : undefined,
        );
      }),
    );
    await pause(clock, REST_MS);
    if (isClosed()) return;
  }
}
