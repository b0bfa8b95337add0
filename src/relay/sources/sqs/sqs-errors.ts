/** What AWS refuses, by the name of the refusal, as errors that say what to do. */
import { BatonError } from "../../../domain/errors.ts";
import { isError } from "../../../domain/realms.ts";
import { MessageLost } from "../polling/hold.ts";

const MISSING: ReadonlySet<string> = new Set(["QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue"]);
const THROTTLED: ReadonlySet<string> = new Set([
  "RequestThrottled",
  "RequestThrottledException",
  "RequestLimitExceeded",
  "SlowDown",
  "Throttling",
  "ThrottlingException",
  "TooManyRequestsException",
  "KmsThrottled",
  "OverLimit",
]);
const EXPIRED: ReadonlySet<string> = new Set([
  "ExpiredToken",
  "ExpiredTokenException",
  "RequestExpired",
  "TokenRefreshRequired",
]);
const UNKNOWN_CALLER: ReadonlySet<string> = new Set([
  "CredentialsProviderError",
  "IncompleteSignature",
  "InvalidAccessKeyId",
  "InvalidClientTokenId",
  "InvalidSecurity",
  "InvalidSignatureException",
  "MissingAuthenticationToken",
  "SignatureDoesNotMatch",
  "TokenProviderError",
  "UnrecognizedClientException",
]);
const DENIED: ReadonlySet<string> = new Set(["AccessDenied", "AccessDeniedException", "KmsAccessDenied"]);
/** What SQS says of a receipt that has run out or was replaced by a newer one. Only for requests about one message. */
const GONE: ReadonlySet<string> = new Set(["MessageNotInflight", "ReceiptHandleIsInvalid", "InvalidParameterValue"]);

export interface SqsRequest {
  readonly source: string;
  readonly queue: string;
  readonly what: string;
  /** Set when the request is about one message. */
  readonly message?: string;
}

export function sqsError(cause: unknown, request: SqsRequest): BatonError {
  if (cause instanceof BatonError) return cause;
  const name = codeOf(cause);
  const { source, queue, what, message } = request;
  if (message !== undefined && GONE.has(name))
    return new MessageLost(source, message, `SQS answered ${name}`, { cause });
  const said = isError(cause) ? `${name}: ${cause.message}` : String(cause);
  const failed = `SQS refused to ${what} of source ${source} (${queue}): ${said}.`;
  if (MISSING.has(name)) {
    return new BatonError(
      "NOT_FOUND",
      `${failed} Nothing is received from it. Is the name right, and the region? Make the queue, or correct the configuration; the relay goes on trying.`,
      { cause },
    );
  }
  const advice = adviceOf(name);
  if (advice !== undefined) return new BatonError("STORE_UNAVAILABLE", `${failed} ${advice}`, { cause });
  return new BatonError(
    "STORE_UNAVAILABLE",
    `SQS did not ${what} of source ${source} (${queue}): ${said}. It may have happened without an answer; doing it again is safe. ` +
      "Is the endpoint right, and can it be reached from here?",
    { cause },
  );
}

function adviceOf(name: string): string | undefined {
  if (THROTTLED.has(name)) return "It asks for patience: the relay slows down and goes on by itself.";
  if (EXPIRED.has(name))
    return "The credentials have expired. Renew them (for SSO: aws sso login); the relay goes on with new ones.";
  if (UNKNOWN_CALLER.has(name)) {
    return "It does not accept the credentials. Give them as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as a profile, or as the role of the machine.";
  }
  if (DENIED.has(name)) {
    return "The credentials lack a permission: sqs:ReceiveMessage, sqs:DeleteMessage, sqs:ChangeMessageVisibility and sqs:GetQueueUrl are needed.";
  }
  return undefined;
}

/** SDK errors carry the code of AWS as their name; errors of sockets carry their own as `code`. */
function codeOf(cause: unknown): string {
  if (!isError(cause)) return "unknown";
  if (cause.name !== "Error") return cause.name;
  return "code" in cause && typeof cause.code === "string" ? cause.code : cause.name;
}
