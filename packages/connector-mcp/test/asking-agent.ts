import { expect } from 'vitest'

import type { AgentDirectory } from '../src/index.ts'
import type { AgentAnswer, AgentRequest } from './agent-directory.ts'
import { TestAgentDirectory } from './agent-directory.ts'
import type { TaskHost } from './task-host.ts'
import { startTaskHost } from './task-host.ts'

/** The arguments of a call to the agent. */
export const SEND = { agent_id: 'booking', message: 'book a table' }

/** A request as the agent sees it. */
export interface Asked {
  readonly method: string
  readonly params: {
    readonly id?: string
    readonly message?: { readonly taskId?: string; readonly contextId?: string; readonly parts: { text: string }[] }
  }
}

/** A host with one agent, and the requests that the agent got. */
export interface AskingAgentHost extends TaskHost {
  readonly asked: Asked[]
}

type NextAnswer = AgentAnswer | ((request: AgentRequest) => AgentAnswer | Promise<AgentAnswer>)

/** Returns a reply of A2A 0.3 that asks for input, as the agent's own task `t1`. */
export function asking(question: string): AgentAnswer {
  const message = { kind: 'message', role: 'agent', messageId: 'm', parts: [{ kind: 'text', text: question }] }
  return reply({ kind: 'task', id: 't1', contextId: 'c1', status: { state: 'input-required', message } })
}

export function reply(result: unknown): AgentAnswer {
  return { body: JSON.stringify({ jsonrpc: '2.0', id: 1, result }) }
}

/** The reply that completes the task `t1`. */
export const DONE = reply({ kind: 'task', id: 't1', contextId: 'c1', status: { state: 'completed' } })

/** Returns the request that asks the user a question of the agent. */
export function formOf(question: string): object {
  return {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: question,
      requestedSchema: {
        type: 'object',
        properties: { answer: { type: 'string', title: 'Answer' } },
        required: ['answer'],
      },
    },
  }
}

/** Starts a host whose agent gives the answers in their order, and the last one from then on. */
export async function startAskingAgent(...answers: readonly [NextAnswer, ...NextAnswer[]]): Promise<AskingAgentHost> {
  const asked: Asked[] = []
  const host = await startTaskHost(async (system): Promise<AgentDirectory> => {
    const directory = new TestAgentDirectory(system)
    await directory.register({ agent_id: 'booking', name: 'Booking' }, (request) => {
      const answer = answers[asked.length] ?? answers.at(-1) ?? answers[0]
      asked.push(JSON.parse(request.envelope) as Asked)
      return typeof answer === 'function' ? answer(request) : answer
    })
    return directory
  })
  return { ...host, asked }
}

/** Expects that the agent got its message and then these answers, as parts of the same conversation. */
export function expectConversation({ asked }: AskingAgentHost, ...texts: readonly string[]): void {
  expect(asked.map(({ params }) => params.message)).toMatchObject([
    { parts: [{ text: SEND.message }] },
    ...texts.map((text) => ({ taskId: 't1', contextId: 'c1', parts: [{ text }] })),
  ])
}
