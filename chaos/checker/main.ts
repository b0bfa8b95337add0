/** The checker as a program of its own: `node chaos/checker/main.ts FOLDER` judges the histories in a folder. */
import { textReport } from "../report/text.ts";
import { judge } from "./check.ts";
import { readHistory } from "./read-history.ts";

const [folder] = process.argv.slice(2);
if (folder === undefined) {
  console.error("Usage: node chaos/checker/main.ts FOLDER");
  process.exitCode = 2;
} else {
  const judgement = judge(readHistory(folder));
  process.stdout.write(textReport(judgement));
  process.exitCode = judgement.violations.length === 0 ? 0 : 1;
}
