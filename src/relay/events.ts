/** What a relay has to tell. Nothing needs to be done about any of it for messages to be safe. */
import { isError } from "../domain/realms.ts";
export type RelayEvent =
  | MessageEvent<"done">
  | (MessageEvent<"retry"> & { readonly reason: string; readonly delayMs: number })
  | (MessageEvent<"back"> & { readonly reason: string; readonly delayMs: number })
  /** The application was not reached: the message is back in its queue, and the delivery does not count. */
  | (MessageEvent<"unreachable"> & { readonly target: string; readonly reason: string; readonly delayMs: number })
  | (MessageEvent<"dead"> & { readonly reason: string; readonly to: string })
  | (MessageEvent<"drop"> & { readonly reason: string })
  /** The message is no longer this process's; whoever has it now decides. */
  | (MessageEvent<"lost"> & { readonly reason: string })
  | { readonly type: "source-trouble"; readonly source: string; readonly doing: string; readonly error: unknown }
  | { readonly type: "source-well"; readonly source: string }
  /** Said once, at the start: how the relay is configured will make trouble. */
  | { readonly type: "warning"; readonly source?: string; readonly message: string }
  | {
      readonly type: "circuit";
      readonly target: string;
      readonly state: "open" | "probing" | "closed";
      /** Why it is open. */
      readonly reason?: string;
    }
  | { readonly type: "trouble"; readonly doing: string; readonly error: unknown }
  | { readonly type: "started"; readonly sources: readonly string[] }
  | { readonly type: "reloaded"; readonly sources: readonly string[] }
  | { readonly type: "stopped"; readonly finished: number; readonly givenBack: number; readonly abandoned: number };

export interface MessageEvent<Type extends string> {
  readonly type: Type;
  readonly source: string;
  readonly id: string;
  readonly key: string | undefined;
  readonly attempt: number;
  /** From its receipt to its end. */
  readonly tookMs: number;
}

export type Tell = (event: RelayEvent) => void;

/** One event as an object for a log: no error objects, no undefined. */
export function eventFields(event: RelayEvent): Readonly<Record<string, unknown>> {
  const { type, ...rest } = event;
  if (!("error" in rest)) return { event: type, ...rest };
  const { error, ...more } = rest;
  const code: unknown = isError(error) && "code" in error ? error.code : undefined;
  return {
    event: type,
    ...more,
    message: isError(error) ? error.message : String(error),
    ...(typeof code === "string" ? { code } : {}),
  };
}

/** Those that a person should look at when they repeat. */
export function levelOf(event: RelayEvent): "info" | "warning" | "error" {
  switch (event.type) {
    case "dead":
    case "lost":
    case "source-trouble":
    case "trouble":
      return "error";
    case "retry":
    case "unreachable":
    case "drop":
    case "circuit":
    case "warning":
      return "warning";
    case "done":
    case "back":
    case "source-well":
    case "started":
    case "reloaded":
    case "stopped":
      return "info";
  }
}
