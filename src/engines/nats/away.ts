import type { Clock, Timer } from "../../domain/clock.ts";
import { BatonError } from "../../domain/errors.ts";
import type { Wire } from "./wire.ts";

/** A connection that is back sooner is nothing to speak of: a server of a cluster that was restarted. */
const AWAY_MS = 2_000;
/** While it lasts it is said again; whoever hears it tells it more rarely. */
const AGAIN_MS = 5_000;

/** Claims wait through an outage, and nobody would hear of it: so it is told from the connection. */
export function tellAway(wire: Wire, clock: Clock, listener: (away: BatonError | undefined) => void): void {
  let timer: Timer | undefined;
  let isTold = false;
  const tellIn = (ms: number): void => {
    timer = clock.setTimer(ms, () => {
      isTold = true;
      listener(
        new BatonError(
          "STORE_UNAVAILABLE",
          "The connection to NATS is lost. It is tried again by itself; look after the server.",
        ),
      );
      tellIn(AGAIN_MS);
    });
  };
  wire.watch((up) => {
    if (!up) {
      if (timer === undefined) tellIn(AWAY_MS);
      return;
    }
    timer?.cancel();
    timer = undefined;
    if (isTold) listener(undefined);
    isTold = false;
  });
}
