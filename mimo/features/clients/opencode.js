// mind hook opencode: gives the agent notes from the project's memory, and warns of known pitfalls.
// Written by `mind install opencode` and removed by `mind uninstall opencode`; changes are lost.
// Where `mind` is missing, it does nothing.

import { spawn } from "node:child_process"

const EDITING = ["write", "edit", "multiedit", "patch", "apply_patch"]

const answerOf = (event) =>
  new Promise((resolve) => {
    const parts = []
    const hook = spawn("mind", ["hook", "opencode"], {
      cwd: event.cwd,
      stdio: ["pipe", "pipe", "ignore"],
      timeout: 10_000,
    })
    hook.on("error", () => resolve({}))
    hook.stdin.on("error", () => {})
    hook.stdout.on("data", (part) => parts.push(part))
    hook.on("close", () => {
      try {
        resolve(JSON.parse(Buffer.concat(parts).toString() || "{}"))
      } catch {
        resolve({})
      }
    })
    hook.stdin.end(JSON.stringify(event))
  })

export const Mind = async ({ client, directory }) => {
  const started = new Map() // sessions, and the reason for which they get the notes of a start
  const children = new Set() // sessions of subagents, which are not asked at their end

  const ask = async (name, session, fields) => {
    const event = { hook_event_name: name, session_id: session, cwd: directory, ...fields }
    const answer = await answerOf(event)
    if (answer.systemMessage) {
      const body = { message: answer.systemMessage, variant: "info" }
      await client.tui.showToast({ body }).catch(() => {})
    }
    return answer
  }

  return {
    "chat.message": async ({ sessionID }, { message, parts }) => {
      const typed = parts.filter((part) => part.type === "text" && !part.synthetic)
      const last = parts.at(-1)
      if (!typed.length || !last) return
      const notes = []
      if (started.get(sessionID) !== "") {
        const source = started.get(sessionID) ?? "resume"
        started.set(sessionID, "")
        notes.push((await ask("SessionStart", sessionID, { source })).additionalContext)
      }
      const prompt = typed.map((part) => part.text).join("\n")
      notes.push((await ask("UserPromptSubmit", sessionID, { prompt })).additionalContext)
      const text = notes.filter(Boolean).join("\n")
      const place = { sessionID, messageID: message.id, id: `${last.id}mind` }
      if (text) parts.push({ ...place, type: "text", text, synthetic: true })
    },

    "tool.execute.before": async ({ tool, sessionID }, { args }) => {
      if (!EDITING.includes(tool)) return
      const fields = { tool_name: tool, tool_input: args }
      const answer = await ask("PreToolUse", sessionID, fields)
      if (answer.permissionDecision === "deny") throw new Error(answer.permissionDecisionReason)
    },

    event: async ({ event }) => {
      const { sessionID, info } = event.properties ?? {}
      if (event.type === "session.created" && info?.parentID) children.add(info.id)
      if (event.type === "session.compacted") started.set(sessionID, "compact")
      if (event.type !== "session.idle" || children.has(sessionID)) return
      const answer = await ask("Stop", sessionID, {})
      if (answer.decision !== "block") return
      const body = { parts: [{ type: "text", text: answer.reason }] }
      await client.session.promptAsync({ path: { id: sessionID }, body }).catch(() => {})
    },
  }
}
