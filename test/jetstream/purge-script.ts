/** A purge carries a consumer's floor past a message that is still to be acknowledged. Then that is, and others are. */
import { setUp, type Step, tearDown } from "./script.ts";

export function purgeScript(): Step[] {
  return [
    ...setUp(),
    ...["W.c.y", "W.a", "W.c.y"].map(publish),
    pull(3),
    settle(2, ""),
    purge,
    look,
    settle(0, "+TERM"),
    look,
    // What was left out holds the floor back.
    ...["W.c.x", "W.c.y"].map(publish),
    pull(2),
    settle(-1, "+ACK"),
    look,
    settle(-1, "+ACK"),
    look,
    // All is written anew.
    publish("W.a"),
    purge,
    look,
    publish("W.c.x"),
    pull(1),
    settle(-1, "+ACK"),
    look,
    ...tearDown(),
    // What is written is further than what the purge would write.
    ...setUp(),
    ...["W.a", "W.c.x"].map(publish),
    pull(2),
    { ...purge, body: { filter: "W.c.x" } },
    ...["W.c.x", "W.b", "W.c.x"].map(publish),
    pull(3),
    { ...purge, body: { filter: "W.c.x" } },
    look,
    ...tearDown(),
  ];
}

const look: Step = { kind: "api", subject: "CONSUMER.INFO.W.all" };
const purge = { kind: "api", subject: "STREAM.PURGE.W", body: { filter: "W.*" } } as const;

function publish(subject: string): Step {
  return { kind: "publish", subject, data: "" };
}

function pull(batch: number): Step {
  return { kind: "pull", stream: "W", consumer: "all", batch };
}

function settle(which: number, how: string): Step {
  return { kind: "settle", which, how, forget: true };
}
