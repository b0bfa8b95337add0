import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join, parse } from "node:path";
import { writeMarkdown } from "./markdown.ts";
import type { Report } from "./report.ts";

/** The page, and its charts in a folder of its name beside it. */
export function writePage(report: Report, file: string): void {
  const { dir, name } = parse(file);
  const folder = join(dir, name);
  const { text, charts } = writeMarkdown(report, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
  for (const chart of charts) {
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, chart.file), chart.svg);
  }
}
