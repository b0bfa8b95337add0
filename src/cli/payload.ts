import { isUtf8 } from "node:buffer";
import { InvalidInput, type Payload } from "../index.ts";

const TEXT = "text/plain";
const BYTES = "application/octet-stream";
/** Far above every sensible limit of a queue; it only keeps an endless input from filling the memory. */
const MOST_BYTES = 64 * 1024 * 1024;

/** What to submit. Bytes with a type are stored as they are: JSON is checked, never rewritten. */
export async function readPayload(
  text: string | undefined,
  type: string | undefined,
): Promise<{ readonly value: string | Uint8Array; readonly type: string }> {
  if (text !== "-") return typed(text ?? "", type ?? TEXT);
  const bytes = await readStandardInput();
  return typed(bytes, type ?? (isUtf8(bytes) ? TEXT : BYTES));
}

function typed(
  value: string | Uint8Array,
  type: string,
): { readonly value: string | Uint8Array; readonly type: string } {
  if (!isJson(type)) return { value, type };
  const bytes = Buffer.from(value);
  try {
    JSON.parse(bytes.toString("utf8"));
  } catch (error) {
    const problem = error instanceof Error ? error.message : String(error);
    throw new InvalidInput("payload", bytes.toString("utf8"), `valid JSON, because its type is ${type} (${problem})`);
  }
  return { value: bytes, type };
}

async function readStandardInput(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  const input: AsyncIterable<Buffer> = process.stdin;
  for await (const bytes of input) {
    size += bytes.byteLength;
    if (size > MOST_BYTES)
      throw new InvalidInput("payload", `more than ${MOST_BYTES} bytes`, "what a queue can carry (256 KiB by default)");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function isJson(type: string): boolean {
  return type === "application/json" || type.startsWith("application/json;") || type.endsWith("+json");
}

/** For `--json`: text and JSON as text, exactly as they were submitted; anything else as base64. */
export function payloadFields(payload: Payload): object {
  const { type } = payload;
  return isTextual(payload)
    ? { type, text: Buffer.from(payload.body).toString("utf8") }
    : { type, base64: Buffer.from(payload.body).toString("base64") };
}

/** For people. */
export function payloadText(payload: Payload): string {
  const bytes = Buffer.from(payload.body);
  return isTextual(payload) ? bytes.toString("utf8") : `${bytes.byteLength} bytes of ${payload.type}`;
}

function isTextual({ type, body }: Payload): boolean {
  return typeof body === "string" || ((isJson(type) || type.startsWith("text/")) && isUtf8(body));
}
