/** A reporter of node:test that prints the first failure, as soon as it is known. Whoever reads it ends the run. */
import type { TestEvent } from "node:test/reporters";

export const FAILED = "failed: ";

// oxlint-disable-next-line import/no-default-export -- so node:test loads a reporter
export default async function* firstFailure(events: AsyncIterable<TestEvent>): AsyncGenerator<string> {
  for await (const { type, data } of events) {
    if (type === "test:fail" && data.todo === undefined) yield `${FAILED}${data.name}\n`;
  }
}
