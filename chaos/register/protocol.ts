import type { Judged } from "../history/fact.ts";

export interface Question extends Pick<Judged, "worker" | "item" | "key" | "fence" | "step"> {
  readonly number: number;
}

export interface Answer {
  readonly number: number;
  readonly accepted: boolean;
}

export function isQuestion(value: unknown): value is Question {
  return isNumbered(value) && "key" in value && "fence" in value && typeof value.fence === "number";
}

export function isAnswer(value: unknown): value is Answer {
  return isNumbered(value) && "accepted" in value && typeof value.accepted === "boolean";
}

function isNumbered(value: unknown): value is { readonly number: number } {
  return typeof value === "object" && value !== null && "number" in value && typeof value.number === "number";
}
