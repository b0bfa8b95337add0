import { newsOf } from "./news.ts";
import { picture, type View } from "./picture.ts";

/** Where the story is shown. */
export interface Stage {
  show(view: View): void;
  close(): void;
}

const HIDE_CURSOR = "\u001b[?25l";
const SHOW_CURSOR = "\u001b[?25h";
/** A line that is too long for a narrow window is cut: if it went on below, the next picture would be misplaced. */
const CUT_LONG_LINES = "\u001b[?7l";
const WRAP_LONG_LINES = "\u001b[?7h";
const CLEAR_REST_OF_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";

export function openStage(): Stage {
  const { stdout } = process;
  return stdout.isTTY && process.env["TERM"] !== "dumb" ? terminalStage() : plainStage();
}

/** Draws over the last picture, so that the final one stays to be looked at. */
function terminalStage(): Stage {
  const { stdout } = process;
  let height = 0;
  stdout.write(HIDE_CURSOR + CUT_LONG_LINES);
  return {
    show(view) {
      const lines = picture(view).slice(0, stdout.rows - 1);
      const up = height === 0 ? "" : `\u001b[${height}A\r`;
      stdout.write(up + lines.map((line) => `${line}${CLEAR_REST_OF_LINE}\n`).join("") + CLEAR_BELOW);
      height = lines.length;
    },
    close() {
      stdout.write(WRAP_LONG_LINES + SHOW_CURSOR);
    },
  };
}

/** For a log: a line for everything that happens. */
function plainStage(): Stage {
  let told = 0;
  return {
    show({ history, begunAt }) {
      const news = newsOf(history);
      for (const { at, text } of news.slice(told)) {
        process.stdout.write(`${((at - begunAt) / 1_000).toFixed(2).padStart(6)} s  ${text}\n`);
      }
      told = news.length;
    },
    close: () => undefined,
  };
}
