import { drawKeeperDeed, drawKeeperSetting, playKeeper } from "./lease-keeper/play.ts";
import { addScriptTest } from "./play-scripts.ts";

addScriptTest("a keeper of leases does what its model does, whenever answers come", {
  setting: drawKeeperSetting,
  deed: drawKeeperDeed,
  longest: 50,
  play: playKeeper,
});
