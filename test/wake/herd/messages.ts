/** What a herd and its shepherd say to each other. */
export interface HerdTask {
  readonly store: string;
  readonly carrier: string;
  readonly hints: boolean;
  readonly workers: number;
}

export type ToHerd = "looks" | "stop";

export type FromHerd =
  | { readonly type: "done"; readonly id: string }
  | { readonly type: "looks"; readonly looks: number }
  | { readonly type: "ready" };

export const QUEUE = "herd";
