import type { Finding } from "../engine/port.ts";
import type { ConsulApi } from "./api.ts";
import { persist, type Outside } from "./patience.ts";

/** With fewer, one server that is down takes the others along. */
const FEWEST_SERVERS = 3;

/** What `baton doctor` says. */
export async function checkConsul(api: ConsulApi, outside: Outside): Promise<readonly Finding[]> {
  const { leader, servers } = await persist(outside, "a question for the servers", () => api.servers());
  return [leaderFinding(leader), serversFinding(servers)];
}

function leaderFinding(leader: string): Finding {
  const subject = "leader";
  if (leader !== "") return { severity: "ok", subject, detail: leader };
  return {
    severity: "error",
    subject,
    detail: "Consul has no leader: nothing can be locked or released.",
    advice: "See whether a majority of its servers is up.",
  };
}

function serversFinding(servers: readonly string[]): Finding {
  const subject = "servers";
  if (servers.length >= FEWEST_SERVERS) return { severity: "ok", subject, detail: servers.join(", ") };
  return {
    severity: "warning",
    subject,
    detail: `${servers.length === 1 ? "One server" : `${servers.length} servers`}: while one is down, nothing can be locked or released.`,
    advice: "Run three or five.",
  };
}
