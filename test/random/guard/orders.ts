/** What a test tells the worker of `worker.ts`. */
export type Order =
  | { readonly order: "start"; readonly run: number; readonly script: string; readonly killAfterMs: number }
  | { readonly order: "lose" | "lapse" | "renew"; readonly run: number }
  | { readonly order: "kill-all" | "leave" };

export function isOrder(message: unknown): message is Order {
  return typeof message === "object" && message !== null && "order" in message;
}
