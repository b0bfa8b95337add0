import "../../domain/node-version.ts";
export { memoryEngine, type MemoryOptions, MemoryStore } from "./store.ts";
