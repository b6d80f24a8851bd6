import { expect } from 'vitest'

import type { RunningServer } from '../../src/server.ts'
import { metric, PATIENT } from './nodes.ts'
import { SseClient } from '@signalbox/testkit/sse-client'

/** Opens a stream of an agent's at a node. */
export function openStream(base: string, id: string): Promise<SseClient> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'message/stream', params: {} })
  return SseClient.open(`${base}/a2a/${id}`, { 'content-type': 'application/json' }, { method: 'POST', body })
}

export function inFlight(api: string, id: string): Promise<number> {
  return metric(api, `broker_a2a_requests_in_flight{agent_id="${id}"}`)
}

export interface Addresses {
  readonly http: string
  readonly api: string
}

export function addresses({ http, api }: RunningServer): Addresses {
  return { http: http.url, api: api.url }
}

/** A stream that another node serves than the one that it was opened at; those that the same one serves are closed. */
export async function openAcross(
  at: Addresses,
  other: Addresses,
  id: string,
  { paused = false }: { readonly paused?: boolean } = {},
): Promise<SseClient> {
  for (;;) {
    const stream = await openStream(at.http, id)
    if (paused) stream.pause()
    expect(stream.status).toBe(200)
    if ((await inFlight(other.api, id)) > 0) return stream
    stream.close()
    await expect.poll(() => inFlight(at.api, id), PATIENT).toBe(0)
  }
}

/** What an agent sends. */
export const STATUS = 'event: task.status\ndata: {"type":"status_update","payload":{"state":"working"}}\n\n'
export const DONE = 'event: task.done\ndata: {"type":"done","payload":{"state":"completed"}}\n\n'
