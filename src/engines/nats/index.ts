import "../../domain/node-version.ts";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Engine } from "../../engine/port.ts";
import { checkServers, openConnection, wireOf } from "./connection.ts";
import { NatsEngine } from "./engine.ts";
import { type NatsOptions, parseNatsUrl, parseStoreOptions, type StoreOptions } from "./options.ts";

export type { NatsOptions, StoreOptions };
export type { TlsOptions } from "./options.ts";
export { natsWake, natsWakeOn } from "./wake.ts";

/** Any number of processes on any number of machines, with nothing to run but NATS. */
export async function natsEngine(options: NatsOptions): Promise<Engine> {
  const connection = await openConnection(options);
  try {
    await checkServers(connection);
  } catch (error) {
    await connection.close();
    throw error;
  }
  return new NatsEngine({
    wire: wireOf(connection, true),
    random,
    ...(options.store === undefined ? {} : { options: options.store }),
  });
}

/** On a connection that the application has, and keeps: closing the engine leaves it open. */
export async function natsEngineOn(connection: NatsConnection, options: StoreOptions = {}): Promise<Engine> {
  parseStoreOptions(options);
  await checkServers(connection);
  return new NatsEngine({ wire: wireOf(connection, false), options, random });
}

/** `nats://user:password@host:4222,host2:4222?prefix=baton&replicas=3`. */
export async function openNatsUrl(url: string): Promise<Engine> {
  return await natsEngine(parseNatsUrl(url));
}

function random(): number {
  // oxlint-disable-next-line no-restricted-properties -- here randomness comes in from outside
  return Math.random();
}
