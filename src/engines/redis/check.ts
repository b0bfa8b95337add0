/** What an operator should know of a Redis store. */
import type { Finding } from "../../engine/port.ts";
import type { Wire } from "./client.ts";
import { evicts, serverFacts, setting } from "./server-facts.ts";

export async function check(wire: Wire): Promise<readonly Finding[]> {
  const { product, version, values } = await serverFacts(wire);
  const appendfsync = await setting(wire, "appendfsync");
  return [
    {
      severity: "ok",
      subject: "server",
      detail: `${product} ${version}, ${values.get("redis_mode") ?? "standalone"}, ${values.get("role") ?? "master"}.`,
    },
    memory(values),
    durability(values, appendfsync),
    ...lastWrites(values),
    ...replication(values),
  ];
}

function memory(values: ReadonlyMap<string, string>): Finding {
  const subject = "memory";
  const policy = values.get("maxmemory_policy") ?? "noeviction";
  const used = values.get("used_memory_human") ?? "unknown";
  if (evicts(values)) {
    return {
      severity: "error",
      subject,
      detail: `maxmemory-policy ${policy}: when the memory is full, accepted work is thrown away.`,
      advice: "Set maxmemory-policy to noeviction.",
    };
  }
  if (policy !== "noeviction") {
    return {
      severity: "warning",
      subject,
      detail: `maxmemory-policy ${policy}, with no limit yet: ${used} in use. With a limit, accepted work would be thrown away.`,
      advice: "Set maxmemory-policy to noeviction before you set maxmemory.",
    };
  }
  const limit = values.get("maxmemory") === "0" ? "no limit" : `a limit of ${values.get("maxmemory_human") ?? "?"}`;
  return { severity: "ok", subject, detail: `${used} in use, ${limit}, nothing is evicted.` };
}

function durability(values: ReadonlyMap<string, string>, appendfsync: string | undefined): Finding {
  const subject = "durability";
  if (values.get("aof_enabled") !== "1") {
    return {
      severity: "warning",
      subject,
      detail: "appendonly no: what was accepted since the last snapshot is lost when the server ends.",
      advice: "Set appendonly yes.",
    };
  }
  switch (appendfsync) {
    case "always":
      return {
        severity: "ok",
        subject,
        detail: "appendonly yes, appendfsync always: accepted items survive power loss.",
      };
    case "everysec":
      return {
        severity: "warning",
        subject,
        detail:
          "appendonly yes, appendfsync everysec: a crash of the server or a power loss can lose what was accepted in the last two seconds.",
        advice: "Set appendfsync always if that is too much; calls that come together share one sync.",
      };
    case "no":
      return {
        severity: "warning",
        subject,
        detail:
          "appendonly yes, appendfsync no: a crash of the server loses nothing, a power loss the last half minute.",
        advice: "Set appendfsync everysec, or always.",
      };
    default:
      return { severity: "ok", subject, detail: "appendonly yes; how often it is synced cannot be asked here." };
  }
}

function lastWrites(values: ReadonlyMap<string, string>): Finding[] {
  const failed = ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"].filter(
    (name) => (values.get(name) ?? "ok") !== "ok",
  );
  if (failed.length === 0) return [];
  return [
    {
      severity: "error",
      subject: "disk",
      detail: `The server could not write to its disk: ${failed.join(", ")}.`,
      advice: "Look at the server's log; free space on the disk.",
    },
  ];
}

function replication(values: ReadonlyMap<string, string>): Finding[] {
  const subject = "replication";
  if (values.get("role") === "slave") {
    return [
      {
        severity: "error",
        subject,
        detail: "This server is a replica: nothing can be written here.",
        advice: "Connect to the primary, or by sentinels or a cluster client.",
      },
    ];
  }
  const replicas = Number(values.get("connected_slaves") ?? "0");
  if (replicas === 0) return [];
  return [
    {
      severity: "ok",
      subject,
      detail: `${replicas} ${replicas === 1 ? "replica" : "replicas"}, which follow a moment later: a failover can lose what was accepted in that moment.`,
      advice: "Set min-replicas-to-write to bound it.",
    },
  ];
}
