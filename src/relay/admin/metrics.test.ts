import assert from "node:assert/strict";
import { test } from "node:test";
import type { RelayEvent } from "../events.ts";
import type { RouteReport } from "../relay-report.ts";
import { Metrics } from "./metrics.ts";

const FACTS = { source: "cars", id: "m1", key: undefined, attempt: 1 };

function route(more: Partial<RouteReport> = {}): RouteReport {
  return {
    name: "main",
    slots: 4,
    inWork: 2,
    waitingForKey: 1,
    failing: [],
    openCircuits: [],
    unreachable: [],
    ...more,
  };
}

function textAfter(events: readonly RelayEvent[], routes: readonly RouteReport[] = [route()]): string[] {
  const metrics = new Metrics();
  for (const event of events) metrics.hear(event);
  return metrics.text({ state: "running", routes }).split("\n");
}

function linesOf(name: string, lines: readonly string[]): readonly string[] {
  return lines.filter((line) => line.startsWith(name)).map((line) => line.slice(name.length));
}

test("a delivery is timed in every bucket whose bound it keeps, and one that went back untried in none", () => {
  const back = { type: "back", reason: "busy", delayMs: 0 } as const;
  const unreachable = { type: "unreachable", target: "http://a", reason: "away", delayMs: 0 } as const;
  const lines = textAfter([
    { ...FACTS, type: "done", tookMs: 5 },
    { ...FACTS, type: "done", tookMs: 6 },
    { ...FACTS, type: "dead", tookMs: 3_600_001, reason: "no", to: "nowhere" },
    { ...FACTS, ...back, tookMs: 7 },
    { ...FACTS, ...unreachable, tookMs: 7 },
  ]);
  const bounds = ["0.005", "0.025", "0.1", "0.5", "1", "5", "30", "60", "300", "3600", "+Inf"];
  const counts = [1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3];
  assert.deepEqual(
    linesOf("baton_relay_delivery_seconds_bucket", lines),
    bounds.map((bound, index) => `{source="cars",le="${bound}"} ${String(counts[index])}`),
  );
  assert.deepEqual(linesOf("baton_relay_delivery_seconds_count", lines), ['{source="cars"} 3']);
  assert.deepEqual(linesOf("baton_relay_messages_total", lines).toSorted(), [
    '{source="cars",outcome="back"} 1',
    '{source="cars",outcome="dead"} 1',
    '{source="cars",outcome="done"} 2',
    '{source="cars",outcome="unreachable"} 1',
  ]);
});

test("gauges are what is so now; targets stay while their settings do", () => {
  const opened = { type: "circuit", target: 'http://a"\\', state: "open", reason: "away" } as const;
  const lines = textAfter([opened], [route({ openCircuits: ["http://b"], unreachable: ["http://b"] })]);
  const both = ['{target="http://a\\"\\\\"} 0', '{target="http://b"} 1'];
  assert.deepEqual(linesOf("baton_relay_circuit_open", lines), both);
  assert.deepEqual(linesOf("baton_relay_unreachable", lines), both);
  assert.deepEqual(linesOf("baton_relay_slots", lines), ['{route="main"} 4']);
  assert.deepEqual(linesOf("baton_relay_in_work", lines), ['{route="main"} 2']);
  assert.deepEqual(linesOf("baton_relay_waiting_for_key", lines), ['{route="main"} 1']);
  assert.deepEqual(linesOf("baton_relay_up", lines), [" 1"]);
  const anew = textAfter([opened, { type: "reloaded", sources: ["cars"] }]);
  assert.deepEqual(linesOf("baton_relay_circuit_open", anew), []);
});
