import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { until } from '@signalbox/testkit/until'
import { expect, onTestFinished, test } from 'vitest'

import { listed, register, startAgent } from './support/agent.ts'
import { CuttingProxy, cursorOf, eventsOf } from './support/cut-streams.ts'
import { serveNodes } from './support/nodes.ts'
import { serve } from './support/server.ts'

const EVENTS = 200
/** Each cut costs two requests: the stress runs make all of them. */
const CUTS =
  process.env['PROPERTY_CASES'] === 'all' ? Array.from({ length: EVENTS }, (_, i) => i) : [0, 1, 2, 37, 100, 198, 199]

/** Registers a durable agent whose stream has 200 events. */
async function registerStreaming(http: string): Promise<void> {
  const agent = await startAgent(({ body }, response) => {
    const { id } = JSON.parse(body) as { id: unknown }
    const ids = { taskId: 't', contextId: 'c' }
    const write = (result: object): void => {
      response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`)
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    write({ task: { id: 't', contextId: 'c', status: { state: 'TASK_STATE_WORKING' } } })
    for (let n = 2; n < EVENTS; n++) {
      write({ artifactUpdate: { ...ids, artifact: { artifactId: 'a', parts: [{ text: `${n} ü` }] }, append: true } })
    }
    write({ statusUpdate: { ...ids, status: { state: 'TASK_STATE_COMPLETED' } } })
    response.end()
  })
  await register(http, { agent_id: 'streaming', name: 's', url: agent.url, a2a: { wire: '1.0', durable: true } })
}

function sending(messageId: string): object {
  const message = { messageId, role: 'ROLE_USER', parts: [{ text: 'go' }] }
  return { jsonrpc: '2.0', id: 1, method: 'SendStreamingMessage', params: { message } }
}

const SUBSCRIBING = { jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: 't' } }

test.each(['embedded', 'nats'] as const)(
  'replay - on %s, cut by a proxy after each event, and continued at another node: each event once, byte for byte',
  async (engine) => {
    if (engine === 'nats' && NATS_SERVER === undefined) return
    const nodes = engine === 'nats' ? await serveNodes(2) : [await serve()]
    const [first, second = first] = nodes.map(({ http }) => http.url)
    if (first === undefined || second === undefined) throw new Error('no node runs')
    await registerStreaming(first)
    await until(async () => (await listed(second)).length === 1)
    const proxy = await CuttingProxy.start()
    onTestFinished(() => proxy[Symbol.asyncDispose]())
    proxy.target = first
    const whole = await eventsOf(`${first}/a2a/streaming`, sending('m1'))
    expect(whole).toHaveLength(EVENTS)
    for (const cut of CUTS) {
      proxy.after = cut
      const part = await eventsOf(`${proxy.url}/a2a/streaming`, sending('m1'))
      // Without an event there is no cursor: the message is sent again.
      const request = part.length === 0 ? sending('m1') : SUBSCRIBING
      const rest = await eventsOf(`${second}/a2a/streaming`, request, cursorOf(part))
      expect([...part, ...rest], `cut after ${cut}`).toEqual(whole)
    }
  },
)
