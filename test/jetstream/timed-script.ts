/** What a server does by itself, with enough time around each moment for a real one to be late. */
import { createConsumer, createStreams, type Step, tearDown } from "./script.ts";

const api = (subject: string, body: object = {}): Step => ({ kind: "api", subject, body });
const wait = (ms: number): Step => ({ kind: "wait", ms });
const next = (consumer: string, body: object): Step => ({
  kind: "listen",
  subject: `$JS.API.CONSUMER.MSG.NEXT.W.${consumer}`,
  body,
});

export function timedScript(): Step[] {
  return [
    ...createStreams(),
    createConsumer("W", "jobs", "W.j", { ack_wait: 1e9 }),
    createConsumer("W", "late", "W.late"),
    createConsumer("W", "full", "W.full", { max_ack_pending: 1, max_waiting: 2 }),
    // Refused: there, one message has one consumer.
    createConsumer("W", "all", "W.>"),
    // Expires, and is sent later.
    { kind: "publish", subject: "L.t", data: "short-lived", headers: [["Nats-TTL", "1s"]] },
    api("DIRECT.GET.L", { last_by_subj: "L.t" }),
    later("L.s", "first", 900),
    later("L.s", "second", 900),
    later("L.gone", "never", 900),
    api("STREAM.PURGE.L", { filter: "L.gone" }),
    api("STREAM.INFO.L", { subjects_filter: "L.>" }),
    // Delivered again when nobody acknowledges, and when somebody refuses.
    { kind: "publish", subject: "W.j", data: "job" },
    { kind: "pull", stream: "W", consumer: "jobs", batch: 1 },
    next("jobs", { batch: 2, expires: 5e9 }),
    wait(400),
    api("CONSUMER.INFO.W.jobs"),
    { kind: "settle", which: 0, how: "+WPI", forget: false },
    wait(600),
    wait(700),
    { kind: "settle", which: 1, how: '-NAK {"delay": 300000000}', forget: false },
    wait(100),
    wait(500),
    { kind: "settle", which: 2, how: "+ACK", forget: false },
    api("CONSUMER.INFO.W.jobs"),
    // By now.
    api("DIRECT.GET.L", { last_by_subj: "L.t" }),
    api("DIRECT.GET.L", { last_by_subj: "L.s" }),
    api("DIRECT.GET.L", { last_by_subj: "L.later" }),
    api("STREAM.INFO.L", { subjects_filter: "L.>" }),
    // Signs of life, and the end of waiting.
    next("jobs", { batch: 1, expires: 1e9, idle_heartbeat: 400e6 }),
    wait(1_200),
    next("jobs", { batch: 1, expires: 1e9, idle_heartbeat: 600e6 }),
    wait(50),
    // Nothing comes while it is paused.
    { kind: "publish", subject: "W.late", data: "late" },
    { kind: "pause", stream: "W", consumer: "late", ms: 400 },
    next("late", { batch: 1, expires: 5e9 }),
    wait(100),
    wait(800),
    { kind: "pause", stream: "W", consumer: "nobody", ms: 400 },
    // More wait than may, and more is pending than may.
    next("full", { batch: 1 }),
    next("full", { batch: 1 }),
    wait(50),
    next("full", { batch: 1 }),
    wait(50),
    { kind: "publish", subject: "W.full", data: "1" },
    { kind: "publish", subject: "W.full", data: "2" },
    wait(100),
    api("CONSUMER.INFO.W.full"),
    { kind: "settle", which: -1, how: "+TERM", forget: false },
    wait(100),
    next("full", { batch: 1 }),
    wait(50),
    api("CONSUMER.DELETE.W.full"),
    wait(50),
    api("CONSUMER.NAMES.W"),
    api("CONSUMER.INFO.W.full"),
    api("CONSUMER.MSG.NEXT.W.full"),
    api("STREAM.INFO.NONE"),
    api("DIRECT.GET.NONE", { seq: 1 }),
    { kind: "publish", subject: "nobody.listens", data: "" },
    ...tearDown(),
  ];
}

function later(subject: string, data: string, scheduleInMs: number): Step {
  const headers = [
    ["Mine", data],
    ["Nats-Schedule-Target", "L.later"],
  ] as const;
  return { kind: "publish", subject, data, headers, scheduleInMs };
}
