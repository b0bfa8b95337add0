/** The relay's process of the second measurement: many slow deliveries at once. Tells its largest memory. */
import { connect } from "../../src/index.ts";
import { batonSource, createRelay, DEFAULT_HTTP, DEFAULT_RETRY } from "../../src/relay/index.ts";

const [url = "", count = "1000"] = process.argv.slice(2);
const baton = await connect("memory:");
const queue = baton.queue("slow");
await queue.submitMany(Array.from({ length: Number(count) }, (_, index) => ({ key: `k${index}`, payload: { index } })));
let done = 0;
let inWork = 0;
let rss = 0;
const began = performance.now();
const relay = await createRelay(
  {
    routes: [
      {
        name: "slow",
        sources: [
          {
            name: "slow",
            weight: 1,
            retry: DEFAULT_RETRY,
            deadLetter: { to: "source" },
            open: () => batonSource({ name: "slow", store: baton, queue: "slow" }),
          },
        ],
        choice: "strict",
        concurrency: Number(count),
        transforms: [],
        key: undefined,
        form: { type: "raw" },
        processor: { ...DEFAULT_HTTP, target: { type: "url", url }, timeoutMs: 120_000 },
      },
    ],
    keys: undefined,
    admin: undefined,
    graceMs: 1_000,
  },
  { onEvent: ({ type }) => void (done += type === "done" ? 1 : 0) },
);
await new Promise<void>((resolve) => {
  const timer = setInterval(() => {
    inWork = Math.max(inWork, relay.report().routes[0]?.inWork ?? 0);
    rss = Math.max(rss, process.memoryUsage.rss());
    if (done < Number(count) && performance.now() - began < 110_000) return;
    clearInterval(timer);
    resolve();
  }, 100);
});
process.send?.({ done, inWork, rss, tookMs: performance.now() - began });
await relay.stop();
await baton.close();
process.disconnect?.();
