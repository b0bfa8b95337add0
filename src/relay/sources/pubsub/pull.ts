/** One pull. The client has no way to break one off, but gRPC has: an interceptor gets hold of the call itself. */
import type { protos, v1 } from "@google-cloud/pubsub";
import type { FetchRequest } from "../polling/poll-line.ts";
import { STATUS, statusOf } from "./pubsub-errors.ts";

type Received = protos.google.pubsub.v1.IReceivedMessage;

/** Pub/Sub knows this from the request, and answers before. */
export const WAIT_MS = 60_000;
/** For a try: time to connect. */
const TRY_MS = 10_000;

interface Call {
  cancelWithStatus(status: number, details: string): void;
}

export async function pull(
  subscriber: v1.SubscriberClient,
  subscription: string,
  { most, wait, signal }: FetchRequest,
): Promise<readonly Received[]> {
  let call: Call | undefined;
  const interceptor = (options: unknown, next: (options: unknown) => Call): Call => {
    call = next(options);
    return call;
  };
  const cancel = (): void => call?.cancelWithStatus(STATUS.cancelled, "the source is closed");
  signal.addEventListener("abort", cancel);
  try {
    // Without the first, a try would wait as long as the server likes.
    const request = { subscription, maxMessages: most, ...(wait ? {} : { returnImmediately: true }) };
    const options = {
      timeout: wait ? WAIT_MS : TRY_MS,
      // The one who waits asks again, after a back-off.
      retry: null,
      otherArgs: { options: { interceptors: [interceptor] } },
    };
    const [response] = await subscriber.pull(request, options);
    return response.receivedMessages ?? [];
  } catch (error) {
    if (wait && statusOf(error) === STATUS.deadlineExceeded) return [];
    throw error;
  } finally {
    signal.removeEventListener("abort", cancel);
  }
}
