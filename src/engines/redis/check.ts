/** What an operator should know of a Redis store. */
import type { Finding } from "../../engine/port.ts";
import type { Wire } from "./client.ts";
import { evicts, serverFacts, setting } from "./server-facts.ts";

type Values = ReadonlyMap<string, string>;

export async function check(wire: Wire): Promise<readonly Finding[]> {
  const { product, version, values } = await serverFacts(wire);
  const appendfsync = await setting(wire, "appendfsync");
  const mode = values.get("redis_mode") ?? "standalone";
  const role = values.get("role") ?? "master";
  return [
    { severity: "ok", subject: "server", detail: `${product} ${version}, ${mode}, ${role}.` },
    { subject: "memory", ...memory(values) },
    { subject: "durability", ...durability(values, appendfsync) },
    ...lastWrites(values),
    ...replication(values),
  ];
}

function memory(values: Values): Omit<Finding, "subject"> {
  const policy = values.get("maxmemory_policy") ?? "noeviction";
  const used = values.get("used_memory_human") ?? "unknown";
  if (evicts(values)) {
    const detail = `maxmemory-policy ${policy}: when the memory is full, accepted work is thrown away.`;
    return { severity: "error", detail, advice: "Set maxmemory-policy to noeviction." };
  }
  if (policy !== "noeviction") {
    const detail = `maxmemory-policy ${policy}, with no limit yet: ${used} in use. With a limit, accepted work would be thrown away.`;
    return { severity: "warning", detail, advice: "Set maxmemory-policy to noeviction before you set maxmemory." };
  }
  const limit = values.get("maxmemory") === "0" ? "no limit" : `a limit of ${values.get("maxmemory_human") ?? "?"}`;
  return { severity: "ok", detail: `${used} in use, ${limit}, nothing is evicted.` };
}

function durability(values: Values, appendfsync: string | undefined): Omit<Finding, "subject"> {
  if (values.get("aof_enabled") !== "1") {
    const detail = "appendonly no: what was accepted since the last snapshot is lost when the server ends.";
    return { severity: "warning", detail, advice: "Set appendonly yes." };
  }
  const begin = `appendonly yes, appendfsync ${appendfsync ?? "unknown"}:`;
  switch (appendfsync) {
    case "always":
      return { severity: "ok", detail: `${begin} accepted items survive power loss.` };
    case "everysec":
      return {
        severity: "warning",
        detail: `${begin} a crash of the server or a power loss can lose what was accepted in the last two seconds.`,
        advice: "Set appendfsync always if that is too much; calls that come together share one sync.",
      };
    case "no":
      return {
        severity: "warning",
        detail: `${begin} a crash of the server loses nothing, a power loss the last half minute.`,
        advice: "Set appendfsync everysec, or always.",
      };
    default:
      return { severity: "ok", detail: "appendonly yes; how often it is synced cannot be asked here." };
  }
}

function lastWrites(values: Values): Finding[] {
  const writes = ["rdb_last_bgsave_status", "aof_last_write_status", "aof_last_bgrewrite_status"];
  const failed = writes.filter((name) => (values.get(name) ?? "ok") !== "ok");
  if (failed.length === 0) return [];
  const detail = `The server could not write to its disk: ${failed.join(", ")}.`;
  return [{ severity: "error", subject: "disk", detail, advice: "Look at the server's log; free space on the disk." }];
}

function replication(values: Values): Finding[] {
  const subject = "replication";
  if (values.get("role") === "slave") {
    const detail = "This server is a replica: nothing can be written here.";
    return [
      { severity: "error", subject, detail, advice: "Connect to the primary, or by sentinels or a cluster client." },
    ];
  }
  const replicas = Number(values.get("connected_slaves") ?? "0");
  if (replicas === 0) return [];
  const detail = `${replicas} ${replicas === 1 ? "replica" : "replicas"}, which follow a moment later: a failover can lose what was accepted in that moment.`;
  return [{ severity: "ok", subject, detail, advice: "Set min-replicas-to-write to bound it." }];
}
