import { type Clock, pause } from "../../domain/clock.ts";
import { explain, isLater, isUnknown } from "./failure.ts";

/** How long a call waits for a server that is away, or loads its data, before it fails. */
export const PATIENCE_MS = 5_000;
export const TRY_AGAIN_MS = 50;

/**
 * Does it again while the server says that it has done nothing yet; what goes wrong otherwise is explained.
 *
 * @param looks it changes nothing: it is done again when its reply was lost, too
 */
export async function patiently<T>(clock: Clock, what: string, work: () => Promise<T>, looks = false): Promise<T> {
  const end = clock.monotonic() + PATIENCE_MS;
  for (;;) {
    try {
      return await work();
    } catch (error) {
      const mayGo = isLater(error) || (looks && isUnknown(error));
      if (!mayGo || clock.monotonic() > end) throw explain(error, what, looks);
      await pause(clock, TRY_AGAIN_MS);
    }
  }
}
