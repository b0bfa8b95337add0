import type { ConformanceTarget, Guarantee } from "../../src/conformance/index.ts";
import type { Engine } from "../../src/engine/port.ts";
import { MemoryStore } from "../../src/engines/memory/index.ts";

/** An engine with one flaw, which the cases of one guarantee must find. */
export interface BrokenEngine {
  readonly guarantee: Guarantee;
  readonly flaw: string;
  target(): ConformanceTarget;
}

/** `startStore` is called once for each store; what it returns breaks each handle of that store. */
export function brokenEngine(
  guarantee: Guarantee,
  flaw: string,
  startStore: () => (inner: Engine) => Engine,
): BrokenEngine {
  return {
    guarantee,
    flaw,
    target() {
      const store = new MemoryStore();
      const breakHandle = startStore();
      return { name: flaw, open: async () => breakHandle(store.connect()), restart: async () => undefined };
    },
  };
}
