import { MemoryStore } from "../../src/engines/memory/index.ts";
import type { BrokenEngine } from "./broken-engine.ts";

/** Starts with an empty store, whatever was in it. */
export const forgetsAtRestart: BrokenEngine = {
  guarantee: "G3",
  flaw: "forgets everything at a restart",
  target() {
    let store = new MemoryStore();
    return {
      name: this.flaw,
      open: async () => store.connect(),
      restart: async () => {
        store = new MemoryStore();
      },
    };
  },
};
