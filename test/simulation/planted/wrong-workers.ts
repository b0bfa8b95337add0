import type * as port from "../../../src/engine/port.ts";
import { PassThrough } from "../../pass-through.ts";
import type { MakePlant } from "./plant.ts";

/** A worker that stops takes its running items for failed. */
export const failOnStop: MakePlant = () => ({ client: (engine) => new FailOnStop(engine) });

class FailOnStop extends PassThrough {
  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    const failure = { message: "stopped" };
    return this.inner.settle(
      settlements.map((one) =>
        one.ending.type === "release" ? { ...one, ending: { type: "retry", delayMs: 0, place: "keep", failure } } : one,
      ),
    );
  }
}

/** A worker calls an item done whose handler failed. */
export const swallowFailures: MakePlant = () => ({ client: (engine) => new SwallowFailures(engine) });

class SwallowFailures extends PassThrough {
  override settle(settlements: readonly port.Settlement[]): Promise<readonly port.SettleResult[]> {
    return this.inner.settle(
      settlements.map((one) => (one.ending.type === "retry" ? { ...one, ending: { type: "done" } } : one)),
    );
  }
}
