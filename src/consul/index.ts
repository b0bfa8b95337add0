import "../domain/node-version.ts";
import { systemClock } from "../domain/clock.ts";
import type { Finding } from "../engine/port.ts";
import type { Locks } from "../locks/port.ts";
import { loadUndici } from "./client-library.ts";
import { ConsulHttp } from "./http.ts";
import { ConsulLocks } from "./locks.ts";
import { type ConsulOptions, consulSettings, type ConsulTls, parseConsulUrl } from "./options.ts";

export type { ConsulOptions, ConsulTls };

/** Locks that also know whether their store is well. */
export interface ConsulStore extends Locks {
  check(): Promise<readonly Finding[]>;
}

/** Locks, sessions and elections in Consul. It keeps no queues. */
export async function consulLocks(options: ConsulOptions = {}): Promise<ConsulStore> {
  const settings = consulSettings(options, process.env);
  const { prefix, shortestLeaseMs } = settings;
  const http = new ConsulHttp(settings, await loadUndici());
  const locks = new ConsulLocks({ http, prefix, shortestLeaseMs, clock: systemClock, random: Math.random });
  try {
    // Whether it is there, has a leader and lets us in is better heard now than with the first lock.
    await locks.read("baton");
    return locks;
  } catch (error) {
    await locks.close();
    throw error;
  }
}

/** `consul://host:8500/prefix?dc=…`, or `consul+https://…`. */
export async function openConsulUrl(url: string): Promise<ConsulStore> {
  return await consulLocks(parseConsulUrl(url));
}
