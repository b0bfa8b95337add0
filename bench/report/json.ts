import type { Report } from "./report.ts";

/** Everything, for other programs. */
export function writeJson(report: Report): string {
  const { subjects, rows, ...rest } = report;
  const content = {
    ...rest,
    subjects: subjects.map(({ name, title, durability, setup }) => ({ name, title, durability, setup })),
    rows: rows.map(({ workload, title, metric, figures }) => ({
      workload,
      title,
      metric: metric.name,
      unit: metric.unit,
      better: metric.better,
      figures: Object.fromEntries(figures),
    })),
  };
  return `${JSON.stringify(content, undefined, 2)}\n`;
}
