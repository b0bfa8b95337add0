import { decodePayload, InvalidInput, type Payload } from "../index.ts";

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
  return typed(bytes, type ?? (isText(bytes) ? TEXT : BYTES));
}

function typed(value: string | Uint8Array, type: string): { readonly value: string | Uint8Array; readonly type: string } {
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
  for await (const chunk of process.stdin) {
    const bytes = Buffer.from(chunk);
    size += bytes.byteLength;
    if (size > MOST_BYTES) throw new InvalidInput("payload", `more than ${MOST_BYTES} bytes`, "what a queue can carry (256 KiB by default)");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function isText(bytes: Buffer): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function isJson(type: string): boolean {
  return type === "application/json" || type.startsWith("application/json;") || type.endsWith("+json");
}

/** For `--json`: a JSON payload as its value, text as text, anything else as base64. */
export function payloadFields(payload: Payload): object {
  try {
    const value = decodePayload(payload);
    if (!(value instanceof Uint8Array)) return { type: payload.type, value };
  } catch {
    // Stored under a JSON type by somebody who did not check it.
  }
  return { type: payload.type, base64: Buffer.from(payload.body).toString("base64") };
}

/** For people. */
export function payloadText(payload: Payload): string {
  try {
    const value = decodePayload(payload);
    if (typeof value === "string") return value;
    if (!(value instanceof Uint8Array)) return JSON.stringify(value);
    return `${value.byteLength} bytes of ${payload.type}`;
  } catch {
    return Buffer.from(payload.body).toString("utf8");
  }
}
