/** A worker that runs commands under leases which a test renews, loses and lets lapse, through the real guard. */
import { Guard } from "../../../src/cli/guard/guard.ts";
import { isOrder, type Order } from "./orders.ts";

const leaseMs = Number(process.argv[2]);
const marginMs = Number(process.argv[3]);

class Lease {
  readonly #controller = new AbortController();
  #lapsedAt: number | undefined;

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** It is renewed all the time, until it lapses. */
  get leftMs(): number {
    if (this.signal.aborted) return 0;
    return leaseMs - marginMs - (this.#lapsedAt === undefined ? 0 : performance.now() - this.#lapsedAt);
  }

  lose(): void {
    this.#controller.abort();
  }

  lapse(): void {
    this.#lapsedAt ??= performance.now();
  }

  renew(): void {
    this.#lapsedAt = undefined;
  }
}

const guard = new Guard({ leaseMs, stdout: "stderr" });
const leases = new Map<number, Lease>();

process.on("message", (message: unknown) => {
  if (!isOrder(message)) return;
  void obey(message);
  process.send?.({ obeyed: message.order });
});
process.on("disconnect", () => process.exit(0));

await guard.ready();
process.send?.({ ready: true });

async function obey(order: Order): Promise<void> {
  const lease = "run" in order ? leases.get(order.run) : undefined;
  switch (order.order) {
    case "start": {
      const own = new Lease();
      leases.set(order.run, own);
      const { script, killAfterMs, run } = order;
      const request = { command: "sh", commandArguments: ["-c", script], environment: {}, input: Buffer.from("x") };
      const end = await guard.run(request, own, killAfterMs);
      process.send?.({ run, end });
      return;
    }
    case "lose":
      return lease?.lose();
    case "lapse":
      return lease?.lapse();
    case "renew":
      return lease?.renew();
    case "kill-all":
      return guard.killAll();
    case "leave":
      await guard[Symbol.asyncDispose]();
      process.send?.({ left: true });
  }
}
