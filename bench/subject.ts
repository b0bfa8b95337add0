/**
 * What is compared. A subject is one file in `subjects/` that exports `subjects`; nothing else has to know of it, unless
 * it brings a store of its own, which is one file in `stores/` and a line in stores.ts.
 * The file is loaded by the main process too, which has no peers: import a peer inside `open`, never at the top.
 */
import type { Item } from "./item.ts";
import type { StoreKind } from "./stores/store.ts";

/** What `--only` names. */
export const WORKLOAD_GROUPS = ["submit", "drain", "latency", "keyed", "next", "backlog", "hot-key", "memory"] as const;

export type WorkloadGroup = (typeof WORKLOAD_GROUPS)[number];

/** `synced`: on the disk when it is accepted. `buffered`: handed to the system, and on the disk some time later. */
export const DURABILITY_CLASSES = ["synced", "buffered"] as const;

export type DurabilityClass = (typeof DURABILITY_CLASSES)[number];

export interface Subject {
  /** What `--subjects` names. A name selects its variants too: `bullmq` also `bullmq-always`. */
  readonly name: string;
  readonly title: string;
  /** Only within a class are figures compared like with like. */
  readonly class: DurabilityClass;
  /** What an accepted item survives, in words. */
  readonly durability: string;
  /** How it is configured, and why: shown under the tables. */
  readonly setup: string;
  readonly store: StoreKind;
  /** The npm package, for its version. None: part of this repository. */
  readonly package?: string;
  /** An extra line beside its main one: left out by `--quick` unless it is named. */
  readonly variant?: boolean;
  /** Baton on one of its stores: the others are held against it. */
  readonly baseline?: boolean;
  /** Not a queue, but what its store could do at best. */
  readonly ceiling?: boolean;
  /** Compared with this baseline only: it says something about the store that they share. */
  readonly against?: string;
  /** What it does not do, and why. Without `keyed` it has no keys, and takes no part wherever they are needed. */
  readonly without?: Partial<Readonly<Record<WorkloadGroup, string>>>;
  open(options: OpenOptions): Promise<Client>;
}

export interface OpenOptions {
  /** Of a store that was empty before the workload began: a URL, or the path of a file. */
  readonly location: string;
  /** At most one item per key at a time, in the order of submission. */
  readonly exclusive: boolean;
}

export type Handle = (item: Item) => void | Promise<void>;

export interface WorkOptions {
  readonly concurrency: number;
  /** `backlog`: much is waiting, throughput counts. `idle`: nothing is waiting, the time to react counts. */
  readonly expect: "backlog" | "idle";
}

/** A process's connection to the subject. */
export interface Client {
  /** Makes tables, queues and the like. Called once, before any other process opens the store. */
  prepare(): Promise<void>;
  /** Resolves when the item is accepted, as durably as the subject says. */
  submit(item: Item): Promise<unknown>;
  submitMany(items: readonly Item[]): Promise<unknown>;
  /** Starts working, and resolves to what stops it. */
  work(options: WorkOptions, handle: Handle): Promise<() => Promise<void>>;
  close(): Promise<void>;
}
