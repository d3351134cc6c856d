// The page of `mind report`.

import { start } from "./app.js";
import { Embedded } from "./embedded.js";

start(new Embedded(JSON.parse(document.getElementById("data").textContent)));
