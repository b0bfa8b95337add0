import type { HttpSettings, RelayMessage } from "../../settings.ts";

/**
 * What every delivery carries. The fence rises with each lease of the key: receivers refuse a lower one than they have
 * seen.
 */
export function headersOf(message: RelayMessage, settings: HttpSettings): Record<string, string> {
  const { id, source, key, attempt, fence } = message;
  return {
    "content-type": settings.contentType ?? mediaType(message.contentType),
    "user-agent": "baton-relay",
    "baton-id": headerText(id),
    "baton-queue": headerText(source),
    "baton-attempt": String(attempt),
    ...(key === undefined ? {} : { "baton-key": headerText(key) }),
    ...(fence === undefined ? {} : { "baton-fence": String(fence) }),
    ...Object.fromEntries(Object.entries(message.headers).map(([name, value]) => [name, headerText(value)])),
    // Names are compared without regard to case: an operator's replaces ours, and does not stand beside it.
    ...Object.fromEntries(Object.entries(settings.headers).map(([name, value]) => [name.toLowerCase(), value])),
  };
}

/** A queue carries whatever its sender called it: what no header can say is bytes. */
function mediaType(contentType: string | undefined): string {
  return contentType !== undefined && /^[\u0020-\u007e]+$/.test(contentType) ? contentType : "application/octet-stream";
}

/**
 * A header has visible ASCII. Everything else, the percent sign, and the double quote as CloudEvents want it, is
 * percent-encoded UTF-8: `decodeURIComponent` gives it back.
 */
export function headerText(value: string): string {
  return value.toWellFormed().replaceAll(/[^\u0021\u0023\u0024\u0026-\u007e]+/gu, encodeURIComponent);
}
