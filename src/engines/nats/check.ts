/** What an operator should know of a NATS store. */
import { type Clock, pause } from "../../domain/clock.ts";
import type { Finding } from "../../engine/port.ts";
import type { ConsumerConfig, ConsumerInfo, StreamConfig } from "./api-types.ts";
import type { Stored } from "./api-replies.ts";
import { readable } from "./damage.ts";
import { CUT_OFF_MS } from "./deletion.ts";
import type { JetStream } from "./jetstream.ts";
import type { StoreSettings } from "./options.ts";
import { unlike, unusable } from "./consumers.ts";
import { damageFindings, scanStore } from "./repairs.ts";
import { consumersOf, readRecord } from "./setup.ts";
import { lastToken, type Subjects } from "./subjects.ts";
import type { Wire } from "./wire.ts";

/** What is made with a queue is there a moment after the queue is written down, and not on every server of a cluster at once. */
const MOST_LOOKS = 4;
const BETWEEN_LOOKS_MS = 500;

export async function check(
  js: JetStream,
  wire: Wire,
  subjects: Subjects,
  settings: StoreSettings,
  clock: Clock,
): Promise<readonly Finding[]> {
  const findings: Finding[] = [
    { severity: "ok", subject: "server", detail: `nats-server ${wire.server.version} with JetStream.` },
  ];
  const shared = await js.streamInfo(subjects.shared);
  if (shared === undefined) {
    findings.push({
      severity: "ok",
      subject: "streams",
      detail: `No stream ${subjects.shared} yet; it is made with the first queue or lock.`,
    });
    return findings;
  }
  findings.push(durability(shared.config), ...differing(shared.config, settings));
  for (const stored of await js.lastOfEach(subjects.shared, subjects.allQueueRecords)) {
    const found = await checkQueue(js, subjects, settings, clock, stored);
    const now = await js.last(subjects.shared, stored.subject);
    // What is wrong with a queue that was being deleted at the time is not wrong for long.
    if (now?.sequence === stored.sequence) findings.push(...found);
  }
  return [...findings, ...damageFindings(await scanStore(js, subjects))];
}

async function checkQueue(
  js: JetStream,
  subjects: Subjects,
  settings: StoreSettings,
  clock: Clock,
  stored: Stored,
): Promise<readonly Finding[]> {
  const queue = lastToken(stored.subject);
  const own = subjects.of(queue);
  // One that cannot be read is among the damage.
  const [record] = readable([stored], ({ data }) => readRecord(data));
  if (record?.deletion !== undefined) {
    const { ts } = (await js.streamInfo(subjects.shared)) ?? {};
    // As far as the clocks of a cluster agree; while it goes on, it writes its record again and again.
    if (!(Date.parse(ts ?? "") - stored.at > CUT_OFF_MS)) return [];
    return [
      {
        severity: "warning",
        subject: `queue ${queue}`,
        detail: "Its deletion was cut off.",
        advice: `baton queue delete ${queue} brings it to its end. Whoever uses the queue again makes it usable.`,
      },
    ];
  }
  const findings: Finding[] = [];
  const info = await patiently(clock, () => js.streamInfo(own.stream));
  if (info === undefined) {
    findings.push({
      severity: "error",
      subject: `queue ${queue}`,
      detail: `Its stream ${own.stream} is gone, and its waiting items with it.`,
      advice:
        "Whoever next uses the queue makes it anew, empty. To restore it from a backup instead, stop all processes of this queue first.",
    });
    return findings;
  }
  findings.push(...differing(info.config, settings));
  const offline = info.cluster?.replicas?.filter((replica) => replica.offline === true || !replica.current) ?? [];
  if (offline.length > 0) {
    findings.push({
      severity: "warning",
      subject: `queue ${queue}`,
      detail: `Replicas that are behind or away: ${offline.map(({ name }) => name).join(", ")}.`,
      advice: "As long as most replicas are there, work goes on. Look after these servers.",
    });
  }
  for (const [stream, wanted] of record === undefined ? [] : consumersOf(own, record)) {
    const name = wanted.durable_name;
    const found = await patiently(clock, () => js.consumerInfo(stream, name));
    const means =
      stream === own.stream ? "items of that level are not handed out" : "delayed items and retries do not come due";
    findings.push(
      ...consumerFindings(`queue ${queue}`, `Its consumer ${name} of stream ${stream}`, means, found, wanted),
    );
  }
  return findings;
}

function consumerFindings(
  subject: string,
  which: string,
  means: string,
  found: ConsumerInfo | undefined,
  wanted: ConsumerConfig,
): Finding[] {
  if (found === undefined) {
    const advice = "A worker of this queue makes it anew within a second or so: start one, or see what it has to tell.";
    return [{ severity: "error", subject, detail: `${which} is gone: ${means}.`, advice }];
  }
  const wrong = unusable(found.config, wanted);
  const other = unlike(found.config, wanted);
  const advice = "What exists is never changed. Delete the consumer: Baton makes it anew, and nothing is lost with it.";
  return [
    ...(wrong.length === 0
      ? []
      : [
          {
            severity: "error" as const,
            subject,
            detail: `${which} is not as Baton needs it: ${wrong.join("; ")}.`,
            advice,
          },
        ]),
    ...(other.length === 0
      ? []
      : [
          {
            severity: "warning" as const,
            subject,
            detail: `${which} is not as Baton makes it: ${other.join("; ")}. Work may wait longer, or stop at a limit.`,
            advice,
          },
        ]),
  ];
}

/** What exists is left as it is, so whoever asks for something else must hear of it. */
function differing({ name, num_replicas, storage }: StreamConfig, settings: StoreSettings): Finding[] {
  if (num_replicas === settings.replicas && storage === settings.storage) return [];
  return [
    {
      severity: "warning",
      subject: "settings",
      detail: `Stream ${name} has ${num_replicas} ${num_replicas === 1 ? "replica" : "replicas"} in ${storage} storage; this client asks for ${settings.replicas} in ${settings.storage}.`,
      advice: "What exists is never changed. Change the stream with the nats command, or the settings of this client.",
    },
  ];
}

export function durability({ num_replicas: replicas, storage }: StreamConfig): Finding {
  if (storage === "memory") {
    return {
      severity: "warning",
      subject: "durability",
      detail: "The streams are in memory: what was accepted is lost when the servers stop.",
      advice: "Use file storage for work that must not be lost.",
    };
  }
  if (replicas === 1) {
    return {
      severity: "warning",
      subject: "durability",
      detail:
        "One replica: what was accepted survives the crash of every client and of the server, but the last two minutes before a power loss may be lost unless the server is set to sync_interval: always.",
      advice: "Use three replicas, or set sync_interval: always in the server's jetstream block.",
    };
  }
  return {
    severity: "ok",
    subject: "durability",
    detail: `${replicas} replicas: what was accepted survives the loss of any ${Math.floor((replicas - 1) / 2)} of their servers.`,
  };
}

async function patiently<T>(clock: Clock, look: () => Promise<T | undefined>): Promise<T | undefined> {
  for (let left = MOST_LOOKS; ; left -= 1) {
    const found = await look();
    if (found !== undefined || left <= 1) return found;
    await pause(clock, BETWEEN_LOOKS_MS);
  }
}
