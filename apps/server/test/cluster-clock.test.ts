import { NATS_SERVER } from '@signalbox/engine-nats/testing'
import { describe, expect, test } from 'vitest'

import { startCli } from './support/cli.ts'
import { callTool } from './support/mcp.ts'
import { serveNode, startNats } from './support/nodes.ts'

describe.skipIf(NATS_SERVER === undefined)('ENGINE=nats', () => {
  test('CL-18 - clock: a node a day ahead is not ready, and does not delete messages that the others must still deliver', async () => {
    const nats = await startNats()
    const right = await serveNode(nats)
    const ahead = startCli({
      env: { ENGINE: 'nats', NATS_SERVERS: nats.url },
      preload: 'const now = Date.now; Date.now = () => now() + 86_400_000',
    })
    const message = { channel: 'q', body: 'x', expiration_seconds: 3_600 }
    await callTool(right.http.url, 'queue_send', message)
    const { http, api } = await ahead.ready()
    const ready = await fetch(`${api}/ready`)
    const { checks } = (await ready.json()) as { checks: { name: string; ok: boolean; detail: string }[] }
    expect([ready.status, checks.find(({ name }) => name === 'clock')]).toEqual([
      503,
      { name: 'clock', ok: false, detail: expect.stringMatching(/86400 s ahead of that of the NATS servers/) },
    ])
    expect((await fetch(`${api}/health`)).status).toBe(200)
    await expect
      .poll(() => ahead.lines())
      .toContainEqual(expect.objectContaining({ level: 'warn', msg: expect.stringMatching(/86400 s ahead/) }))
    expect(await callTool(http, 'queue_send', message)).toMatchObject({ isError: true })
    expect((await callTool(http, 'queue_peek', { channel: 'q', max_messages: 1 })).structured).toMatchObject({
      messages: [{ body: 'x' }],
    })
    const wait = { max_messages: 1, wait_timeout_seconds: 20 }
    const received = await callTool(right.http.url, 'queue_receive', { channel: 'q', ...wait })
    expect(received.structured).toMatchObject({ messages: [{ body: 'x' }] })
    expect((await fetch(`${right.api.url}/ready`)).status).toBe(200)
  })
})
