/** The part of the API that makes consumers, with the conditions under which it does. */
import { isDeepStrictEqual } from "node:util";
import type { Clock } from "../../src/domain/clock.ts";
import { completeConsumerConfig, type ConsumerConfig, filtersOf } from "./consumer-config.ts";
import { Consumer, type Outlet } from "./consumer.ts";
import { ApiError, badRequest } from "./errors.ts";
import type { Stream } from "./stream.ts";
import { overlap } from "./subjects.ts";

export interface CreateRequest {
  readonly config?: Readonly<Record<string, unknown>>;
  readonly action?: "" | "create" | "update";
}

export interface Surroundings {
  readonly clock: Clock;
  readonly outlet: Outlet;
  readonly version: string;
}

export function createConsumer(
  stream: Stream,
  name: string,
  filter: string,
  { config: given, action }: CreateRequest,
  { clock, outlet, version }: Surroundings,
): object {
  if (given === undefined) throw badRequest();
  const config = completeConsumerConfig({ ...given, name }, version);
  if (filter !== "" && config.filter_subject !== filter) {
    const text = "Consumer create request did not match filtered subject from create subject";
    throw new ApiError(400, 10131, text);
  }
  const existing = stream.consumers.get(name);
  checkWorkqueue(stream, config);
  if (existing !== undefined) {
    if (action === "create" && !isDeepStrictEqual(existing.config, config)) {
      throw new ApiError(400, 10148, "consumer already exists");
    }
    existing.update(config);
    return existing.info();
  }
  if (action === "update") throw new ApiError(400, 10149, "consumer does not exist");
  const consumer = new Consumer(config, stream, clock, outlet, () => void deleteConsumer(stream, name));
  stream.consumers.set(name, consumer);
  return consumer.info();
}

export function deleteConsumer(stream: Stream, name: string): boolean {
  const consumer = stream.consumers.get(name);
  stream.consumers.delete(name);
  consumer?.close();
  return consumer !== undefined;
}

/** There, each message has one consumer at most. */
function checkWorkqueue(stream: Stream, config: ConsumerConfig): void {
  if (stream.config.retention !== "workqueue") return;
  if (config.ack_policy !== "explicit") {
    throw new ApiError(400, 10084, "consumer in pull mode requires explicit ack policy on workqueue stream");
  }
  if (config.deliver_policy !== "all") {
    throw new ApiError(400, 10101, "consumer must be deliver all on workqueue stream");
  }
  const filters = filtersOf(config);
  const others = [...stream.consumers.values()].filter(({ name }) => name !== config.name);
  if (others.length > 0 && filters.length === 0) {
    throw new ApiError(400, 10099, "multiple non-filtered consumers not allowed on workqueue stream");
  }
  const collides = others.some((other) => {
    const theirs = filtersOf(other.config);
    return theirs.length === 0 || theirs.some((their) => filters.some((filter) => overlap(their, filter)));
  });
  if (collides) throw new ApiError(400, 10100, "filtered consumer not unique on workqueue stream");
}
