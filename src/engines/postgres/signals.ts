/** What is said between handles. Numbers of queues and handles are the store's. */
export type Signal =
  | {
      readonly type: "work";
      readonly queue: number;
      readonly handles: readonly number[] | undefined;
      /** Ready keys, where a foreign carrier counts them. Whoever is named by NOTIFY looks until he finds nothing. */
      readonly many?: number;
    }
  | { readonly type: "outcomes"; readonly queue: number; readonly handles: readonly number[] | undefined }
  | { readonly type: "hold"; readonly queue: number }
  | { readonly type: "lost"; readonly handle: number; readonly fence: number }
  | { readonly type: "cell"; readonly name: string };

/**
 * `work 3 17,18`, `outcomes 3 17`, `hold 3`, `lost 17 4711`, `cell lock/nightly`. Undefined: of a version that we do not know. How many keys are
 * ready, which may follow the handles, is for a foreign carrier: see `readyIn`.
 */
export function readSignal(payload: string): Signal | undefined {
  const space = payload.indexOf(" ");
  const type = payload.slice(0, space);
  const rest = payload.slice(space + 1);
  if (type === "cell") return { type, name: rest };
  const [first, second] = rest.split(" ");
  const number = Number(first);
  switch (type) {
    case "work":
    case "outcomes":
      return { type, queue: number, handles: second?.split(",").map(Number) };
    case "hold":
      return { type, queue: number };
    case "lost":
      return { type, handle: number, fence: Number(second) };
    default:
      return undefined;
  }
}

/** `work 3 17,18 5`: five keys. Undefined: nobody counted them. */
export function readyIn(payload: string): number | undefined {
  const many = Number(payload.split(" ")[3]);
  return many >= 0 ? many : undefined;
}
