/** On virtual time: who vanishes costs nothing, so many seeds are played, and what comes late is a failure. */
import { MemoryCells, MemoryRegister } from "../../../src/engines/memory/register.ts";
import { ShiftedClock } from "../../simulation/shifted-clock.ts";
import { countImmediates, untilQuiet } from "../../simulation/turns.ts";
import { VirtualTime } from "../../simulation/virtual-time.ts";
import { Seeds } from "../../kit/seeds.ts";
import { addRandomLockTests } from "./add-random-lock-tests.ts";
import { registerStore } from "./register-store.ts";

countImmediates();
const time = new VirtualTime();

addRandomLockTests("locks in memory", {
  seeds: () => new Seeds({ seeds: 600, longestMs: 3_000 }),
  atATime: 20,
  steps: 40,
  mostVanish: 6,
  mostLeases: 4,
  handles: 2,
  open() {
    const clock = new ShiftedClock(time, 1_000, 0, (callback) => callback());
    const cells = new MemoryCells(clock);
    const opened = [false, true].map((watchesHolds) => ({ register: new MemoryRegister(cells), watchesHolds }));
    return registerStore("memory", opened, { clock, leaseMs: 500, slackMs: 400 });
  },
  async run(playing) {
    let isOver = false;
    const end = (): void => void (isOver = true);
    playing.then(end, end);
    for (;;) {
      await untilQuiet();
      if (isOver) return await playing;
      time.step();
    }
  },
});
