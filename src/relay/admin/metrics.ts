import type { RelayEvent } from "../events.ts";
import type { RelayReport, RouteReport } from "../relay-report.ts";

/** From a function call to an hour of work. */
const BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.5, 1, 5, 30, 60, 300, 3_600] as const;

interface Histogram {
  readonly buckets: number[];
  sum: number;
  count: number;
}

/**
 * Counts what the relay tells, and writes it down in the text form that Prometheus reads. Labels are names out of the
 * configuration, and never keys or ids: those would grow without end.
 */
export class Metrics {
  readonly #ended = new Map<string, number>();
  readonly #troubles = new Map<string, number>();
  readonly #durations = new Map<string, Histogram>();
  /** Targets whose circuit was ever heard of: a gauge that is gone says less than one that is 0. */
  readonly #targets = new Set<string>();

  hear(event: RelayEvent): void {
    switch (event.type) {
      case "done":
      case "retry":
      case "back":
      case "unreachable":
      case "dead":
      case "drop":
      case "lost":
        count(this.#ended, `source="${label(event.source)}",outcome="${event.type}"`);
        // What went back untried took no time that says anything.
        if (event.type !== "back" && event.type !== "unreachable")
          this.#observe(`source="${label(event.source)}"`, event.tookMs / 1_000);
        return;
      case "source-trouble":
        return count(this.#troubles, `source="${label(event.source)}"`);
      case "circuit":
        return void this.#targets.add(event.target);
      case "reloaded":
        return this.#targets.clear();
      default:
    }
  }

  text({ state, routes }: RelayReport): string {
    const lines = [
      ...family("baton_relay_up", "gauge", "1 while the relay takes messages.", [["", state === "running" ? 1 : 0]]),
      ...family("baton_relay_messages_total", "counter", "Deliveries by how they ended.", this.#ended),
      ...family(
        "baton_relay_source_troubles_total",
        "counter",
        "Requests that a source did not answer or refused.",
        this.#troubles,
      ),
      ...family(
        "baton_relay_circuit_open",
        "gauge",
        "1 while the circuit of a target is not closed.",
        this.#targetsIn(routes, ({ openCircuits }) => openCircuits),
      ),
      ...family(
        "baton_relay_unreachable",
        "gauge",
        "1 while a target accepts no connection: its messages stay in their queues.",
        this.#targetsIn(routes, ({ unreachable }) => unreachable),
      ),
      ...family(
        "baton_relay_slots",
        "gauge",
        "Messages that a route works on at a time.",
        byRoute(routes, ({ slots }) => slots),
      ),
      ...family(
        "baton_relay_in_work",
        "gauge",
        "Messages that a route works on now.",
        byRoute(routes, ({ inWork }) => inWork),
      ),
      ...family(
        "baton_relay_waiting_for_key",
        "gauge",
        "Messages that wait for their key.",
        byRoute(routes, ({ waitingForKey }) => waitingForKey),
      ),
      ...this.#histogram(),
    ];
    return `${lines.join("\n")}\n`;
  }

  /** By what is so now, and not by what was told: those of settings that were replaced tell nothing any more. */
  #targetsIn(routes: RelayReport["routes"], targetsOf: (route: RouteReport) => readonly string[]): [string, number][] {
    const found = new Set(routes.flatMap(targetsOf));
    return Array.from(new Set([...this.#targets, ...found]), (target) => [
      `target="${label(target)}"`,
      found.has(target) ? 1 : 0,
    ]);
  }

  #observe(labels: string, seconds: number): void {
    let histogram = this.#durations.get(labels);
    if (histogram === undefined) {
      histogram = { buckets: BUCKETS_SECONDS.map(() => 0), sum: 0, count: 0 };
      this.#durations.set(labels, histogram);
    }
    for (const [index, bound] of BUCKETS_SECONDS.entries()) {
      if (seconds <= bound) histogram.buckets[index] = (histogram.buckets[index] ?? 0) + 1;
    }
    histogram.sum += seconds;
    histogram.count += 1;
  }

  #histogram(): readonly string[] {
    const name = "baton_relay_delivery_seconds";
    const lines = head(name, "histogram", "From the receipt of a message to its end.");
    for (const [labels, { buckets, sum, count: all }] of this.#durations) {
      for (const [index, bound] of BUCKETS_SECONDS.entries())
        lines.push(`${name}_bucket{${labels},le="${bound}"} ${buckets[index] ?? 0}`);
      lines.push(
        `${name}_bucket{${labels},le="+Inf"} ${all}`,
        `${name}_sum{${labels}} ${sum}`,
        `${name}_count{${labels}} ${all}`,
      );
    }
    return lines;
  }
}

function byRoute(
  routes: RelayReport["routes"],
  valueOf: (route: RelayReport["routes"][number]) => number,
): [string, number][] {
  return routes.map((route) => [`route="${label(route.name)}"`, valueOf(route)]);
}

function family(name: string, type: string, help: string, values: Iterable<[string, number]>): string[] {
  const lines = head(name, type, help);
  for (const [labels, value] of values) lines.push(`${name}${labels === "" ? "" : `{${labels}}`} ${value}`);
  return lines;
}

function head(name: string, type: string, help: string): string[] {
  return [`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`];
}

function count(counts: Map<string, number>, labels: string): void {
  counts.set(labels, (counts.get(labels) ?? 0) + 1);
}

/** As the format asks. */
function label(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
