import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'

export type AgentName = 'v10' | 'v03' | 'both' | 'plain' | 'plain-both'

/** A call as it reached an agent. */
export interface SeenRequest {
  readonly agent: string
  /** The JSON-RPC method. */
  readonly method: string
  /** The header `A2A-Version`. */
  readonly version: string | null
  readonly throughGateway: boolean
}

/** The process with the agents that are made with the official SDKs. */
export interface OfficialAgents {
  /** The base URL of an agent; it ends in `/`, and the card's path is relative to it. */
  url: (agent: AgentName) => string
  /** Lets a held task continue. */
  release: (taskId: string) => Promise<void>
  /** Returns the calls since the last time. */
  takeSeen: () => Promise<readonly SeenRequest[]>
  [Symbol.dispose]: () => void
}

/** Starts the process. */
export async function startOfficialAgents(): Promise<OfficialAgents> {
  const child = fork(fileURLToPath(new URL('main.ts', import.meta.url)), {
    execArgv: [],
    // The SDKs log every error that they answer.
    stdio: ['ignore', 'ignore', process.env['A2A_AGENTS_LOG'] === undefined ? 'ignore' : 'inherit', 'ipc'],
  })
  const exited = once(child, 'exit').then(() => {
    throw new Error('the agents did not start; A2A_AGENTS_LOG=1 shows why')
  })
  const [origin] = (await Promise.race([once(child, 'message'), exited])) as [string]
  exited.catch(() => {})
  return {
    url: (agent) => `${origin}/${agent}/`,
    release: async (taskId) => {
      const response = await fetch(`${origin}/control/release`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ taskId }),
      })
      if ((await response.json()) !== true) throw new Error(`no task ${taskId} waits`)
    },
    takeSeen: async () => (await fetch(`${origin}/control/seen`)).json() as Promise<readonly SeenRequest[]>,
    [Symbol.dispose]: () => void child.kill(),
  }
}
