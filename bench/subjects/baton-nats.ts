import { openBaton } from "../child/baton.ts";
import type { Subject } from "../subject.ts";

export const subjects: readonly Subject[] = [
  {
    name: "baton-nats",
    title: "Baton, NATS",
    durability: "crash of processes; power loss, but for the last two minutes",
    setup:
      "Defaults: one server, streams in files, `sync_interval` at the server's default; leases of 30 s. " +
      "Every item is exclusive; where a workload has no keys, each item has its own.",
    store: "nats",
    open: ({ location }) => openBaton(location),
  },
];
