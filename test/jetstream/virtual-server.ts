/** A simulated server in time of its own, which passes when it is told to. */
import type { Clock } from "../../src/domain/clock.ts";
import { ShiftedClock } from "../simulation/shifted-clock.ts";
import { VirtualTime } from "../simulation/virtual-time.ts";
import { type ServerOptions, SimulatedServer } from "./server.ts";

export interface VirtualServer {
  readonly server: SimulatedServer;
  readonly clock: Clock;
  readonly time: VirtualTime;
  /** Everything happens that is due by then; with 0, all that follows at once from what was done. */
  readonly pass: (ms: number) => void;
}

export function virtualServer(options: Omit<ServerOptions, "clock"> = {}): VirtualServer {
  const time = new VirtualTime();
  const clock = new ShiftedClock(time, 0, 0, (callback) => callback());
  const pass = (ms: number): void => {
    const end = time.now + ms;
    time.after(ms, () => undefined);
    while ((time.nextAt ?? Infinity) <= end) time.step();
  };
  return { server: new SimulatedServer({ clock, ...options }), clock, time, pass };
}
