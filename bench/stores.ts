import { openFileStore } from "./stores/file-store.ts";
import { openNatsStore } from "./stores/nats-store.ts";
import { removeFolders } from "./stores/place.ts";
import { openPostgresStore } from "./stores/postgres-store.ts";
import { openRedisStore } from "./stores/redis-store.ts";
import type { Store, StoreKind } from "./stores/store.ts";

const OPENERS: Readonly<Record<StoreKind, () => Promise<Store>>> = {
  file: openFileStore,
  "redis-everysec": () => openRedisStore("everysec"),
  "redis-always": () => openRedisStore("always"),
  postgres: openPostgresStore,
  nats: () => openNatsStore("default"),
  "nats-always": () => openNatsStore("always"),
};

/** The stores of one run, each opened when it is first needed. */
export class Stores implements AsyncDisposable {
  readonly #opening = new Map<StoreKind, Promise<Store>>();

  /** Rejects with the reason if there is none to be had. */
  get(kind: StoreKind): Promise<Store> {
    const opening = this.#opening.get(kind) ?? OPENERS[kind]();
    this.#opening.set(kind, opening);
    return opening;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const opened = await Promise.allSettled(this.#opening.values());
    await Promise.all(opened.flatMap((one) => (one.status === "fulfilled" ? [one.value.stop()] : [])));
    removeFolders();
  }
}
