import type { Evidence } from "../evidence.ts";
import type { Violation } from "../violation.ts";

/** A library that brings down its process, or does not let it end, has failed whatever else it kept. */
export function alive({ history, time }: Evidence): readonly Violation[] {
  return history.flatMap((fact) => {
    if (fact.type !== "exited" || fact.trouble === undefined) return [];
    const text = `${fact.process} ${fact.trouble} at ${time(fact.at)}; its log says why.`;
    return [{ rule: "alive" as const, at: fact.at, text }];
  });
}
