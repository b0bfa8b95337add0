/** Optional packages that a relay may need. */
export type PackageName =
  | "@aws-sdk/client-sqs"
  | "@google-cloud/pubsub"
  | "@nats-io/transport-node"
  | "@redis/client"
  | "cloudevents"
  | "pg"
  | "undici";
