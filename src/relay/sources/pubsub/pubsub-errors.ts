/** What Pub/Sub refuses, by the number of the gRPC status, as errors that say what to do. */
import { BatonError } from "../../../domain/errors.ts";
import { isError } from "../../../domain/realms.ts";
import { MessageLost } from "../polling/hold.ts";

export const STATUS = {
  cancelled: 1,
  invalidArgument: 3,
  deadlineExceeded: 4,
  notFound: 5,
  permissionDenied: 7,
  resourceExhausted: 8,
  failedPrecondition: 9,
  unavailable: 14,
  unauthenticated: 16,
} as const;

export interface PubsubRequest {
  readonly source: string;
  readonly subscription: string;
  readonly what: string;
}

export function pubsubError(cause: unknown, request: PubsubRequest): BatonError {
  if (cause instanceof BatonError) return cause;
  const { source, subscription, what } = request;
  const said = isError(cause) ? cause.message : String(cause);
  const failed = `Pub/Sub did not ${what} of source ${source} (${subscription}): ${said}.`;
  const status = statusOf(cause);
  if (status === STATUS.notFound) {
    return new BatonError(
      "NOT_FOUND",
      `${failed} Nothing is received from it. Is the name right, and the project? Make it, or correct the configuration; the relay goes on trying.`,
      { cause },
    );
  }
  return new BatonError("STORE_UNAVAILABLE", `${failed} ${adviceOf(status)}`, { cause });
}

function adviceOf(status: number | undefined): string {
  switch (status) {
    case STATUS.unauthenticated:
      return "It does not accept the credentials. Set GOOGLE_APPLICATION_CREDENTIALS, or run: gcloud auth application-default login";
    case STATUS.permissionDenied:
      return "The account lacks a permission: give it the role roles/pubsub.subscriber on the subscription.";
    case STATUS.resourceExhausted:
      return "A quota is used up: the relay slows down and goes on by itself.";
    case undefined:
      return "Are there credentials (GOOGLE_APPLICATION_CREDENTIALS, or gcloud auth application-default login), or is PUBSUB_EMULATOR_HOST meant to be set?";
    default:
      return "It may have happened without an answer; doing it again is safe. Is the endpoint right, and can it be reached from here?";
  }
}

export function statusOf(error: unknown): number | undefined {
  return isError(error) && "code" in error && typeof error.code === "number" ? error.code : undefined;
}

/**
 * What became of each message when one request about several failed. Subscriptions with exactly-once delivery say it
 * for each; what they do not name was done. Undefined: it is not said.
 */
export function failuresOf(
  error: unknown,
  ackIds: readonly string[],
  { source }: PubsubRequest,
): readonly (Error | undefined)[] | undefined {
  if (!isError(error) || !("errorInfoMetadata" in error)) return undefined;
  const metadata: unknown = error.errorInfoMetadata;
  const said = new Map<string, unknown>(Object.entries(metadata ?? {}));
  if (!ackIds.some((ackId) => said.has(ackId))) return undefined;
  return ackIds.map((ackId) => {
    const reason = said.get(ackId);
    if (typeof reason !== "string") return undefined;
    if (reason.startsWith("PERMANENT_"))
      return new MessageLost(source, ackId, `Pub/Sub answered ${reason}`, { cause: error });
    return new BatonError("STORE_UNAVAILABLE", `Pub/Sub answered ${reason}. Doing it again is safe.`, { cause: error });
  });
}
