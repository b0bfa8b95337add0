export { memoryEngine, type MemoryOptions, MemoryStore } from "./store.ts";
