import { Fatal } from "../../domain/errors.ts";
import type { Content } from "../transform.ts";

/** The content as a JSON value. */
export function jsonOf({ data }: Content, transform: string): unknown {
  try {
    return JSON.parse(textOf(data));
  } catch (cause) {
    throw new Fatal(`Transform ${transform}: the message is not JSON.`, { cause });
  }
}

/** The content as a JSON object. */
export function objectOf(content: Content, transform: string): Readonly<Record<string, unknown>> {
  const value = jsonOf(content, transform);
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return { ...value };
  throw new Fatal(`Transform ${transform}: the message is not a JSON object.`);
}

export function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}
