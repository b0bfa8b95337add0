import { HINT_LIFE_MS } from "../../src/wake/port.ts";
import { MemoryWakes } from "../../src/wake/memory.ts";
import { ManualClock } from "../manual-clock.ts";
import { addWakeTests } from "./add-wake-tests.ts";

const clock = new ManualClock();
const wakes = new MemoryWakes({ clock });

addWakeTests({
  name: "memory",
  open: async () => wakes.connect(),
  hints: true,
  interrupt: "There is no connection that could break.",
  age: () => clock.pass(HINT_LIFE_MS),
});
