/** What a herd and its shepherd say to each other. */
export interface HerdTask {
  /** A file for SQLite, or the URL of a PostgreSQL database. */
  readonly store: string;
  /** The URL of what carries wakes. Undefined: the store itself. */
  readonly carrier?: string;
  readonly hints: boolean;
  readonly workers: number;
}

export type ToHerd = "looks" | "stop";

export type FromHerd =
  | { readonly type: "done"; readonly id: string }
  | { readonly type: "looks"; readonly looks: number }
  | { readonly type: "ready" };

export const QUEUE = "herd";
