// The page of `mind web`.

import { start } from "./app.js";
import { Server } from "./server.js";

start(new Server());
