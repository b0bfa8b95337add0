import { openBaton } from "../child/baton.ts";
import type { Subject } from "../subject.ts";

const FULL_ONLY = "measured with FULL only";

export const subjects: readonly Subject[] = [
  {
    name: "sqlite",
    title: "Baton, SQLite FULL",
    class: "synced",
    durability: "power loss",
    setup:
      "Defaults: synchronous FULL, leases of 30 s. Every item is exclusive; where a workload has no keys, each item has its own.",
    store: "file",
    baseline: true,
    open: ({ location }) => openBaton(`sqlite:${location}?synchronous=full`),
  },
  {
    name: "sqlite-normal",
    title: "Baton, SQLite NORMAL",
    class: "buffered",
    durability: "crash of processes",
    setup: "As above with synchronous NORMAL: no fsync per transaction.",
    store: "file",
    variant: true,
    against: "sqlite",
    without: { backlog: FULL_ONLY, "hot-key": FULL_ONLY, memory: FULL_ONLY },
    open: ({ location }) => openBaton(`sqlite:${location}?synchronous=normal`),
  },
];
