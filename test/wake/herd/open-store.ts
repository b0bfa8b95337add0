import { systemClock } from "../../../src/domain/clock.ts";
import type { Engine } from "../../../src/engine/port.ts";
import { openNatsWakeUrl } from "../../../src/engines/nats/wake.ts";
import { SqliteEngine } from "../../../src/engines/sqlite/engine.ts";
import type { WakeAdapter } from "../../../src/wake/port.ts";
import { Wake } from "../../../src/wake/wake.ts";
import type { HerdTask } from "./messages.ts";

export interface CountedStore {
  readonly engine: Engine;
  /** How often this connection has asked the store for work: one for a transaction, however many claims it serves. */
  readonly looks: () => Promise<number>;
}

export async function openStore({ store, carrier, hints }: Omit<HerdTask, "workers">): Promise<CountedStore> {
  const adapter = openNatsWakeUrl(carrier);
  const wake = new Wake(hints ? adapter : withoutHints(adapter), { clock: systemClock });
  const engine = await SqliteEngine.open({ file: store, synchronous: "normal" }, wake);
  return { engine, looks: () => engine.looks() };
}

function withoutHints(adapter: WakeAdapter): WakeAdapter {
  return {
    name: adapter.name,
    hints: undefined,
    publish: (messages) => adapter.publish(messages),
    listen: (channel, heard, missed) => adapter.listen(channel, heard, missed),
    close: () => adapter.close(),
  };
}
