/** An error in one line. Of a command that failed, what it said last: the rest is the command itself. */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const said = error.message.trim().split("\n");
  const own = said[0]?.startsWith("Command failed") === true ? (said.at(-1) ?? "") : said.join(" ");
  return error.cause === undefined ? own : `${own} ${reasonOf(error.cause)}`;
}
