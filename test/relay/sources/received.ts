import type { Source, SourceMessage } from "../../../src/relay/source.ts";

export const never: AbortSignal = new AbortController().signal;
/** Makes a receive a try. */
export const now: AbortSignal = AbortSignal.abort();

export async function receiveOne(source: Source): Promise<SourceMessage> {
  const [message] = await source.receive({ max: 1, signal: never });
  if (message === undefined) throw new Error("a receive without a signal ended without a message");
  return message;
}

export function textOf(message: SourceMessage): string {
  return new TextDecoder().decode(message.data);
}
