/** Closing while a PostgreSQL server stands still. */
import { startPostgres } from "../../servers/postgres.ts";
import { addClosingTests } from "./stage.ts";

addClosingTests(startPostgres);
