import { openBaton } from "../child/baton.ts";
import type { Subject } from "../subject.ts";

export const subjects: readonly Subject[] = [
  {
    name: "baton-postgres",
    title: "Baton, PostgreSQL",
    class: "synced",
    durability: "crash of processes; power loss",
    setup:
      "Defaults: `synchronous_commit` on, two connections per process, leases of 30 s. " +
      "Every item is exclusive; where a workload has no keys, each item has its own.",
    store: "postgres",
    baseline: true,
    open: ({ location }) => openBaton(location),
  },
];
