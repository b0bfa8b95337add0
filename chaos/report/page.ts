import type { Judgement } from "../checker/check.ts";
export function page(_judgement: Judgement): string {
  return "";
}
