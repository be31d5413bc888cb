// What every page of the console runs.
import "./ui.js";
import "./keys.js";
import "./palette.js";
import "./live.js";
import "./compose.js";
import "./agent.js";
