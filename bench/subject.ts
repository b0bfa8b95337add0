/**
 * What is compared. A subject is one file in `subjects/` that exports `subjects`; nothing else has to know of it.
 * The file is loaded by the main process too, which has no peers: import a peer inside `open`, never at the top.
 */
import type { Item } from "./item.ts";
import type { StoreKind } from "./stores/store.ts";

/** What `--only` names. */
export const WORKLOAD_GROUPS = ["submit", "drain", "latency", "keyed", "next", "backlog", "hot-key", "memory"] as const;

export type WorkloadGroup = (typeof WORKLOAD_GROUPS)[number];

export interface Subject {
  /** What `--subjects` names. A name selects its variants too: `bullmq` also `bullmq-always`. */
  readonly name: string;
  readonly title: string;
  /** What an accepted item survives. */
  readonly durability: string;
  /** How it is configured, and why: shown under the tables. */
  readonly setup: string;
  readonly store: StoreKind;
  /** The npm package, for its version. None: part of this repository. */
  readonly package?: string;
  /** An extra line beside its main one: measured in one round, and left out by `--quick` unless it is named. */
  readonly variant?: boolean;
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
