import { expect, test } from 'vitest'

import { callTool } from './support/mcp.ts'
import { serve } from './support/server.ts'

test('cloudevents - an MCP client reads events that an application publishes at /ce, and the metrics count both', async () => {
  const { http, api } = await serve()
  const sent = await fetch(`${http.url}/ce/send/event-store`, {
    method: 'POST',
    headers: { 'content-type': 'application/cloudevents+json' },
    body: JSON.stringify({
      specversion: '1.0',
      id: '1',
      source: '/kitchen',
      type: 'order.ready',
      subject: 'orders',
      data: { table: 7 },
    }),
  })
  expect(sent.status).toBe(202)
  const { text } = await callTool(http.url, 'events_store_read', { channel: 'orders', max_messages: 1 })
  expect(JSON.parse(text)).toMatchObject([{ body: '{"table":7}', tags: { ce_type: 'order.ready' } }])
  const page = await (await fetch(`${api.url}/metrics`)).text()
  expect(page).toContain('broker_request_duration_seconds_count{connector="cloudevents",outcome="success"} 1\n')
})

test('cloudevents - a command of an MCP client is answered by a subscriber at /ce', async () => {
  const { http, api } = await serve()
  const leave = new AbortController()
  const stream = await fetch(`${http.url}/ce/subscribe/commands?channel=work`, { signal: leave.signal })
  expect(await (await fetch(`${api.url}/metrics`)).text()).toContain(
    'broker_sse_streams_active{connector="cloudevents"} 1\n',
  )
  const called = callTool(http.url, 'command_send', { channel: 'work', body: 'go', timeout_seconds: 20 })
  let frames = ''
  for await (const chunk of stream.body!.pipeThrough(new TextDecoderStream())) {
    frames += chunk
    const id = /"brokerrequestid":"([^"]+)"/.exec(frames)?.[1]
    if (id === undefined) continue
    const answer = { specversion: '1.0', id: '2', source: '/worker', type: 'done' }
    const response = await fetch(`${http.url}/ce/send/response?request_id=${encodeURIComponent(id)}`, {
      method: 'POST',
      headers: { 'content-type': 'application/cloudevents+json' },
      body: JSON.stringify(answer),
    })
    expect(response.status).toBe(202)
    break
  }
  expect(await called).toMatchObject({ isError: false, structured: { channel: 'work', executed: true } })
  leave.abort()
})

test('cloudevents - CONNECTORSCE_ENABLE=false takes /ce away', async () => {
  const { http } = await serve({ connectors: { ce: { enable: false } } })
  expect((await fetch(`${http.url}/ce/subscribe/events?channel=a`)).status).toBe(404)
})

test('cloudevents - CONNECTORSCE_MAX_SSE_CONNECTIONS bounds the subscriptions', async () => {
  const { http } = await serve({ connectors: { ce: { maxSseConnections: 1 } } })
  const open = () => fetch(`${http.url}/ce/subscribe/events?channel=a`)
  const first = await open()
  expect(first.status).toBe(200)
  expect((await open()).status).toBe(429)
  await first.body!.cancel()
})

test('S6 - CONNECTORSCE_TRUSTED_ORIGINS says which pages may call /ce', async () => {
  const origin = 'https://app.example.com'
  const { http } = await serve({ connectors: { ce: { trustedOrigins: [origin] } } })
  const publish = (from: string) =>
    fetch(`${http.url}/ce/subscribe/events?channel=a`, { headers: { origin: from } }).then(async (response) => {
      await response.body!.cancel()
      return response.status
    })
  expect([await publish(origin), await publish('http://localhost')]).toEqual([200, 403])
})
