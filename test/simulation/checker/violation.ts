/** The guarantees as DESIGN names them, and the promises about workers that have no number. */
export type Guarantee =
  | "G1 exclusive"
  | "G2 fenced"
  | "G4 nothing lost"
  | "G5 ordered"
  | "G6 no blocking"
  | "G8 urgent first"
  | "G9 idempotent"
  | "G10 bounded"
  | "attempts"
  | "delays"
  | "pause"
  | "cancel"
  | "deadline"
  | "endings"
  | "stop"
  | "duplicates"
  /** What a lease covers is begun in order, in time, once, and while it is covered. */
  | "runs"
  /** What may have killed its process runs alone in it. */
  | "solitude"
  /** An error that neither the product nor the simulation foresaw. */
  | "surprise";

export interface Violation {
  readonly guarantee: Guarantee;
  readonly at: number;
  readonly key: string | undefined;
  readonly says: string;
}

/** What a checker found. Later violations are often only echoes of the first, so that one counts. */
export class Findings {
  readonly violations: Violation[] = [];

  add(guarantee: Guarantee, at: number, key: string | undefined, says: string): void {
    this.violations.push({ guarantee, at, key, says });
  }
}
