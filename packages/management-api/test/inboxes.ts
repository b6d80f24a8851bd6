import { encodeText } from '@signalbox/broker-core'

import type { AgentInboxesPort, AgentTaskStatus } from '../src/index.ts'

const TASK: AgentTaskStatus = {
  id: 't',
  agentId: 'a',
  callerId: 'alice',
  contextId: 'c',
  phase: 'stored',
  attempt: 0,
  createdAt: Date.UTC(2026, 0, 1),
  expiresAt: Date.UTC(2026, 0, 8),
  cancelRequested: false,
}

function ofAgent<T>(agentId: string, value: T): T | undefined {
  return agentId === 'a' ? value : undefined
}

/** The agent `a` with an inbox of one task, which has one event. */
export function oneTask(): AgentInboxesPort {
  const payload = encodeText('{"result":"ü"}')
  return {
    ids: () => ['a'],
    status: async (agentId) => ofAgent(agentId, { waiting: 1, inFlight: 2, oldestSeconds: 3 }),
    tasks: async (agentId, { after }) =>
      ofAgent(agentId, {
        items: after === 'end' ? [] : [TASK],
        next: after === undefined ? 'end' : undefined,
        total: 1,
      }),
    cancel: async (agentId, taskId) =>
      taskId === 't' ? ofAgent(agentId, { ...TASK, phase: 'done' as const, reason: 'CANCELED' }) : undefined,
    events: async (agentId, taskId, { from = 1, maxPayloadBytes }) => {
      if (taskId !== 't' || agentId !== 'a') return undefined
      const event = { at: TASK.createdAt, kind: 'status', state: 'TASK_STATE_WORKING', size: payload.byteLength }
      const items = [{ sequence: from, ...event, payload: payload.subarray(0, maxPayloadBytes) }]
      return { run: 'r', callerId: 'alice', firstSequence: 1, items, next: from + 1, isOver: false }
    },
  }
}
