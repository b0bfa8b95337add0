import type { Cast, Deed } from "./cast.ts";
import type { RunParts } from "./run-parts.ts";
import type { SimulatedProcess } from "./simulated-process.ts";
import type { VirtualTime } from "./virtual-time.ts";

/** A clock that was wrong is set right by this much at most, either way. */
const LARGEST_STEP_MS = 30_000;

/** What happens to whole processes, and to clocks, in a run. What happens to single calls is drawn by their network. */
export function planFaults({ settings, random: source, time, history, storeClock }: RunParts, cast: Cast): void {
  const random = source.fork();
  const { faults, leaseMs, troubleMs } = settings;
  const stepMs = (): number => random.between(-LARGEST_STEP_MS, LARGEST_STEP_MS);
  const often = (count: number, deed: Deed): void => {
    for (let left = count; left > 0; left -= 1) cast.sometime(random, troubleMs, deed);
  };
  often(faults.crashes, (process) => process.crash("killed"));
  often(faults.pauses, (process) => process.pause("stopped", leaseMs * (1.5 + random.next() * 1.5)));
  often(faults.partitions, (process) => cutOff(process, time, leaseMs * random.next() * 2));
  often(faults.processClockSteps, (process) => process.stepClock(stepMs()));
  often(faults.storeClockSteps, () => {
    const byMs = stepMs();
    const detail = `${byMs} ms`;
    history.add({ at: time.now, type: "fault", process: "store", kind: "clock step", detail });
    storeClock.step(byMs);
  });
  often(faults.stops, (process) => cast.stopAndPerhapsGoOn(process, random));
}

function cutOff(process: SimulatedProcess, time: VirtualTime, forMs: number): void {
  process.suffer("partition", `for ${Math.round(forMs)} ms`);
  process.network.partitioned = true;
  time.after(forMs, () => {
    process.network.partitioned = false;
    process.suffer("heal", "");
  });
}
