import { Fatal } from "../../domain/errors.ts";
import { checkKey } from "../../domain/names.ts";
import type { KeyOrigin } from "../settings.ts";
import type { Content } from "../transform.ts";
import { atPointer } from "../transforms/json-pointer.ts";

/**
 * The key of a message: where the route says, otherwise the source's own. A message that has none where one is asked
 * for is bad data: to deliver it without its key could break what the key protects.
 */
export function keyOf(content: Content, own: string | undefined, origin: KeyOrigin | undefined): string | undefined {
  if (origin === undefined) return own;
  return checkKey(origin.from === "attribute" ? ofAttribute(content, origin.name) : ofJson(content, origin.pointer));
}

/** Attributes of messages, and headers of items, are found whatever their case. */
function ofAttribute({ attributes }: Content, name: string): string {
  const wanted = name.toLowerCase();
  const [, value] = Object.entries(attributes).find(([found]) => found.toLowerCase() === wanted) ?? [];
  if (value === undefined || value === "")
    throw new Fatal(`The message has no attribute ${name} to take its key from.`);
  return value;
}

function ofJson({ data }: Content, pointer: string): string {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8"));
  } catch (cause) {
    throw new Fatal(`The key is to be found at ${pointer}, but the message is not JSON.`, { cause });
  }
  const found = atPointer(value, pointer);
  if (typeof found === "string" && found !== "") return found;
  if (typeof found === "number" || typeof found === "boolean") return String(found);
  throw new Fatal(`The message has no text and no number at ${pointer} to take its key from.`);
}
