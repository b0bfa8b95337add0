import { openBaton } from "../child/baton.ts";
import type { Subject } from "../subject.ts";

const EVERYSEC_ONLY = "measured with everysec only";

const setup =
  "`maxmemory-policy noeviction`; leases of 30 s. Every item is exclusive; where a workload has no keys, each item has its own.";

export const subjects: readonly Subject[] = [
  {
    name: "baton-redis",
    title: "Baton, Redis everysec",
    class: "buffered",
    durability: "power loss, but for the last second",
    setup: `Redis \`appendonly yes\`, \`appendfsync everysec\`, as BullMQ's is. ${setup}`,
    store: "redis-everysec",
    baseline: true,
    open: ({ location }) => openBaton(location),
  },
  {
    name: "baton-redis-always",
    title: "Baton, Redis always",
    class: "synced",
    durability: "power loss",
    setup: "As above with `appendfsync always`: the same durability as SQLite FULL.",
    store: "redis-always",
    baseline: true,
    variant: true,
    without: { backlog: EVERYSEC_ONLY, "hot-key": EVERYSEC_ONLY, memory: EVERYSEC_ONLY },
    open: ({ location }) => openBaton(location),
  },
];
