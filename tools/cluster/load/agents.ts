import { fileURLToPath } from 'node:url'

import { MeasuredProcess } from '../../harness/measured-process.ts'
import { ask, Refused } from './calls.ts'

/** The agents for streams and calls. */
export const AGENTS = ['chaos-one', 'chaos-two'] as const

/** The agents' processes, which no disaster strikes. */
export class AgentProcesses implements AsyncDisposable {
  readonly urls: readonly string[]
  readonly #processes: readonly MeasuredProcess[]

  private constructor(processes: readonly MeasuredProcess[], urls: readonly string[]) {
    this.#processes = processes
    this.urls = urls
  }

  static async start(): Promise<AgentProcesses> {
    const script = fileURLToPath(new URL('paced-agent.ts', import.meta.url))
    const processes = AGENTS.map(() => new MeasuredProcess({ script, instrumented: false }))
    const urls = processes.map((process) => process.line((line) => /^listening on (\S+)$/.exec(line)?.[1]))
    return new AgentProcesses(processes, await Promise.all(urls))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#processes.map((process) => process[Symbol.asyncDispose]()))
  }
}

/** Returns the JSON-RPC request for a message of one text. */
export function agentRequest(method: 'message/send' | 'message/stream', text: string, timeoutSeconds: number) {
  const message = { kind: 'message', role: 'user', messageId: 'm', parts: [{ kind: 'text', text }] }
  return { jsonrpc: '2.0', id: 1, method, params: { message, configuration: { timeout: timeoutSeconds } } }
}

interface RpcAnswer {
  readonly result?: unknown
  readonly error?: { readonly code: number; readonly message: string }
}

/** @throws Refused for a JSON-RPC error */
export function rpcResult(answer: unknown): unknown {
  const { result, error } = answer as RpcAnswer
  if (error !== undefined) throw new Refused(`${error.code} ${error.message}`, error.message)
  return result
}

/** Calls an agent through the gateway at this address. @throws Refused, or another Error if there was no answer */
export async function callAgent(base: string, agent: string, text: string, timeoutSeconds: number, giveUpMs: number) {
  return rpcResult(await ask(`${base}/a2a/${agent}`, giveUpMs, agentRequest('message/send', text, timeoutSeconds)))
}
