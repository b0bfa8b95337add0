/** Closing while a Redis server stands still. */
import { startRedisServer } from "../../servers/redis-server.ts";
import { addClosingTests } from "./stage.ts";

addClosingTests(startRedisServer);
