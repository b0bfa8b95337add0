import { addScriptTest } from "./play-scripts.ts";
import { drawLoopDeed, drawLoopSetting } from "./worker-loop/deeds.ts";
import { playLoop } from "./worker-loop/play.ts";

addScriptTest("a worker's loop asks, begins, settles and stops as it should, whatever comes when", {
  setting: drawLoopSetting,
  deed: drawLoopDeed,
  longest: 40,
  play: playLoop,
});
