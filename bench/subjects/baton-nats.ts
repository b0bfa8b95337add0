import { openBaton } from "../child/baton.ts";
import type { Subject } from "../subject.ts";

const DEFAULT_ONLY = "measured with the server's default only";

export const subjects: readonly Subject[] = [
  {
    name: "baton-nats",
    title: "Baton, NATS",
    class: "buffered",
    durability: "crash of processes; power loss, but for the last two minutes",
    setup:
      "Defaults: one server, streams in files, `sync_interval` at the server's default; leases of 30 s. " +
      "Every item is exclusive; where a workload has no keys, each item has its own.",
    store: "nats",
    baseline: true,
    open: ({ location }) => openBaton(location),
  },
  {
    name: "baton-nats-always",
    title: "Baton, NATS always",
    class: "synced",
    durability: "power loss",
    setup: "As above with `sync_interval: always`: the same durability as PostgreSQL and SQLite FULL.",
    store: "nats-always",
    baseline: true,
    variant: true,
    without: { backlog: DEFAULT_ONLY, "hot-key": DEFAULT_ONLY, memory: DEFAULT_ONLY },
    open: ({ location }) => openBaton(location),
  },
];
