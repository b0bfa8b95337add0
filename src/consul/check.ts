import type { Finding } from "../engine/port.ts";
import type { LockRepair } from "../locks/port.ts";
import type { ConsulApi } from "./api.ts";
import { damageOf, keysIn, type LockState } from "./lock-keys.ts";
import { persist, type Outside } from "./patience.ts";

/** With fewer, one server that is down takes the others along. */
const FEWEST_SERVERS = 3;

/** What `baton doctor` says. */
export async function checkConsul(api: ConsulApi, outside: Outside): Promise<readonly Finding[]> {
  const { leader, servers } = await persist(outside, "a question for the servers", () => api.servers());
  return [leaderFinding(leader), serversFinding(servers)];
}

/** A lock with a thousand foreign keys is one finding. */
const MOST_NAMED = 3;

export function lockFindings(states: readonly LockState[]): readonly Finding[] {
  return states.flatMap((state) => [damageFinding(state), foreignFinding(state)]).filter((one) => one !== undefined);
}

function damageFinding(state: LockState): Finding | undefined {
  const repair = repairOf(state);
  if (repair === undefined) return undefined;
  const { subject, detail, action } = repair;
  return { severity: "error", subject, detail, advice: `baton doctor --repair: ${action}` };
}

export function repairOf(state: LockState): Omit<LockRepair, "run"> | undefined {
  const damage = damageOf(state);
  if (damage === undefined) return undefined;
  const action = `removes ${keysIn(state.damaged)}. A slot among these is free then, whoever may hold it: make sure that nobody does.`;
  return { subject: `lock ${state.name}`, detail: damage.message, action };
}

function foreignFinding({ name, foreign }: LockState): Finding | undefined {
  if (foreign.length === 0) return undefined;
  const more = foreign.length > MOST_NAMED ? `, and ${foreign.length - MOST_NAMED} more` : "";
  return {
    severity: "warning",
    subject: `lock ${name}`,
    detail: `At its place are keys that Baton did not write: ${foreign.slice(0, MOST_NAMED).join(", ")}${more}.`,
    advice: "Programs that lock by them, such as consul lock with its key .lock, are not kept out by Baton's locks.",
  };
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
