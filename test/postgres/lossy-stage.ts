import type { TestContext } from "node:test";
import { Client } from "pg";
import type { PostgresServer } from "../../servers/postgres.ts";
import type { Engine } from "../../src/engine/port.ts";
import { openPostgresUrl } from "../../src/engines/postgres/index.ts";
import { PostgresDesk } from "./desk.ts";
import { LossyWay } from "../lossy-way.ts";

/** An engine whose way to the store can lose replies, another one, and somebody who looks at the tables. */
export interface LossyStage {
  readonly url: string;
  readonly engine: Engine;
  readonly other: Engine;
  readonly way: LossyWay;
  readonly watcher: Client;
}

/** In a database of its own, with a queue of cars. */
export async function openLossyStage(context: TestContext, server: PostgresServer): Promise<LossyStage> {
  const { url } = await PostgresDesk.withDatabase(context, server);
  const way = await LossyWay.to(url);
  const engine = await openPostgresUrl(way.url);
  const other = await openPostgresUrl(url);
  const watcher = new Client(url);
  await watcher.connect();
  context.after(async () => {
    await engine.close();
    await other.close();
    way.close();
    await watcher.end();
  });
  for (const one of [engine, other]) await one.declare({ queue: "cars" });
  return { url, engine, other, way, watcher };
}
