/** What happened in one run, in true time. The checker knows nothing else. */
export type Happening = { readonly at: number } & (
  | { readonly type: "session"; readonly session: string; readonly process: string; readonly since: number }
  /** A sign of life was answered. `since`: when it was sent. */
  | { readonly type: "renewed"; readonly session: string; readonly since: number }
  /** Its owner has heard that the session is over, or closes it. */
  | { readonly type: "ended"; readonly session: string; readonly how: "lost" | "closing" }
  | {
      readonly type: "asking";
      readonly call: number;
      readonly process: string;
      readonly lock: string;
      readonly mode: string;
    }
  | {
      readonly type: "granted";
      readonly call: number;
      readonly lock: string;
      readonly session: string;
      readonly fence: number;
      readonly delayMs: number;
    }
  | { readonly type: "refused"; readonly call: number; readonly why: string }
  | { readonly type: "failed"; readonly call: number; readonly why: string }
  | { readonly type: "releasing"; readonly call: number; readonly retireMs: number | undefined }
  | { readonly type: "released"; readonly call: number; readonly isTrue: boolean }
  | {
      readonly type: "process";
      readonly process: string;
      readonly what: "begins" | "crashes" | "pauses" | "goes on" | "clock step";
    }
  | { readonly type: "fault"; readonly kind: string }
  | { readonly type: "calm" }
  /** What stood in the store when everybody had been answered and had given signs of life since. */
  | { readonly type: "left"; readonly lock: string; readonly session: string; readonly fence: number | undefined }
  | { readonly type: "unanswered"; readonly call: number }
  /** A newcomer asked for each lock when all was over. */
  | { readonly type: "last try"; readonly lock: string; readonly isGranted: boolean }
  | { readonly type: "last cells"; readonly names: readonly string[] }
  | { readonly type: "surprise"; readonly says: string }
);

export function traceLine({ at, type, ...rest }: Happening): string {
  const particulars = Object.entries(rest).map(([name, value]) => `${name}=${String(value)}`);
  return `${at.toFixed(2).padStart(12)}  ${type.padEnd(11)} ${particulars.join(" ")}`;
}
