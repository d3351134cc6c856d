// The page of `mind web`.

import { start } from "./app.js";
import { Server } from "./server.js";
import { sessionsView } from "./sessions.js";

start(new Server(), { sessions: sessionsView });
