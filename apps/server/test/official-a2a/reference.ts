import { expect } from 'vitest'

import type { AgentName } from './agents/process.ts'
import type { ClientName } from './clients/connect.ts'
import type { Conversation } from './conversations.ts'

/**
 * The pair whose view a client must have of an agent. A client that cannot talk to the agent itself, for it speaks another
 * version, must see what the compatibility layer of the SDK shows: on the client's side where the client has one, else on the
 * agent's.
 */
export function reference(
  client: ClientName,
  agent: AgentName,
  conversation: Conversation,
): readonly [ClientName, AgentName] {
  if (client === '1.0' || client === 'rest') return agent === 'v03' ? ['legacy', agent] : [client, agent]
  if (agent === 'plain') return [client, 'plain-both']
  // Agents of the SDK for 1.0 refuse a stream of 0.3 with JSON, which the client for 0.3 cannot read. The gateway refuses as
  // the agents for 0.3 do.
  if (conversation.refusedStream === true) return [client, 'v03']
  // An agent of 1.0 has no way to say that the stream ends. The gateway says it as agents for 0.3 do.
  if (agent === 'v10' && conversation.asksInStream === true) return [client, 'v03']
  // The card that agents of the SDK for 1.0 show in 0.3 does not say that there is an extended one. The gateway's does.
  if (conversation.extendedCard === true) return [client, 'v03']
  return [client, agent === 'v10' ? 'both' : agent]
}

/** Returns true if the gateway translates between a client and an agent. */
function isTranslated(client: ClientName, agent: AgentName): boolean {
  const in10 = client === '1.0' || client === 'rest'
  return agent === 'v03' ? in10 : !in10 && agent !== 'both' && agent !== 'plain-both'
}

/** Returns false for a conversation that the reference cannot hold, or that the gateway refuses. */
export function hasReference(
  client: ClientName,
  agent: AgentName,
  { streams, subscribes, pushes }: Conversation,
): boolean {
  // The agent would send its notifications in its own version.
  if (pushes === true && isTranslated(client, agent)) return false
  if (agent !== 'plain') return true
  return streams !== true && (client === '1.0' || client === 'rest' || subscribes !== true)
}

/** Returns what a client must see of an agent through the gateway where the gateway does better than the reference. */
export function improved(client: ClientName, agent: AgentName, conversation: Conversation, view: unknown): unknown {
  if (client !== '1.0' || agent !== 'v03') return view
  if (conversation.lists === true) {
    const message = expect.stringContaining('ListTasks has no equivalent in A2A 0.3')
    return { error: { name: 'UnsupportedOperationError', message, reason: 'UNSUPPORTED_OPERATION', code: -32004 } }
  }
  // A stream of 1.0 begins with its task.
  if (conversation.failsInStream === true && Array.isArray(view)) {
    return [{ task: { id: '#1', contextId: '#2', status: { state: 'TASK_STATE_WORKING' } } }, ...(view as unknown[])]
  }
  // A subscription to a task that has ended is an error in 1.0, and the task itself in 0.3.
  if (conversation.subscribesLate === true && Array.isArray(view)) {
    return [[{ error: expect.objectContaining({ code: -32004, name: 'UnsupportedOperationError' }) }], refused(view[1])]
  }
  if (conversation.refusedStream === true) return refused(view)
  return view
}

/** Returns a view in which a stream that the agent refused is an error of its own: agents of 1.0 refuse with JSON. */
function refused(view: unknown): unknown {
  const text = JSON.stringify(view, (member, value: { readonly cause?: unknown }) =>
    member === 'error' && value.cause !== undefined ? value.cause : value,
  )
  return JSON.parse(text, (member, value: unknown) =>
    member === 'message' && typeof value === 'string' ? expect.stringContaining(value.replace(/: #\d+$/, '')) : value,
  )
}
