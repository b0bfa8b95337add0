import { playTakes, drawTakeDeed } from "./take/play.ts";
import { addScriptTest } from "./play-scripts.ts";

addScriptTest("items that are taken by hand are kept, settled once, and left when the connection closes", {
  setting: () => undefined,
  deed: drawTakeDeed,
  longest: 40,
  play: (_, deeds) => playTakes(deeds),
});
