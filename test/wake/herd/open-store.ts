import { Client } from "pg";
import type { Engine } from "../../../src/engine/port.ts";
import { openNatsWakeUrl } from "../../../src/engines/nats/wake.ts";
import { openPostgresUrl } from "../../../src/engines/postgres/index.ts";
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
  const wake = carrier === undefined ? undefined : new Wake(hintsOf(openNatsWakeUrl(carrier), hints));
  if (store.startsWith("postgres:")) {
    const looks = countSteps();
    return { engine: await openPostgresUrl(store, wake), looks: async () => looks.count };
  }
  const engine = await SqliteEngine.open({ file: store, synchronous: "normal" }, wake);
  return { engine, looks: () => engine.looks() };
}

/** Statements that ask a PostgreSQL store for work: there is one function for that. */
function countSteps(): { readonly count: number } {
  const counted = { count: 0 };
  const { prototype } = Client;
  const query = Reflect.get(prototype, "query");
  Reflect.set(prototype, "query", function counting(this: Client, ...given: unknown[]): unknown {
    if (JSON.stringify(given[0] ?? "").includes(".step(")) counted.count += 1;
    const answer: unknown = Reflect.apply(query, this, given);
    return answer;
  });
  return counted;
}

function hintsOf(adapter: WakeAdapter, hints: boolean): WakeAdapter {
  return hints ? adapter : withoutHints(adapter);
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
