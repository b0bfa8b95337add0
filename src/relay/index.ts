export type { RelayOptions } from "./context.ts";
export { eventFields, levelOf, type MessageEvent, type RelayEvent } from "./events.ts";
export type { RelayReport, RelayStop, RouteReport } from "./relay-report.ts";
export { createRelay, Relay } from "./relay.ts";
export * from "./settings.ts";
export type { GiveBackRequest, ReceiveRequest, Source, SourceMessage } from "./source.ts";
export { batonSource, type BatonSourceOptions } from "./sources/baton/baton-source.ts";
export type { Content, Transform } from "./transform.ts";
