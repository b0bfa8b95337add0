const ENTER = "\u001b[?1049h\u001b[?25l";
const LEAVE = "\u001b[?25h\u001b[?1049l";
const HOME = "\u001b[H";
const CLEAR_REST_OF_LINE = "\u001b[K";
const CLEAR_BELOW = "\u001b[J";
const CTRL_C = "\u0003";

export interface Screen extends Disposable {
  draw(lines: readonly string[]): void;
}

/** The alternate screen of the terminal, given back as it was, however the process ends. */
export function openScreen(onLeave: () => void): Screen {
  const { stdin, stdout } = process;
  let shown = "";
  let open = true;
  const onData = (data: Buffer): void => {
    const pressed = data.toString("utf8");
    if (pressed === "q" || pressed === "Q" || pressed.includes(CTRL_C)) onLeave();
  };
  const close = (): void => {
    if (!open) return;
    open = false;
    stdout.write(LEAVE);
    if (stdin.isTTY) stdin.setRawMode(false).off("data", onData).pause();
    process.off("exit", close);
  };
  process.on("exit", close);
  stdout.write(ENTER);
  // Without raw mode a key counts only after Enter.
  if (stdin.isTTY) stdin.setRawMode(true).on("data", onData).resume();
  return {
    draw(lines) {
      // Some terminals do not tell their size.
      const columns = stdout.columns > 0 ? stdout.columns : 80;
      const rows = stdout.rows > 0 ? stdout.rows : 24;
      const text = lines
        .slice(0, rows)
        .map((line) => line.slice(0, columns) + CLEAR_REST_OF_LINE)
        .join("\r\n");
      if (text === shown) return;
      shown = text;
      stdout.write(HOME + text + CLEAR_BELOW);
    },
    [Symbol.dispose]: close,
  };
}
