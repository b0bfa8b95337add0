import type { CloudEvent, HTTP, Message } from "cloudevents";
import { BatonError, Fatal } from "../../domain/errors.ts";
import { isBytes, isError } from "../../domain/realms.ts";
import type { DeliveryForm, EventWrap } from "../settings.ts";
import type { Content } from "../transform.ts";

/** Content as it is delivered, with the headers that belong to its form. */
export interface Formed extends Content {
  readonly headers: Readonly<Record<string, string>>;
}

/** What a wrapped event says of the message that it was made of. */
export interface EventFacts {
  readonly id: string;
  readonly key: string | undefined;
  readonly sentAt: number | undefined;
}

/** Puts content into the form of the route. Throws `Fatal` when it cannot be put there. */
export type Former = (content: Content, facts: EventFacts) => Formed;

interface Sdk {
  readonly CloudEvent: typeof CloudEvent;
  readonly HTTP: typeof HTTP;
}

const STRUCTURED_TYPE = "application/cloudevents+json";
const NO_HEADERS: Readonly<Record<string, string>> = {};

/** The official SDK is loaded only where a route asks for events. */
export async function openForm(form: DeliveryForm): Promise<Former> {
  if (form.type === "raw") return (content) => ({ ...content, headers: NO_HEADERS });
  const sdk = await loadSdk();
  if (form.type === "dapr") {
    const extensions = { pubsubname: form.pubsub, topic: form.topic };
    return (content, facts) => structured(sdk, content, facts, form.wrap, extensions);
  }
  if (form.mode === "structured") return (content, facts) => structured(sdk, content, facts, form.wrap, {});
  return (content, facts) => binary(sdk, content, facts, form.wrap);
}

/** An event that arrives as one is passed on as it is, byte by byte, unless something has to be added. */
function structured(
  sdk: Sdk,
  content: Content,
  facts: EventFacts,
  wrap: EventWrap | undefined,
  extensions: Readonly<Record<string, string>>,
): Formed {
  const { data, attributes } = content;
  const found = eventFields(content);
  if (found === undefined) {
    const { data: value, ...fields } = wrapped(sdk, content, facts, wrap, extensions).toJSON();
    // Bytes stand in a field of their own.
    const isValue = value !== undefined && !isBytes(value);
    const isRaw = isValue && isJson(String(fields["datacontenttype"]));
    const text = isRaw
      ? withField(fields, textOf(data))
      : JSON.stringify({ ...fields, data: isValue ? value : undefined });
    return { data: Buffer.from(text), contentType: STRUCTURED_TYPE, attributes, headers: NO_HEADERS };
  }
  validate(sdk, found);
  const missing = Object.entries(extensions).filter(([name]) => found[name] === undefined);
  const whole = missing.length === 0 ? data : Buffer.from(withFields(textOf(data), Object.fromEntries(missing)));
  return { data: whole, contentType: STRUCTURED_TYPE, attributes, headers: NO_HEADERS };
}

function binary(sdk: Sdk, content: Content, facts: EventFacts, wrap: EventWrap | undefined): Formed {
  const found = eventFields(content);
  const event = found === undefined ? wrapped(sdk, content, facts, wrap, {}) : validate(sdk, found);
  const message = formed(sdk.HTTP.binary(event), content);
  // The SDK gives every event a time, and writes the one that it has in its own way.
  const { "ce-time": made, ...rest } = message.headers;
  const time = found === undefined ? (facts.sentAt === undefined ? undefined : made) : found["time"];
  const headers = typeof time === "string" ? { ...rest, "ce-time": time } : rest;
  return { ...message, headers, data: found === undefined ? content.data : message.data };
}

/**
 * JSON is put in as the text that it is. A number such as 12345678901234567890 or 1.10 would be another one after it
 * was read and written.
 */
function withField(fields: object, data: string): string {
  return `${JSON.stringify(fields).slice(0, -1)},"data":${data}}`;
}

/** The same for an object's text, which has some field already. */
function withFields(object: string, fields: object): string {
  return `${object.trimEnd().slice(0, -1)},${JSON.stringify(fields).slice(1)}`;
}

function wrapped(
  sdk: Sdk,
  content: Content,
  { id, key, sentAt }: EventFacts,
  wrap: EventWrap | undefined,
  extensions: Readonly<Record<string, string>>,
): CloudEvent<unknown> {
  if (wrap === undefined)
    throw new Fatal(
      "The message is not a CloudEvent, and the route does not say that others are to be wrapped in one.",
    );
  return new sdk.CloudEvent<unknown>({
    id,
    source: wrap.source,
    type: wrap.type,
    ...(key === undefined ? {} : { partitionkey: key }),
    ...(sentAt === undefined ? {} : { time: new Date(sentAt).toISOString() }),
    ...dataOf(content),
    ...extensions,
  });
}

/** As a value where it is JSON, as a text where it is one, otherwise as bytes. */
function dataOf({ data, contentType }: Content): { datacontenttype: string; data: unknown } {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  if (contentType === undefined || isJson(contentType)) {
    const value = parseJson(bytes);
    if (value !== undefined) return { datacontenttype: contentType ?? "application/json", data: value.parsed };
  }
  if (contentType?.startsWith("text/") === true) return { datacontenttype: contentType, data: bytes.toString("utf8") };
  return { datacontenttype: contentType ?? "application/octet-stream", data: bytes };
}

/**
 * The fields of a structured event. Queues seldom carry the media type, so one is also known by the fields that it must
 * have.
 */
function eventFields({ data, contentType }: Content): Readonly<Record<string, unknown>> | undefined {
  const declared = contentType?.startsWith(STRUCTURED_TYPE) === true;
  if (!declared && contentType !== undefined && !isJson(contentType)) return undefined;
  const parsed = parseJson(Buffer.from(data.buffer, data.byteOffset, data.byteLength))?.parsed;
  const isObject = typeof parsed === "object" && parsed !== null && !Array.isArray(parsed);
  if (isObject && "specversion" in parsed && "id" in parsed && "type" in parsed && "source" in parsed)
    return { ...parsed };
  if (declared)
    throw new Fatal("The message says that it is a CloudEvent, and is not one: required fields are missing.");
  return undefined;
}

function validate({ HTTP: http, CloudEvent: Event }: Sdk, fields: object): CloudEvent<unknown> {
  try {
    const event = http.toEvent({ headers: { "content-type": STRUCTURED_TYPE }, body: JSON.stringify(fields) });
    if (!(event instanceof Event)) throw new Error("it is a batch of events");
    event.validate();
    return event;
  } catch (cause) {
    const why = isError(cause) ? cause.message : String(cause);
    throw new Fatal(`The message is not a valid CloudEvent: ${why}`, { cause });
  }
}

function formed({ headers, body }: Message, { attributes }: Content): Formed {
  // Extensions may be numbers and flags, too.
  const named = Object.entries(headers).filter(([, value]) => value !== undefined && value !== null);
  const texts = Object.fromEntries(named.map(([name, value]) => [name, String(value)]));
  const { "content-type": contentType, ...rest } = texts;
  const data = isBytes(body) ? body : Buffer.from(String(body));
  return { data, contentType: contentType?.replace(/; charset=utf-8$/i, ""), attributes, headers: rest };
}

function textOf(data: Uint8Array): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("utf8");
}

function parseJson(bytes: Buffer): { readonly parsed: unknown } | undefined {
  try {
    return { parsed: JSON.parse(bytes.toString("utf8")) };
  } catch {
    return undefined;
  }
}

function isJson(type: string): boolean {
  return /^application\/(?:[^;]*\+)?json(?:;|$)/i.test(type);
}

async function loadSdk(): Promise<Sdk> {
  try {
    return await import("cloudevents");
  } catch (cause) {
    throw new BatonError(
      "ENGINE_MISSING",
      "Delivery as CloudEvents needs the package cloudevents, which is not installed. Nothing was done. Run: npm install cloudevents",
      { cause },
    );
  }
}
