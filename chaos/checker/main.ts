/** The checker as a program of its own: `node chaos/checker/main.ts FOLDER` judges the histories in a folder. */
import { textReport } from "../report/text.ts";
import { isGood, judge } from "./check.ts";
import { readHistory, Unreadable } from "./read-history.ts";

const [folder, ...more] = process.argv.slice(2);
if (folder === undefined || folder.startsWith("-") || more.length > 0) {
  console.error("Usage: node chaos/checker/main.ts FOLDER");
  process.exitCode = 2;
} else {
  try {
    const judgement = judge(readHistory(folder));
    process.stdout.write(textReport(judgement));
    process.exitCode = isGood(judgement) ? 0 : 1;
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    console.error(`It cannot be judged. ${error.message}`);
    process.exitCode = 2;
  }
}
